# attend compare at its edges: SPECs as editors and other systems write them, lists with nothing in them, large seeds, files
# of a row's own, and those who start it with signals ignored.
. "$(dirname "$0")/support.bash"

printf 'a b\nc d\n\nx y\n' >words
printf 'p q\nr s\nt u\nv w\n' >others
cat >tiny.spec <<'S'
source = words
target = words
test-source = words
test-target = words
source-vocab = word
target-vocab = word
model = luong
embedding = 4
hidden = 4
updates = 2
seeds = 1
metrics = wer accuracy
S
table() { # ARGUMENTS...: the table of that comparison; what it says is in `said`
    "$attend" compare "$@" 2>said || fail "attend compare $* says $(cat said)"
}
head_of() { # ... and its first lines, without what depends on the clock
    table "$@" | sed -nE '1,2s/ +[a-z0-9./]+ +[a-zA-Z0-9.]+( MB)? +[a-z0-9./]+$//p'
}
trained() { # how many runs the last one trained
    grep -c ' s$' said || true
}
plain=$(head_of tiny.spec)

# Lists of blanks are empty, and a number that no machine word holds is none.
refuse 2 "--set: seeds takes whole numbers, and there is none" compare tiny.spec --set 'seeds= '
refuse 2 "--set: metrics takes names, and there is none" compare tiny.spec --set 'metrics= '
refuse 2 "--set: seeds takes up to 100 whole numbers separated by blanks, not '99999999999999999999'" \
    compare tiny.spec --set seeds=99999999999999999999
table tiny.spec --set seeds=9007199254740993 --verbose >/dev/null
grep -q -- '--seed 9007199254740993 ' said || fail "a large seed becomes $(grep -o -- '--seed [^ ]*' said)"

# What other systems write: ends of lines, a mark of byte order, letters that are not UTF-8. What is no text is no SPEC.
sed 's/$/\r/' tiny.spec >written.spec
equal "$plain" "$(head_of written.spec)" "lines that end in CR LF"
(printf '\xef\xbb\xbf' && cat tiny.spec) >written.spec
equal "$plain" "$(head_of written.spec)" "a mark of byte order"
(cat tiny.spec && printf 'hidden = 8\0\n') >written.spec
refuse 1 "'written.spec' is no text, as there is a zero byte in it" compare written.spec
(cat tiny.spec && printf 'title = caf\xe9\nrow = \xe9 "x" : --hidden 5\n') >written.spec
table written.spec --json written.json >/dev/null
if command -v python3 >/dev/null; then
    equal '['\''caf\ufffd'\'', '\''\ufffd "x"'\'']' "$(python3 -c 'import json
table = json.load(open("written.json"))
print(ascii([table["title"], table["rows"][0]["settings"]["row"]]))')" "names that are not UTF-8"
fi

# The tokeniser of bleu, and models that write no capitals.
printf 'A b c d.\nC d e f.\n' >capitals
tr A-Z a-z <capitals >small
printf 'tokenise = nome\n' | cat tiny.spec - >written.spec
refuse 2 "written.spec:$(wc -l <written.spec): no tokeniser 'nome'; did you mean 'none'?" compare written.spec
scored() { # ARGUMENTS...: the quality that the JSON has
    table tiny.spec --set target=small --set 'metrics=bleu wer' --set embedding=8 --set hidden=16 --set updates=60 \
        --set learning-rate=0.05 "$@" --json scored.json | tr '\n' ' ' >printed
    grep -oE '"(bleu|wer)": [0-9.]+' scored.json | sort -u | tr '\n' ' '
}
lower=$(scored --set test-target=small --set source=small --set test-source=small)
equal '"bleu": 100.0 "wer": 0.0 ' "${lower/100.00000000000004/100.0}" "scores in small letters"
equal "$lower" "$(scored --set test-target=capitals --set source=small --set test-source=capitals --set lowercase=true)" "scores without capitals"
grep -q "bleu uses the tokeniser 13a. Scores are lower-cased." printed || fail "the notes are $(tail -3 printed)"
scored --set test-target=small --set source=small --set test-source=small --set tokenise=none >/dev/null
equal 0 "$(trained)" "trainings for another tokeniser"
grep -q "the tokeniser none\." printed || fail "the notes are $(tail -3 printed)"

# Lines without a word are a length of their own.
printf '\n\na\nb\n' >short
table tiny.spec --set test-source=short --json short.json >/dev/null
if command -v python3 >/dev/null; then
    python3 - <<'P' || fail "the scores of lines without a word are not theirs"
import json
table = json.load(open('short.json'))
assert [(m['least_length'], m['most_length']) for m in table['measures'] if 'most_length' in m] == [(0, 0), (1, 1)]
mean = table['rows'][0]['mean']
assert mean['wer_0'] != mean['wer'] != mean['wer_1']
P
fi

# A row may have files of its own. Other files, or other bytes in them, are another training, of that row alone.
(cat tiny.spec && echo 'row = one : --source words --target words' && echo 'row = two : --source others --target others') >rows.spec
table rows.spec >/dev/null
equal 2 "$(trained)" "trainings of two rows"
sed -i 's/^row = one.*/row = one : --source others --target words/' rows.spec
table rows.spec >/dev/null
equal 1 "$(trained)" "trainings for a row with another file"
sed -i 's/^row = one.*/row = one : --source words --target words/' rows.spec
echo 'p p' >>others
table rows.spec >/dev/null
equal 1 "$(trained)" "trainings for a file that changed"
refuse 1 "cannot read 'nothing': No such file or directory" compare rows.spec --set 'row=three : --source nothing --target words'
refuse 2 "shaw-k has a task, which generates all data, but also names files for 'mine'" \
    compare shaw-k --set 'row=mine : --source words --target words'

# What is wrong with the data is a failure, which no setting is blamed for, and is said once. Links that cannot be read are
# known before anything is trained.
refused() { # CODE SENTENCE ARGUMENTS...
    local expected=$1 sentence=$2 got=0
    shift 2
    "$attend" compare tiny.spec --quiet --directory bad "$@" >out 2>said || got=$?
    equal "$expected attend: $sentence" "$got $(cat said)" "attend compare $*"
    [ ! -s out ] || fail "attend compare $* prints $(cat out)"
}
head -3 words >three
refused 1 "tiny.spec: all runs failed: line 4 of 'words' has no partner: 'three' ends after 3 lines" --set target=three --set 'hidden=4 6'
refused 1 "tiny.spec: the run failed: line 4 of 'words' has no partner: 'three' ends after 3 lines" --set target=three
refused 2 "tiny.spec: --layers is 5, and model 'luong' has at most 4" --set layers=5 --set 'hidden=4 6'
refused 1 "three: line 1 of the references: 'a' is not a link; a link is written like 0-1, or 0?1 if it is only possible" \
    --set test-source=three --set test-target=three --set test-alignment=three
equal '' "$(find bad -name 'model*')" "models of runs that could not be"

# Links are scored on the test alone.
refuse 2 "--set: no setting 'beyond-alignment' for attend compare; did you mean 'test-alignment' or 'guided-alignment'?" \
    compare tiny.spec --set beyond-alignment=words

# A path that is too long is refused before anything is made there.
long=$(printf 'x%.0s' {1..250})
mkdir -p $long/$long/$long
refuse 2 "the path '${long:0:60}...' is too long for the runs: it may have 800 letters" compare tiny.spec --directory $long/$long/$long/$long

# The SPEC is not written over, and no model is tried on columns it was not trained on.
refuse 2 "--json: './tiny.spec' is the SPEC itself; name another file" compare tiny.spec --json ./tiny.spec
refuse 2 "--html: 'words' is the file of 'source'; name another file" compare tiny.spec --html words
refuse 2 "--json: 'others' is the file of 'test'; name another file" compare tiny.spec --set test-target=others --json others
printf 'a\tb\nc\td\n' >pairs
grep -v 'source =\|target =' tiny.spec >columns.spec
refuse 2 "columns.spec: columns must be the same for the training and the tests of all runs" \
    compare columns.spec --set tsv=pairs --set test-tsv=pairs --set 'columns=1,2 2,1'

# Settings without effect are named; --quiet does not name them.
table tiny.spec --set symbols=9 --set beyond=5-6 --set tokenise=char >/dev/null
equal "attend: tiny.spec has settings without effect: 'symbols' (the data is named), 'beyond' (the data is named), 'tokenise' (no metric uses a tokeniser)" \
    "$(grep 'without effect' said)" "settings without effect"
table tiny.spec --set symbols=9 --quiet >/dev/null
equal '' "$(cat said)" "settings without effect, quietly"
table tiny.spec --set metrics=bleu --set tokenise=char >/dev/null
equal '' "$(grep 'without effect' said || true)" "a tokeniser with effect"

# Whoever starts it may have ignored that children end.
if command -v perl >/dev/null; then
    timeout 60 perl -e '$SIG{CHLD} = "IGNORE"; exec @ARGV' "$attend" compare tiny.spec --directory alone --quiet >/dev/null ||
        fail "it waits for children whose end is ignored"
    checks=$((checks + 1))
fi
finish
