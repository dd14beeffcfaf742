# attend compare: the table, its JSON and its page; what is misspelt, impossible or failed; and that nothing is done twice and
# nothing lost, whatever is killed.
. "$(dirname "$0")/support.bash"

golden help_compare.txt compare --help

cat >tiny.spec <<'S'
title = A <small> "grid" & more
task = copy
symbols = 6
lengths = 2-4
beyond = 5-6
train-lines = 200
test-lines = 40

heads = 1 3 4           # 3 does not divide 16
model = transformer
layers = 1
hidden = 16
ffn = 16
dropout = 0
batch-size = 16
learning-rate = 0.005
updates = 60
seeds = 1 2
metrics = accuracy wer
S

# Refusals name the line and the nearest right word, and leave nothing behind.
wrong() { # SENTENCE KEY VALUE: the line of KEY with VALUE
    sed "s/^$2 *=.*/$2 = $3/" tiny.spec >wrong.spec
    refuse 2 "wrong.spec:$(grep -n "^$2 =" wrong.spec | cut -d: -f1): $1" compare wrong.spec
}
wrong "no model 'transfomer'; did you mean 'transformer'?" model transfomer
wrong "no task 'cpoy'; did you mean 'copy'?" task cpoy
wrong "no metric 'acuracy'; did you mean 'accuracy'?" metrics 'wer acuracy'
wrong "--heads takes a whole number from 1 to 1048576, not 'four'" heads '1 four'
wrong "heads has '1' twice" heads '1 2 1'
wrong "seeds has 2 twice" seeds '2 2'
wrong "seeds takes up to 100 whole numbers separated by blanks, not 'x'" seeds '1 x'
wrong "lengths takes the number of words of the shortest and the longest line, like 3-12, not '9-3'" lengths 9-3
wrong "symbols takes a whole number from 2 to 10000, not '1'" symbols 1
sed 's/^heads/haeds/' tiny.spec >wrong.spec
refuse 2 "wrong.spec:9: no setting 'haeds' for attend compare; did you mean 'heads'?" compare wrong.spec
sed 's/^heads.*/position = shaw:2 shav:4/' tiny.spec >wrong.spec
refuse 2 "wrong.spec:9: no position 'shav'; did you mean 'shaw'?" compare wrong.spec
while read -r line sentence; do
    sed "s/^heads.*/${line/=/ = }/" tiny.spec >wrong.spec
    refuse 2 "wrong.spec:9: $sentence" compare wrong.spec
done <<'S'
activation=gelo --activation takes relu, gelu or swish, not 'gelo'
source-vocab=wrod no vocabulary 'wrod'; did you mean 'word'?
valid-metric=blue no validation metric 'blue'; did you mean 'bleu'?
minutes=0 --minutes takes a number above 0, not '0'
S
sed 's/^heads.*/row = one : --haeds 1/' tiny.spec >wrong.spec
refuse 2 "wrong.spec:9: no setting 'haeds' for attend compare; did you mean 'heads'?" compare wrong.spec
sed 's/^heads.*/row = one --heads 1/' tiny.spec >wrong.spec
refuse 2 "wrong.spec:9: a row is NAME : --option value ..., not 'one --heads 1'" compare wrong.spec
sed 's/^heads.*/just words/' tiny.spec >wrong.spec
refuse 2 "wrong.spec:9: 'just words' is not of the form key = value" compare wrong.spec
sed 's/^heads.*/= 4/' tiny.spec >wrong.spec
refuse 2 "wrong.spec:9: '= 4' is not of the form key = value" compare wrong.spec
sed 's/^heads.*/source =/' tiny.spec >wrong.spec
refuse 2 "wrong.spec:9: source takes FILE, not an empty word" compare wrong.spec
sed 's/^heads.*/output = m/' tiny.spec >wrong.spec
refuse 2 "wrong.spec:9: 'output' is set by attend compare for each run" compare wrong.spec
sed 's/^title.*/row = one : --heads 4/' tiny.spec >wrong.spec
refuse 2 "wrong.spec: row 'one' has its own --heads, which is multiplied already" compare wrong.spec
refuse 2 "--set: no setting 'updats' for attend compare; did you mean 'updates'?" compare tiny.spec --set updats=4
refuse 2 "--set takes KEY=VALUE, like updates=500, not 'updates'" compare tiny.spec --set updates
refuse 2 "tiny.spec: beyond starts at 4 words, within the 4 of lengths; start above them" compare tiny.spec --set beyond=4-6
refuse 2 "no file or comparison 'shaw'; did you mean 'shaw-k'?" compare shaw
refuse 1 "cannot read 'none.spec': No such file or directory" compare none.spec
refuse 2 "attend compare needs a SPEC, a file or one that attend list compares shows, as in attend compare luong" compare
refuse 1 "--json: cannot write 'no/where': the directory 'no' does not exist" compare tiny.spec --json no/where
printf 'updates = 2\n' >wrong.spec
refuse 2 "wrong.spec has no data; set source and target, tsv, or a task such as copy" compare wrong.spec
printf 'updates = 2\nsource = here\ntarget = here\n' >wrong.spec
refuse 2 "wrong.spec has no test data; set test-source and test-target, test-tsv, or a task" compare wrong.spec
printf 'updates = 2\nsource = here\ntarget = here\ntest-source = here\ntest-target = here\n' >wrong.spec
refuse 1 "cannot read 'here': No such file or directory" compare wrong.spec

# The table: a row for each combination, one of them not possible, which is no failure.
"$attend" compare tiny.spec --jobs 2 --json t.json --html t.html --curves t.svg >table 2>said || fail "compare says $(cat said)"
equal 'A <small> "grid" & more' "$(head -1 table)" "the title"
equal 'heads accuracy wer 2 words 3 words 4 words beyond accuracy beyond wer aer parameters ms/update peak MB words/s' \
    "$(sed -n 3p table | tr -s ' ')" "the head of the table"
equal 2 "$(grep -cE '^[14] +[0-9.]+ ± +[0-9.]+ +[0-9.]+ ± ' table)" "rows with scores"
grep -q '^3 *not possible  *-' table || fail "the impossible row is $(cat table)"
grep -q '^3 is not possible: --heads is 3 and must divide --hidden, which is 16$' table || fail "no reason: $(cat table)"
grep -q 'Means over the seeds 1 2; 2 at a time with 1 thread each' table || fail "the notes are $(tail -3 table)"
equal 1 "$(sed -n 3,6p table | sed 's|±|x|g' | awk '{ print length($0) }' | sort -u | wc -l)" "widths of the table's lines"
equal '' "$(COLUMNS=80 "$attend" compare tiny.spec --quiet | sed 's|±|x|g' | awk 'length($0) > 80')" "lines longer than the terminal"

# What is done is not done again; another line in the SPEC is, and nothing but that.
"$attend" compare tiny.spec --json again.json 2>said >table2
same_file table table2
equal '' "$(grep -v 'not possible' said || true)" "a second call"
sed 's/^heads.*/heads = 4 2/' tiny.spec >kept && cp tiny.spec first.spec && cp kept tiny.spec
"$attend" compare tiny.spec >table3 2>said
equal 2 "$(grep -c ' s$' said)" "runs of a SPEC with one more value"
equal "$(grep '^4 ' table | tr -s ' ')" "$(grep '^4 ' table3 | tr -s ' ')" "the row that was there"
mkdir elsewhere && cp first.spec elsewhere/tiny.spec && cp -r tiny.spec.runs elsewhere/
"$attend" compare elsewhere/tiny.spec --quiet >elsewhere/table
equal '' "$(diff table elsewhere/table)" "another folder, the same table"
cp first.spec tiny.spec

# JSON, whose lines can be typed; and a page that needs nothing from outside.
if command -v python3 >/dev/null; then
    python3 - <<'P' || fail "the JSON is not right"
import json
table = json.load(open('t.json'))
assert table['axes'] == ['heads'] and table['seeds'] == [1, 2] and len(table['rows']) == 3
names = [m['name'] for m in table['measures']]
assert names[:2] == ['accuracy', 'wer'] and {'accuracy_2', 'beyond_wer', 'aer', 'parameters', 'ms_per_update'} <= set(names)
done = table['rows'][0]
assert done['settings'] == {'heads': '1'} and done['state'] == 'done' and len(done['runs']) == 2
scores = [run['accuracy'] for run in done['runs']]
mean = sum(scores) / 2
assert abs(done['mean']['accuracy'] - mean) < 1e-9
assert abs(done['spread']['accuracy'] ** 2 - sum((s - mean) ** 2 for s in scores)) < 1e-6
assert all(run['parameters'] > 1000 and run['peak_mb'] > 1 and run['words_per_second'] > 0 for run in done['runs'])
# By length, counted anew from the files.
data = 'tiny.spec.runs/data/test.'
source, target = (open(data + side).read().splitlines() for side in ('source', 'target'))
assert not set(source) & set(open('tiny.spec.runs/data/train.source').read().splitlines())
for run in done['runs']:
    said = open(run['folder'] + '/test.txt').read().splitlines()
    for length in (2, 3, 4):
        right = [a == b for a, b, c in zip(said, target, source) if len(c.split()) == length]
        assert abs(run['accuracy_%d' % length] - 100 * sum(right) / len(right)) < 1e-9
assert table['rows'][1]['state'] == 'not possible' and 'must divide' in table['rows'][1]['runs'][0]['why']
open('line', 'w').write(done['runs'][0]['line'] + '\n' + done['runs'][0]['folder'] + '\n')
P
    line=$(head -1 line)
    cp "$(tail -1 line)/model" kept
    (eval "${line/attend/\"$attend\"} --quiet --output by-hand") || fail "the line '$line' does not run"
    same_file kept by-hand
fi
"$attend" compare tiny.spec --set beam=2 --quiet --verbose >/dev/null 2>said
equal 0 "$(grep -c '^attend train.*--heads [14] ' said || true)" "trainings for another beam"
equal 8 "$(grep -c '^attend translate' said)" "translations for another beam"
# A run whose training is not recorded is trained again, although its model is there.
for record in tiny.spec.runs/*/train.json; do
    rm "$record"
    break
done
"$attend" compare tiny.spec --quiet --verbose >/dev/null 2>said || fail "a comparison without a record: $(cat said)"
equal 1 "$(grep -c '^attend train.*--heads [14] ' said)" "trainings without a record"
grep -q 'A &lt;small&gt; &quot;grid&quot; &amp; more' t.html || fail "the page's title is not escaped"
equal '' "$(grep -ioE '(src|href)=|https?:|url\(|@import|<script' t.html || true)" "what the page takes from outside"
# The curves as a drawing, with the lines of the page; or what is missing.
grep -q 'no run was reported or validated twice' t.svg || fail "a drawing without curves is $(cat t.svg)"
"$attend" compare tiny.spec --set seeds=1 --set report-every=20 --directory curves --quiet --html one.html --curves one.svg >table 2>said || fail "compare says $(cat said)"
grep -o '<polyline[^>]*>' one.svg | sort -u >lines
[ "$(wc -l <lines)" -ge 2 ] || fail "the drawing has $(wc -l <lines) lines"
equal '' "$(grep -vFf <(grep -o '<polyline[^>]*>' one.html) lines || true)" "lines that the page does not have"
grep -q 'training loss' one.svg || fail "the drawing has no title"
equal 1 "$(grep -c '^<svg ' one.svg)" "the drawing's elements"
# The best of a column stands out, and everything that is as good; of columns in which all are alike nothing does.
equal 0 "$("$attend" compare tiny.spec --set 'heads=4' --quiet --html one.html >/dev/null && grep -c 'td class="best"' one.html || true)" \
    "the best of one row"
grep -q 'td class="best"' t.html || fail "nothing in the page is the best"
if command -v xmllint >/dev/null; then
    xmllint --html --noout t.html 2>xml || true
    equal '' "$(grep 'error :' xml | grep -v 'error : Tag [a-z]* invalid' || true)" "the page"
fi

# Data of one's own: paths start from the SPEC's folder, both sides in one file, links that are known, rows.
mkdir own
paste tiny.spec.runs/data/train.source tiny.spec.runs/data/train.target >own/train.tsv
paste tiny.spec.runs/data/test.target tiny.spec.runs/data/test.source >own/test.tsv
cp tiny.spec.runs/data/test.links own/
cat >own/own.spec <<'S'
tsv = train.tsv
test-tsv = test.tsv
test-alignment = test.links
row = no attention : --model rnn-encdec --maxout 8
row = dot, fed : --model luong --score dot --input-feeding
row = wrong : --model luong --maxout 8
embedding = 8
hidden = 8
updates = 10
seeds = 1
metrics = cer
S
code=0
"$attend" compare own/own.spec --directory runs --threads 2 --jobs 1 >table 2>said || code=$?
equal 1 "$code" "a row that is wrong"
grep -qE '^no attention +[0-9.]+ .* - ' table || fail "a model without attention: $(cat table)"
grep -qE '^dot, fed +[0-9.]+ ' table || fail "the row behind it: $(cat table)"
grep -q "^wrong, seed 1 failed: model 'luong' does not use --maxout$" table || fail "the wrong row: $(cat table)"
equal "attend: 1 of the 3 runs failed; the same command tries them again" "$(tail -1 said)" "what a failure ends with"

# Runs that are killed, and whoever runs them.
sed 's/^heads.*/heads = 1 4/; s/^updates.*/updates = '"$(learns && echo 800 || echo 300)"'\nsave-every = 20/; s/^beyond.*//' tiny.spec >long.spec
"$attend" compare long.spec --directory whole --quiet >whole.table
scores() { # the columns that do not depend on the clock
    sed -E 's/ +[0-9.]+ +[0-9.]+ +[0-9]+$//' "$1"
}
start() {
    "$attend" compare long.spec --directory parts >parts.table 2>parts.said &
    pid=$!
    for _ in $(seq 200); do
        child=$(ps -o pid= --ppid $pid | head -1 || true)
        [ -n "$child" ] && ls parts/*/model.state >/dev/null 2>&1 && break
        sleep 0.02
    done
}
start
kill -9 $child || fail "there is no child to kill"
code=0
wait $pid || code=$?
equal 1 "$code" "a run that was killed"
grep -q 'failed: train was ended by signal 9 (Killed)$' parts.table || fail "a killed run gives $(cat parts.table)"
grep -qE '^4 +[0-9.]+ ±' parts.table || fail "the others did not go on: $(cat parts.table)"
start
kill -TERM $pid
code=0
wait $pid || code=$?
# 0 or 143: it had no run left to save when the signal came.
case $code in 0 | 130 | 143) ;; *) fail "an interrupted comparison exits with $code" ;; esac
start
kill -9 $pid
wait $pid 2>/dev/null || true
"$attend" compare long.spec --directory parts --quiet >parts.table || fail "the last call fails: $(cat parts.table)"
equal "$(scores whole.table)" "$(scores parts.table)" "the table after three deaths"

# Relative positions hold beyond the lengths of training, where absolute ones do not.
if learns; then
    cat >order.spec <<'S'
task = copy
symbols = 8
lengths = 3-8
beyond = 9-10
train-lines = 4000
test-lines = 100
position = sinusoidal shaw:2
model = transformer
layers = 2
hidden = 32
ffn = 64
heads = 4
dropout = 0
batch-size = 32
learning-rate = 0.005
schedule = cosine
warmup = 50
updates = 600
seeds = 1
S
    "$attend" compare order.spec --quiet >table
    beyond=$(awk '/^shaw:2/ { more = $8 } /^sinusoidal/ { less = $8 } END { print more - less }' table)
    awk '/^(sinusoidal|shaw)/ && $2 < 85 { exit 1 }' table || fail "it was not learnt: $(cat table)"
    awk -v more="$beyond" 'BEGIN { exit !(more > 20) }' || fail "lines beyond the training's: $(cat table)"
    checks=$((checks + 2))
fi

# The comparisons that come along are listed, printed and sound.
"$attend" list compares >listed
for name in $(awk '{ print $1 }' listed); do
    "$attend" compare --print $name >$name.spec
    same_file $name.spec "$here/../../examples/compare/$name.spec"
    # A budget of nothing: every row is possible.
    "$attend" compare $name --set seeds=1 --set updates=1 --set train-lines=40 --set test-lines=5 --set warmup=0 --quiet \
        >table || fail "attend compare $name: $(cat table)"
    grep -qE 'possible|failed' table && fail "attend compare $name: $(cat table)"
    checks=$((checks + 1))
done
finish
