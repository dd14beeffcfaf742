# attend train: its progress, its files, its refusals; and that a run that was stopped, killed or out of disk ends, once it
# is resumed, in the very bytes of a run that was left alone.
. "$(dirname "$0")/support.bash"

# A language of eight words; the target is the source.
awk 'BEGIN { srand(7); for (i = 0; i < 300; i++) { n = 2 + int(rand() * 4); l = ""; for (w = 0; w < n; w++) l = l (w ? " " : "") sprintf("%c", 97 + int(rand() * 8)); print l } }' >lines
head -40 lines >few
paste few few >both.tsv
small="--embedding 16 --hidden 24 --attention 16 --maxout 16 --batch-size 10 --learning-rate 0.005"
data="--source lines --target lines --valid-source few --valid-target few"

# Refusals.
refuse 2 "training needs --source FILE and --target FILE, or --tsv FILE" train --output m
refuse 2 "training needs --output FILE, the model to write" train --source lines --target lines
refuse 2 "no option '--hiden'; did you mean '--hidden'?" train --hiden 3
refuse 2 "no score 'scalled'; did you mean 'scaled'?" train $data --output m --score scalled
refuse 2 "--epochs takes a whole number, 1 or more, not '0'" train $data --output m --epochs 0
refuse 2 "no model 'bahdanow'; did you mean 'bahdanau'?" train $data --output m --model bahdanow
refuse 2 "model 'rnn-encdec' does not use --score" train $data --output m --model rnn-encdec --score dot
refuse 2 "--reset is for --cell gru only, and the cell is 'lstm'" train $data --output m --model luong --reset after
refuse 1 "cannot read 'missing': No such file or directory" train --source missing --target lines --output m
: >empty
code=0
"$attend" train --source empty --target empty --output m 2>said || code=$?
equal 1 "$code" "an empty corpus"
grep -q "^attend: .*'empty'" said || fail "an empty corpus says $(cat said)"
refuse 1 "line 41 of 'lines' has no partner: 'few' ends after 40 lines" train --source lines --target few --output m
refuse 1 "line 41 of 'lines' has no partner: 'few' ends after 40 lines" \
    train --source few --target few --valid-source few --valid-target lines --output m
# What it reads is not written over.
cp few read.log.jsonl
refuse 2 "--output would overwrite 'few', which --target reads; choose another file" train --source lines --target few --output ./few
refuse 2 "--output would overwrite 'read.log.jsonl', which --valid-source reads; choose another file" \
    train $data --valid-source read.log.jsonl --output read
printf '\n\n' >blank
refuse 1 "validation: no pair of lines is left: of 2, 2 have an empty side (first line 1)" \
    train --source few --target few --valid-source blank --valid-target blank --output m
refuse 2 "--joint-vocab needs --source-vocab and --target-vocab to be the same" train $data --output m --joint-vocab --target-vocab char
refuse 2 "no vocabulary 'wrod'; did you mean 'word'?" train $data --output m --source-vocab wrod
refuse 2 "--minutes takes a number above 0, not '0'" train $data --output m --minutes 0
refuse 2 "no validation metric 'blue'; did you mean 'bleu'?" train $data --output m --valid-metric blue
# What no data can mend is refused before any is read.
for wrong in "--heads 3:--heads is 3 and must divide 256, the size of what attention compares" \
    "--layers 9:--layers is 9, and model 'luong' has at most 4" \
    "--cell gruu:--cell takes rnn, gru or lstm, not 'gruu'" \
    "--attention-dropout 0.999999999:--attention-dropout takes a number from 0 to below 1, rounded to a float, not '0.999999999'" \
    "--r-drop 1 --dropout 0:--r-drop compares two passes that differ by dropout, and --dropout is 0" \
    "--r-drop 1 --normaliser hard:--r-drop cannot be used with --normaliser hard and --hard-training reinforce; --hard-training exact takes no samples" \
    "--score dot --position rope --hidden 6 --heads 2:position 'rope' rotates pairs of numbers, so the head size must be even, and it is 3"; do
    refuse 2 "${wrong#*:}" train --model luong --source missing --target missing --output m ${wrong%%:*}
done
[ ! -e m ] && [ ! -e m.log.jsonl ] || fail "a refused run leaves files behind"

# What it says and what it leaves.
printf 'embedding = 16\nhidden = 24\nattention = 16\nmaxout = 16\nbatch-size = 10\nlearning-rate = 0.005\nepochs = 9\n' >settings
"$attend" train $data --config settings --epochs 2 --output m --valid-metric accuracy --report-every 30 >out 2>said || fail "training says $(cat said)"
[ ! -s out ] || fail "training prints on stdout"
line='^\[[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}\] Ep\. 1 : Up\. 30 : Sen\. 300 : Cost [0-9.]+ : Time [0-9.]+s : [0-9.]+ words/s : gNorm [0-9.]+ : L\.r\. 5\.0000e-03$'
equal 1 "$(grep -cE "$line" said)" "progress lines of the first epoch"
equal 2 "$(grep -cE '\[valid\] Ep\. [12] : Up\. (30|60) : accuracy : ' said)" "validations"
grep -qE '^60 updates of [0-9,]+ parameters : [0-9.]+ s : [0-9.]+ words/s : peak memory [0-9.]+ MB : best accuracy ' said ||
    fail "the summary is $(tail -2 said)"
equal 6 "$(grep -c '^{"event":"[a-z]*","epoch":.*}$' m.log.jsonl)" "lines of the log"
for file in m m.last m.state m.log.jsonl; do
    [ -s $file ] || fail "there is no $file"
done
equal '' "$(find . -name '*.tmp' -o -name '*.new')" "temporary files"
run train --tsv both.tsv --source-vocab char --target-vocab char --output t --updates 2 --quiet $small

# Pairs whose sides are too unlike are counted and the first named.
{ cat few; echo a b c; echo a; } >longer
{ cat few; echo a; echo a b c; } >shorter
"$attend" train --source longer --target shorter --output u --updates 1 --max-ratio 2.5 $small 2>said
grep -q "2 of the 42 training pairs have a side more than 2.5 times as long as the other and are skipped, the first in line 41" said ||
    fail "pairs that are unlike give $(cat said)"
refuse 2 "--max-ratio takes a number, 1 or more, not '0.5'" train $data --output r --max-ratio 0.5
refuse 2 "model 'transformer-lm' is a language model: its lines have one side, and --max-ratio two" \
    train --model transformer-lm --target lines --output r --max-ratio 2

# Means: of the parameters while training, and of files.
run train $data $small --output a --valid-every 5 --average 2 --updates 13 --quiet
run train $data $small --output a --valid-every 5 --average 2 --updates 20 --quiet --resume
run train $data $small --output b --valid-every 5 --average 2 --updates 20 --quiet --threads 1
same_file a b
same_file a.last b.last
code=0
"$attend" train $data $small --output a --valid-every 5 --average 3 --updates 20 --resume 2>said || code=$?
equal 1 "$code" "another mean"
equal "attend: cannot resume from 'a.state', which was written with --average 2 and not with --average 3; train as before, or from the start with --overwrite" \
    "$(cat said)" "another mean"
run average a b.last -o mean
equal 40 "$("$attend" translate -m mean --quiet <few | wc -l)" "lines by a mean"
refuse 2 "attend average needs two model files or more" average a -o mean
refuse 2 "attend average needs -o FILE, the model to write" average a b
refuse 1 "'t' and 'a' have different source vocabularies, so their parameters stand for different words: they have no mean" \
    average a t -o no

# Only a gru has a reset gate, so only its file mentions one.
run train --tsv both.tsv --output l --updates 2 --quiet --model luong --hidden 8 --embedding 8
equal 'reset            before' "$("$attend" info m | grep '^reset')" "the reset of a gru"
equal 'cell             lstm' "$("$attend" info l | grep -e '^reset' -e '^cell')" "what an lstm has"

# Bytes that are not UTF-8 are counted and their line named.
{ cat few; printf 'a \377 b\n'; } >broken
"$attend" train --source broken --target broken --output v --updates 1 $small 2>said
grep -q "1 of the 41 training pairs hold bytes that are not UTF-8, read as U+FFFD, the first in line 41" said ||
    fail "a line that is not UTF-8 gives $(cat said)"

# A run that is left alone, one interrupted again and again, one killed again and again.
long="$data $small --epochs 6 --dropout 0.1 --save-every 4 --quiet"
run train $long --output whole --threads 1
# Until a process handles SIGTERM (15), or has ended: before that, a signal ends it at once.
wait_for_handlers() {
    local caught
    for _ in $(seq 1000); do
        caught=$(sed -n 's/^SigCgt:\t*//p' "/proc/$1/status" 2>/dev/null) || return 0
        [ -n "$caught" ] || return 0
        [ "$(cat "/proc/$1/comm" 2>/dev/null)" != attend ] || [ $((16#$caught >> 14 & 1)) = 0 ] || return 0
        sleep 0.01
    done
}
stopped() {
    local signal=$1 output=$2 code=0
    "$attend" train $long --output "$output" --resume &
    local pid=$!
    wait_for_handlers $pid
    sleep "$3"
    kill -"$signal" $pid 2>/dev/null || true
    wait $pid || code=$?
    # A run that ended before its signal came has done its work.
    [ "$code" = 0 ] || [ "$code" = "$4" ] || fail "a run ended by SIG$signal exits with $code"
    checks=$((checks + 1))
}
for pause in 0.05 0.1 0.2; do
    stopped INT parts $pause 130
    stopped TERM parts $pause 130
    stopped KILL dead $pause 137 2>/dev/null
done
run train $long --output parts --resume
run train $long --output dead --resume
for file in '' .last .state; do
    same_file whole$file parts$file
    same_file whole$file dead$file
done

# A disk that fills up: a sentence, the state from before stays, and a resumed run is none the worse.
"$attend" train $long --output full --updates 20 || fail "a short run fails"
cp full.state kept
code=0
(
    ulimit -f 16
    exec "$attend" train $long --output full --resume
) 2>said || code=$?
equal 1 "$code" "a full disk"
grep -q "^attend: cannot write 'full[.a-z]*': " said || fail "a full disk says $(cat said)"
same_file kept full.state
run train $long --output full --resume
same_file whole full
same_file whole.state full.state

# A trained model is not replaced unless asked: the refusal tells what is there, an interrupt before the first save leaves every
# file alone, and the files of earlier saves are kept on request only.
refuse 1 "'whole' exists, from a run of 180 updates: --resume continues the run, --overwrite starts again and replaces it at the first save; or choose another --output" \
    train $long --output whole
refuse 2 "--resume continues a run and --overwrite starts again; give one of them" train $long --output whole --resume --overwrite
cp whole alone
refuse 1 "'alone' exists, but without 'alone.state' there is nothing to --resume: --overwrite starts again and replaces it at the first save; or choose another --output" \
    train $long --output alone --resume
before=$(cksum whole whole.*)
for signal in INT TERM HUP; do
    "$attend" train $data $small --output whole --overwrite --epochs 1000000 --save-every 1000000000 --valid-every 1000000000 \
        --report-every 1 2>said.$signal &
    pid=$!
    for _ in {1..200}; do
        ! grep -qs 'Up\. 2 ' said.$signal || break
        sleep 0.05
    done
    kill -$signal $pid
    code=0
    wait $pid || code=$?
    equal 130 "$code" "exit code of a run that would overwrite, after SIG$signal"
    equal "interrupted before the first save; all files are as they were" "$(tail -1 said.$signal)" "its last line"
    equal "$before" "$(cksum whole whole.*)" "the files after SIG$signal"
done
cp whole over && cp whole.state over.state
run train --source lines --target lines $small --output over --overwrite --keep-previous --updates 4 --quiet
same_file whole over.previous
same_file whole.state over.state.previous
equal '' "$(find . -name '*.previous' ! -name 'over.*')" "files of earlier saves"
"$attend" help --man train >manual
for file in OUTPUT.last OUTPUT.state OUTPUT.log.jsonl 'OUTPUT.previous, OUTPUT.state.previous'; do
    grep -qxF ".B $file" manual || fail "the manual does not list $file"
done

# Two at once.
"$attend" train $long --output shared --epochs 1000 &
first=$!
for _ in $(seq 100); do
    [ -s shared.state ] && break
    sleep 0.05
done
code=0
"$attend" train $long --output shared 2>said || code=$?
kill -TERM $first
wait $first || true
equal 1 "$code" "a second trainer"
equal "attend: another training run is writing 'shared'; choose another output or wait for it" "$(cat said)" "a second trainer"

# What was trained for something else is not gone on with.
code=0
sed 's/a/i/g' lines >others
"$attend" train $long --source others --output whole --resume 2>said || code=$?
equal 1 "$code" "another vocabulary"
grep -qE "^attend: cannot resume from 'whole.state', which was written with a source vocabulary of 12 units \([0-9a-f]{16}\) and not with a source vocabulary of 12 units \([0-9a-f]{16}\); train as before, or from the start with --overwrite$" said ||
    fail "another vocabulary says $(cat said)"
code=0
"$attend" train $long --output whole --hidden 25 --resume 2>said || code=$?
equal 1 "$code" "another size"
equal "attend: cannot resume from 'whole.state', which was written with --hidden 24 and not with --hidden 25; train as before, or from the start with --overwrite" \
    "$(cat said)" "another size"
finish
