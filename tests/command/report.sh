# What attend train reports: its start, its validations, its log; and that a model file says how it was trained.
. "$(dirname "$0")/support.bash"

awk 'BEGIN { srand(7); for (i = 0; i < 300; i++) { n = 2 + int(rand() * 4); l = ""; for (w = 0; w < n; w++) l = l (w ? " " : "") sprintf("%c", 97 + int(rand() * 8)); print l } }' >lines
head -40 lines | sed 's/a/zz/' >few
{ cat lines; echo; echo a b c d e f g; } >source
{ cat lines; echo a; echo a b c d e f g; } >target
small="--embedding 16 --hidden 24 --attention 16 --maxout 16 --batch-size 10 --learning-rate 0.005"
valid="--valid-source few --valid-target few"

# The start: what was read, and what will be written.
"$attend" train --source source --target target $valid $small --max-length 6 --threads 2 --epochs 2 --output m 2>said >out || fail "$(cat said)"
[ ! -s out ] || fail "training prints on stdout"
grep -v '^\[' said >start
equal "training    302 pairs, 2 of them skipped (1 empty, 1 too long)
validation  40 pairs
vocabulary  source 8 units, target 8
unknown     source 0% (validation 9.49%), target 0% (validation 9.49%)
model       bahdanau, 17,532 parameters
an epoch    30 batches, 2 threads
files       m, and beside it .last, .state, .log.jsonl" "$(sed '/^  /,$d' start)" "the start of a run"
awk 'length > 80 { exit 1 }' <(sed '/^  /,$d' start) || fail "the start is wider than 80 columns"
"$attend" train --source lines --target lines $small --quiet --updates 1 --output q 2>said
[ ! -s said ] || fail "--quiet says $(cat said)"
"$attend" train --model transformer-lm --target lines --hidden 8 --heads 2 --ffn 8 --layers 1 --updates 1 --output lm 2>said
grep -qx 'training    300 lines' said && grep -qx 'vocabulary  8 units' said && grep -qx 'unknown     0%' said || fail "a language model starts with $(cat said)"

# Several metrics: the first decides, all are told; perplexity and token accuracy always are.
"$attend" train --source lines --target lines $valid $small --learning-rate 1e-9 --valid-metric accuracy,loss --valid-every 2 --early-stopping 3 \
    --report-every 3 --output e 2>said || fail "$(cat said)"
equal 1 "$(grep -cE '\[valid\] Ep\. 1 : Up\. 2 : accuracy : 0 : loss [0-9.]+ : perplexity [0-9.]+ : token accuracy [0-9.]+ : new best$' said)" "the first validation"
for n in 1 2 3; do
    equal 1 "$(grep -cE ": Up\. $((2 + 2 * n)) : accuracy : 0 : .* : the best is 0, no better for $n of 3$" said)" "validation $n without a better score"
done
grep -q ' : best accuracy 0 at update 2$' said || fail "the summary is $(tail -2 said)"
equal "3 6 8" "$(grep -o 'Up\. [0-9]* : Sen' said | tr -dc '0-9\n' | xargs)" "reports at multiples and at the end"
refuse 2 "no validation metric 'blue'; did you mean 'bleu'?" train $valid --source lines --target lines --output r --valid-metric loss,blue
refuse 2 "--valid-metric has 'loss' twice" train $valid --source lines --target lines --output r --valid-metric loss,bleu,loss
refuse 2 "--valid-metric bleu scores translations, and a language model has no source to translate; use loss, perplexity or token-accuracy" \
    train --model transformer-lm --target lines --valid-target few --output r --valid-metric loss,bleu

# perplexity is e to the loss; the accuracy of a model that copies well is near 100.
run train --source lines --target lines --valid-source lines --valid-target lines $small --updates 400 --valid-every 200 --quiet --valid-samples 3 --output copy
awk -F'[:,]' '/"event":"valid"/ { for (i = 1; i < NF; i++) v[$i] = $(i + 1); l = v["\"loss\""]; p = v["\"perplexity\""]; a = v["\"token-accuracy\""]; n++
    if (exp(l) / p > 1.00001 || exp(l) / p < 0.99999 || a > 100 || a < 30) exit 1; last = a } END { exit !(n == 2 && last > 90) }' copy.log.jsonl ||
    fail "the scores are $(grep valid copy.log.jsonl)"

# Samples: the same lines every time, as many as asked for, in the report and in the log.
equal 2 "$(grep -c '"samples":\[{"source":"[^"]*","reference":"[^"]*","output":"[^"]*"},{[^}]*},{[^}]*}\]' copy.log.jsonl)" "validations with samples"
equal 1 "$(grep -o '"samples":\[{"source":"[^"]*"' copy.log.jsonl | sort -u | wc -l)" "first samples"
equal "$(sed -n 101p lines)" "$(grep '"valid"' copy.log.jsonl | grep -o '{"source":"[^"]*"' | sed -n '2s/.*:"\(.*\)"/\1/p')" "the second sample"
grep -qx "  source    $(sed -n 1p few)" start && grep -qx "  reference $(sed -n 21p few)" start && grep -q '^  output    ' start || fail "no samples in $(cat start)"
run train --source lines --target lines $valid $small --updates 2 --quiet --valid-samples 0 --output none
! grep -q '"samples"' none.log.jsonl || fail "samples that nobody asked for"

# The log: start, end, times; a resumed run adds one line, and the rest is that of an uninterrupted run.
head -1 m.log.jsonl | grep -qE '^\{"event":"start","epoch":1,"update":0,"run":\{"output":"m","epochs":2,.*"threads":2,"kernels":"[a-z0-9]+"\},"parameters":17532,"attend":"[0-9.]+","settings":\{"source":"source",.*"seed":"1"\},"data":\{"training":\{"pairs":302,"used":300,"empty":1,"too_long":1,' ||
    fail "the log starts with $(head -1 m.log.jsonl)"
tail -1 m.log.jsonl | grep -qE '^\{"event":"end","epoch":2,"update":60,"reason":"epochs","best":\{"loss":[0-9.]+,"update":60\},"seconds":[0-9.]+,' || fail "the log ends with $(tail -1 m.log.jsonl)"
equal 0 "$(grep -cvE ',"time":"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"\}$' m.log.jsonl)" "lines of the log without a time"
tail -1 e.log.jsonl | grep -q '"reason":"early-stopping"' || fail "the log of an early stop ends with $(tail -1 e.log.jsonl)"
both="--source lines --target lines $valid $small --report-every 7 --dropout 0.1"
run train $both --updates 50 --quiet --output whole
run train $both --updates 24 --quiet --output parts
run train $both --updates 50 --quiet --output parts --resume
equal 1 "$(grep -c '^{"event":"resume","epoch":1,"update":24,"run":{' parts.log.jsonl)" "resumptions in the log"
. "$here/../torture/support.bash"
same_log whole.log.jsonl parts.log.jsonl || fail "the log of a resumed run differs: $(diff whole.log.jsonl parts.log.jsonl)"
equal "7 14 21 28 35 42 49 50" "$(sed -n 's/.*"event":"update","epoch":[0-9]*,"update":\([0-9]*\).*/\1/p' parts.log.jsonl | xargs)" "reports of a resumed run"
for file in '' .last .state; do same_file whole$file parts$file; done

# The model says how it was trained, and what it says trains it again.
"$attend" info --json whole >whole.json
sed -n '/"training": {/,/^    },/p' whole.json | sed -n '/"settings": {/,/}/s/^ *"\([a-z-]*\)": "*\([^",{}]*[^",{} ]\)"*,*$/\1 = \2/p' >config
grep -qx 'dropout = 0.1' config && grep -qx 'valid-source = few' config || fail "the settings are $(cat config)"
updates=$(sed -n 's/^    "update": \([0-9]*\)$/\1/p' whole.json)
run train --config config --updates "$updates" --quiet --threads 1 --output again
same_file whole again
for word in threads minutes time seconds "$PWD"; do
    ! grep -qaF "\"$word" whole || fail "the model file has '$word'"
done
"$attend" info whole | grep -qx 'trained on       lines, lines, 300 pairs; update 50' || fail "info says $("$attend" info whole)"
run average whole parts -o mean
"$attend" info --json mean | grep -qx '  "training": null,' || fail "a mean says how it was trained"

# --verbose tells what any command took.
for command in "list scores" "info whole" "translate -m whole" "score bleu --reference few"; do
    "$attend" $command --verbose --threads 1 <few 2>said >out || fail "$command --verbose fails"
    grep -qxE "attend ${command%% *}: [0-9.]+ s, [0-9.]+ s of processor time, peak memory [0-9.]+ MB, 1 thread, [a-z0-9]+ kernels" said || fail "$command --verbose says $(cat said)"
    "$attend" $command --verbose --quiet <few 2>said >out2
    [ ! -s said ] || fail "$command --verbose --quiet says $(cat said)"
    same_file out out2
done
finish
