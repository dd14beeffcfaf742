#!/usr/bin/env bash
# kill.sh: kills every command that writes files at random moments, sometimes several that write the same file, and runs it again.
#
# Half of the moments are random times; the others lie just before a random system call on files (die.c), which a random
# time seldom hits. After each kill every file is the old or the new one, whole; a training that is resumed ends with the
# bytes of an uninterrupted one, the other commands write theirs when they run again, and no temporary file is left.
# Some of the processes get TERM, HUP, INT or PIPE instead.
set -u
cd "$(dirname "$0")"
. ./support.bash
. ../cases.bash
build release
die=$PWD/die.c
enter
cc -shared -fPIC -O1 -o die.so "$die" -ldl || exit 1
make_corpus
make_arrays
head -40 valid.source >lines
wanted=$(count 120 1000)
kills=0 signals=0 runs=0
declare -A milliseconds calls # of a command that is not disturbed

# ---- One kill -----------------------------------------------------------------------------------------------------

# measure NAME COMMAND...: runs it undisturbed, and sets ${milliseconds[NAME]} and ${calls[NAME]}, the most calls on
# files of one of its processes.
measure()
{
    local name=$1 begin
    shift
    rm -f counted
    begin=$(date +%s%N)
    DIE_COUNT=$work/counted LD_PRELOAD=$work/die.so "$@" <lines >said 2>&1 || { cat said; exit 1; }
    milliseconds[$name]=$((($(date +%s%N) - begin) / 1000000 + 1))
    calls[$name]=$(sort -n counted | tail -n 1)
}

# strike NAME COMMAND...: starts it and ends it at a random moment; sets $code, which is 137 if it was killed in time.
strike()
{
    local name=$1 pid
    local -a signal=(KILL KILL KILL KILL KILL KILL KILL KILL KILL KILL KILL KILL TERM HUP INT PIPE)
    shift
    code=0
    random 0 15
    signal=${signal[random]}
    if [ $((random % 2)) = 0 ] && [ $signal = KILL ]; then
        random 1 "${calls[$name]}"
        DIE_AT=$random LD_PRELOAD=$work/die.so "$@" <lines >said 2>&1 &
        wait $! 2>/dev/null || code=$?
    else
        "$@" <lines >said 2>&1 &
        pid=$!
        sleep_at_most "${milliseconds[$name]}"
        kill -$signal $pid 2>/dev/null
        wait $pid 2>/dev/null || code=$?
    fi
    case $code in
    137) kills=$((kills + 1)) ;;
    129 | 130 | 141 | 143) signals=$((signals + 1)) ;;
    0) ;;
    *) # of a comparison whose child was killed
        if grep -q "was ended by signal 9" said; then kills=$((kills + 1)); else found "$name exits with $code: $(cat said)"; fi ;;
    esac
}

# again NAME COMMAND...: undisturbed, it must succeed; then no temporary file is left in run/.
again()
{
    local name=$1 left
    shift
    "$@" <lines >said 2>&1 || found "$name after a kill exits with $?: $(cat said)"
    left=$(find run -name '.attend-*' -o -name '*.previous.new')
    [ -z "$left" ] || found "$name leaves $left"
    runs=$((runs + 1))
}

# ---- Training -----------------------------------------------------------------------------------------------------

trainings="bahdanau bahdanau-sparse luong-local-m transformer transformer-guided transformer-spm lm pictures"

train() # NAME: sets the array $command
{
    command=("$attend" train $(options_of "$1") --save-every 4 --report-every 3 --output run/m --resume)
}

# While a training writes and is killed, its models can be loaded at any time.
read_models()
{
    local file
    while [ -e reading ]; do
        for file in run/m run/m.last; do
            [ ! -e $file ] || "$attend" info $file >/dev/null 2>>unread
        done
    done
}

attack_training() # NAME
{
    local name=$1 reader i file
    train "$name"
    rm -rf run
    mkdir run
    : >reading
    read_models &
    reader=$!
    random 1 4
    for ((i = random; i > 0; i--)); do
        random 1 20 # a lower limit, at which the model is validated and perhaps saved, which a resumed run takes back
        strike "$name" "${command[@]}" $([ $random -gt 14 ] || echo --updates $random)
    done
    rm reading
    wait $reader
    [ ! -s unread ] || found "a model of $name cannot be read: $(head -n 1 unread)"
    rm -f unread
    again "$name" "${command[@]}"
    for file in m m.last m.state; do
        cmp -s run/$file whole/"$name"/$file || found "$file of $name differs after a kill"
    done
    same_log run/m.log.jsonl whole/"$name"/m.log.jsonl || found "the log of $name differs after a kill"
}

# The second of two trainings with one output is refused; when the first is killed, the next one goes on.
attack_two_trainings() # NAME
{
    local name=$1 first
    train "$name"
    rm -rf run
    mkdir run
    "${command[@]}" --updates 999999 >said 2>&1 &
    first=$!
    until [ -s run/m.state ] || ! kill -0 $first; do sleep 0.01; done
    "${command[@]}" >said.second 2>&1 && found "a second training of $name is not refused"
    grep -q "another training run is writing 'run/m'" said.second || found "a second training says $(cat said.second)"
    kill -9 $first
    wait $first 2>/dev/null
    kills=$((kills + 1))
    again "$name" "${command[@]}" --updates 999999 --minutes 0.001
}

# ---- Other commands that write files --------------------------------------------------------------------------------

writers="average convert encode encode-mean heads calibrate attention show show-svg show-page translate align curve vocabulary"

writer() # NAME: sets the array $command
{
    case $1 in
    average) command=("$attend" average a b -o run/mean) ;;
    encode) command=("$attend" encode -m a -o run/features.safetensors) ;;
    encode-mean) command=("$attend" encode -m a --mean -o run/features.npy) ;;
    heads) command=("$attend" heads whole/transformer/m --source lines --target lines --prune 50% --tsv run/heads.tsv -o run/pruned) ;;
    calibrate) command=("$attend" calibrate a --source lines --target lines -o run/calibrated) ;;
    attention) command=("$attend" attention --query q.npy --key k.npy --value k.npy --out run/o.npy --weights run/w.npy
        --summary run/s.json --grad-out q.npy --grads run/grads) ;;
    translate) command=("$attend" translate a -o run/out) ;;
    align) command=("$attend" align a --source lines --target lines -o run/links) ;;
    curve) command=("$attend" curve whole/bahdanau/m -o run/curve.svg) ;;
    vocabulary) command=("$attend" vocabulary make lines -o run/words.txt) ;;
    show) command=("$attend" show "$(head -n 1 lines)" -m a -o run/weights.safetensors) ;;
    show-svg) command=("$attend" show "$(head -n 1 lines)" -m a --sums -o run/weights.svg) ;;
    show-page) command=("$attend" show "$(head -n 1 lines)" -m a -o run/weights.html) ;;
    convert) command=("$attend" convert a -o run/converted --weights bf16) ;;
    esac
    rm -rf run
    cp -r old/"$1" run 2>/dev/null || mkdir run
}

# Every file in run/ is the one of old/NAME or the one of new/NAME.
old_or_new() # NAME
{
    local file
    for file in $(cd new/"$1" && find . -type f); do
        cmp -s run/"$file" new/"$1"/"$file" || cmp -s run/"$file" old/"$1"/"$file" ||
            found "$file of $1 is neither the old nor the new file"
    done
}

write_again() # NAME
{
    old_or_new "$1"
    again "$1" "${command[@]}"
    diff -r run new/"$1" >said || found "$1 after a kill writes other bytes: $(cat said)"
}

attack_writer() # NAME
{
    writer "$1"
    strike "$1" "${command[@]}"
    write_again "$1"
}

# Several at the same time, two of which are killed: the others succeed. They wait a moment between their calls on files,
# so that each meets the others in the middle of theirs.
attack_writers() # NAME
{
    local name=$1 i
    local -a pid
    writer "$name"
    for i in 1 2 3 4 5; do
        DIE_PAUSE=3000 LD_PRELOAD=$work/die.so "${command[@]}" <lines >said.$i 2>&1 &
        pid[i]=$!
    done
    sleep_at_most $((milliseconds[$name] + 3 * calls[$name]))
    kill -9 ${pid[1]} ${pid[3]} 2>/dev/null
    for i in 1 2 3 4 5; do
        code=0
        wait ${pid[i]} 2>/dev/null || code=$?
        case $i:$code in
        *:0) ;;
        [13]:137) kills=$((kills + 1)) ;;
        *) found "$name beside others exits with $code: $(cat said.$i)" ;;
        esac
    done
    write_again "$name"
}

# With closed streams the messages go nowhere, and not into a file that is opened later.
attack_streams() # NAME
{
    local closed
    for closed in '>&-' '2>&-' '>&- 2>&-'; do
        writer "$1"
        eval '"${command[@]}" --verbose <lines >said 2>said' "$closed" && { diff -r run new/"$1" >said || found "$1 $closed writes other bytes: $(cat said)"; }
        write_again "$1"
    done
}

# ---- Comparisons ----------------------------------------------------------------------------------------------------

comparison=("$attend" compare spec --directory run/runs --json run/table.json --html run/table.html --curves run/table.svg --latex run/table.tex --csv run/table.csv --threads 1 --jobs 2)
cat >spec <<'END'
task = copy
train-lines = 200
test-lines = 20
embedding = 8
hidden = 8
updates = 20
save-every = 7
batch-size = 20
score = additive general
seeds = 1 2
metrics = accuracy
END

# What a comparison wrote, as far as it does not depend on times: names, models, outputs, results.
compared() # FOLDER
{
    (cd "$1" && find . -type f | sort)
    (cd "$1"/runs && find . -name model -o -name '*.txt' -o -path './data/*' | sort | xargs cksum)
    grep -vE '"(seconds|ms_per_update|words_per_second|peak_mb)"' "$1"/table.json
}

attack_comparison()
{
    local i file
    rm -rf run
    mkdir run
    random 1 3
    for ((i = random; i > 0; i--)); do
        strike compare "${comparison[@]}"
        for file in $(find run -name model -o -name model.last); do
            "$attend" info "$file" >/dev/null 2>unread || found "a model of compare cannot be read: $(cat unread)"
        done
    done
    again compare "${comparison[@]}"
    compared run >now
    diff whole/compare.files now >said || found "compare after a kill writes something else: $(cat said)"
}

# The second of two comparisons in one folder waits; when the first is killed, it does what is missing.
attack_two_comparisons()
{
    rm -rf run
    mkdir run
    { # a shell of its own, as it says so when a process was killed
        "${comparison[@]}" >said.first 2>&1 &
        until [ -e run/runs/lock ] || ! kill -0 $!; do sleep 0.01; done
        : >started
        sleep_at_most "${milliseconds[compare]}"
        kill -9 $!
        wait $! || echo $? >code
    } 2>/dev/null &
    until [ -e started ]; do sleep 0.01; done
    again compare "${comparison[@]}"
    wait
    [ "$(cat code 2>/dev/null)" != 137 ] || kills=$((kills + 1))
    rm -f code started
    compared run >now
    diff whole/compare.files now >said || found "compare beside another writes something else: $(cat said)"
}

# ---- All of it ------------------------------------------------------------------------------------------------------

for name in $("$attend" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    [ "$name" != bench ] && "$attend" "$name" --help | grep -qE '^  --(output|out|json|html|summary|weights|grads)\b.* (FILE|DIR)' || continue
    case " train compare $writers " in *" $name "*) ;; *) found "attend $name writes files and is not attacked here" ;; esac
done
mkdir whole old new
for name in $trainings; do
    rm -rf run
    mkdir run
    train "$name"
    measure "$name" "${command[@]}"
    cp -r run whole/"$name"
done
cp whole/bahdanau/m a
cp whole/bahdanau/m.last b
for name in $writers; do
    writer "$name"
    measure "$name" "${command[@]}"
    cp -r run new/"$name"
    cp -r run old/"$name"
    for file in $(find old/"$name" -type f); do cp b "$file"; done
    attack_streams "$name"
done
rm -rf run
mkdir run
measure compare "${comparison[@]}"
compared run >whole/compare.files
while [ $kills -lt "$wanted" ]; do
    for name in $trainings; do attack_training "$name"; done
    for name in $writers; do
        attack_writer "$name"
        attack_writers "$name"
    done
    attack_comparison
    attack_two_comparisons
    attack_two_trainings lm
done
echo "$kills killed and $signals ended by other signals, in $runs attacks on train, ${writers// /, } and compare: $finds finds"
[ $finds = 0 ]
