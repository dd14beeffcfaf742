#!/usr/bin/env bash
# resume.sh: trains every kind of model in parts, with one to four threads each, and compares with an uninterrupted run.
#
# A part ends at a random update (a lower --updates) or at a random time (TERM, or kill -9). Models, optimisers, schedules,
# vocabularies, dropout, guidance and averages are those of tests/cases.bash. Model, last model and state must have the
# same bytes, and the log the same lines apart from times.
set -u
cd "$(dirname "$0")"
. ./support.bash
. ../cases.bash
build release
enter
make_corpus
updates=25 # two and a half epochs
splits=$(count 2 30)
resumed=0 compared=0

train() # NAME: sets the array $command
{
    local options
    options=$(options_of "${1%-unsteady}")
    options=${options/--updates 14/--updates $updates}
    command=("$attend" train ${options/--batch-size 16/--batch-size 50} --save-every 4 --report-every 3 --resume)
    [ "$1" = "${1%-unsteady}" ] || command+=(--learning-rate 0.1 --valid-every 17)
}

# A part of a training; a cosine schedule needs to know the last update from the start.
part() # NAME
{
    local signal pid code
    random 0 3
    case $random:$1 in
    [01]:*-t5) signal=TERM ;;
    [01]:*) signal= ;;
    2:*) signal=TERM ;;
    3:*) signal=KILL ;;
    esac
    random 1 4
    if [ -z "$signal" ]; then
        local threads=$random
        random 1 $((updates - 1))
        "${command[@]}" --output run/m --threads "$threads" --updates "$random" >said 2>&1 || found "$1 exits with $?: $(cat said)"
    else
        "${command[@]}" --output run/m --threads "$random" >said 2>&1 &
        pid=$!
        sleep_at_most "$milliseconds"
        kill -$signal $pid 2>/dev/null
        code=0
        wait $pid 2>/dev/null || code=$?
        case $code in 0 | 130 | 137 | 143) ;; *) found "$1 exits with $code: $(cat said)" ;; esac
    fi
    resumed=$((resumed + 1))
}

# The loss of the unsteady one goes up and down: the end of a part may be better than the best validation of the whole run.
settings="$(cases | sed 's/:.*//') encdec-unsteady"
for name in $settings; do
    train "$name"
    mkdir whole
    begin=$(date +%s%N)
    "${command[@]}" --output whole/m >said 2>&1 || { cat said; exit 1; }
    milliseconds=$((($(date +%s%N) - begin) / 1000000 + 1))
    for ((split = 0; split < splits; split++)); do
        rm -rf run
        mkdir run
        random 1 3
        for ((i = random; i > 0; i--)); do part "$name"; done
        "${command[@]}" --output run/m >said 2>&1 || found "$name, resumed, exits with $?: $(cat said)"
        for file in m m.last m.state; do
            cmp -s whole/$file run/$file || found "$file of $name differs"
            compared=$((compared + 1))
        done
        same_log whole/m.log.jsonl run/m.log.jsonl || found "the log of $name differs"
        compared=$((compared + 1))
    done
    rm -rf whole
done
echo "$((splits * $(wc -w <<<"$settings"))) trainings of $(wc -w <<<"$settings") settings, resumed $resumed times: $compared files compared, $finds differ"
[ $finds = 0 ]
