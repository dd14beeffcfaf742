# The outputs of attend compare beside its table: the page, LaTeX and CSV; and p, which attend score finds as well.
. "$(dirname "$0")/support.bash"

cat >odd.spec <<'S'
title = 50% of "it" & <more>_{x}
task = copy
symbols = 5
lengths = 2-4
train-lines = 200
valid-lines = 20
test-lines = 40
row = one vector, $1 & 100%_ : --model rnn-encdec --maxout 8
row = "quoted", ~^\{x} <y|z> : --model bahdanau --attention 8 --maxout 8
row = three heads : --model luong --heads 3
embedding = 16
hidden = 16
batch-size = 16
learning-rate = 0.01
updates = 60
report-every = 10
valid-every = 20
seeds = 1 2
metrics = wer accuracy
S
refuse 1 "--latex: cannot write 'no/where': the directory 'no' does not exist" compare odd.spec --latex no/where
refuse 2 "--curves is a name that ends in .svg, not 'x.png'" compare odd.spec --curves x.png
refuse 1 "--csv: cannot write 'no/where': the directory 'no' does not exist" compare odd.spec --csv no/where
refuse 2 "--csv: 'odd.spec' is the SPEC itself; name another file" compare odd.spec --csv odd.spec

code=0
"$attend" compare odd.spec --jobs 2 --quiet --json t.json --html t.html --latex t.tex --csv t.csv >table 2>said || code=$?
equal 1 "$code" "a comparison with a row that fails"
grep -q '^three heads *failed' table || fail "the table is $(cat table)"

# ---- LaTeX ----
equal 1 "$(grep -cxF '\begin{tabular}{lrrrrrrrrr}' t.tex)" "the columns of the tabular: $(cat t.tex)"
for rule in toprule midrule bottomrule 'end{tabular}'; do
    equal 1 "$(grep -cxF "\\$rule" t.tex)" "$rule"
done
equal 'setting & wer $\downarrow$ & accuracy $\uparrow$ & 2-3 words $\downarrow$ & 4 words $\downarrow$ & aer $\downarrow$ & parameters & ms/update $\downarrow$ & peak MB $\downarrow$ & words/s $\uparrow$ \\' \
    "$(sed -n '/toprule/{n;p}' t.tex)" "the head in LaTeX"
grep -qE '^one vector, \\\$1 \\& 100\\%\\_ & [0-9.]+(\$\^\{\\dagger\}\$)? \$\\pm\$ [0-9.]+ & .* & -- & [0-9]+ & [0-9.]+ & [0-9.]+ & [0-9]+ \\\\$' t.tex ||
    fail "the first row in LaTeX: $(cat t.tex)"
grep -qF "''quoted'', \\textasciitilde{}\\textasciicircum{}\\textbackslash{}\\{x\\} \\textless{}y\\textbar{}z\\textgreater{} & \\textbf{" t.tex ||
    fail "the second row in LaTeX: $(cat t.tex)"
grep -qxF 'three heads & \multicolumn{9}{l}{\emph{failed}} \\' t.tex || fail "the row that failed in LaTeX: $(cat t.tex)"
# Outside comments there are as many fields in every row.
equal 9 "$(sed -n '/midrule/,/bottomrule/p' t.tex | grep '\\\\$' | grep -v multicolumn | sed 's/\\&//g' | tr -cd '&\n' |
    awk '{ print length($0) }' | sort -u)" "fields in a row"
if command -v pdflatex >/dev/null; then
    { printf '%s\n' '\documentclass{article}' '\usepackage{booktabs}' '\begin{document}' '\tiny' '\input{t.tex}' '\end{document}'; } >page.tex
    pdflatex -interaction=nonstopmode -halt-on-error page.tex >latex.log || fail "LaTeX says $(cat latex.log)"
else
    skipped "there is no pdflatex to compile the table"
fi

# ---- CSV ----
equal 7 "$(grep -c $'\r$' t.csv)" "lines of the CSV that end with CR LF"
equal "setting,seed,state,wer,accuracy,wer_2_3,wer_4,aer,parameters,ms_per_update,peak_mb,words_per_second,seconds,why,command" \
    "$(head -1 t.csv | tr -d '\r')" "the head of the CSV"
equal 2 "$(grep -c '^"""quoted"", ~^\\{x} <y|z>",[12],done,' t.csv)" "quoted fields"
equal 2 "$(grep -c '^three heads,[12],failed,,,' t.csv)" "runs that failed"

# ---- All of them, read back ----
if command -v python3 >/dev/null; then
    python3 - <<'P' || fail "the outputs do not agree"
import csv, json
from html.parser import HTMLParser
table = json.load(open('t.json'))
rows = list(csv.DictReader(open('t.csv', newline='', encoding='utf-8'), strict=True))
runs = [(row, run) for row in table['rows'] for run in row['runs']]
assert len(rows) == len(runs) == 6
for line, (row, run) in zip(rows, runs):
    assert line['setting'] == row['settings']['row'] and line['seed'] == str(run['seed']), line
    assert line['state'] == run['state'] and line['command'] == run['line'] and line['why'] == run.get('why', '')
    for measure in table['measures']:
        value = run.get(measure['name'])
        assert (line[measure['name']] == '' if value is None else float(line[measure['name']]) == value), line

class Page(HTMLParser):
    void = {'meta', 'br', 'rect', 'path', 'polyline', 'circle'}
    def __init__(self):
        super().__init__()
        self.open, self.count, self.text = [], {}, ''
    def handle_starttag(self, tag, attributes):
        self.count[tag] = self.count.get(tag, 0) + 1
        assert len({name for name, _ in attributes}) == len(attributes)
        if tag not in self.void:
            self.open.append(tag)
    def handle_startendtag(self, tag, attributes):
        self.count[tag] = self.count.get(tag, 0) + 1
    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag
    def handle_data(self, data):
        self.text += data
page = Page()
source = open('t.html', encoding='utf-8').read()
page.feed(source)
page.close()
assert not page.open
# Two curves for each of two rows with two seeds, and a line by length for each.
assert page.count['polyline'] == 2 * 2 * 2 + 2, page.count
assert page.count['figure'] == 1 and source.count('class="map"') == 2   # one model attends
assert page.text.count('†') == 1 + sum((p or 1) < 0.05 for row in table['rows'] for p in row['p'].values())
assert page.text.count('↓') == 1 + 6 and page.text.count('↑') == 1 + 2
assert 'three heads' in page.text and 'failed: ' in page.text and '"quoted", ~^\\{x} <y|z>' in page.text
assert 'prefers-color-scheme: dark' in source and '@media print' in source and '<script' not in source
# The best row has no p, the others have; a row without values has none.
for name in ('wer', 'accuracy'):
    known = [row['p'][name] for row in table['rows']]
    assert sorted(p is None for p in known) == [False, True, True], known

# For attend score: the outputs of both seeds, one after another.
done = [row for row in table['rows'] if row['state'] == 'done']
for name, row in zip('ab', done):
    open(name, 'w').write(''.join(open(run['folder'] + '/test.txt').read() for run in row['runs']))
open('c', 'w').write(2 * open('odd.spec.runs/data/test.target').read())
open('p', 'w').write('%.4f' % next(row['p']['wer'] for row in done if row['p']['wer'] is not None))
P
    "$attend" score wer --reference c --compare b --json <a >scored.json || fail "attend score says $(cat scored.json)"
    python3 -c '
import json, sys
def find(value):
    if isinstance(value, dict):
        if "p" in value: return value["p"]
        value = list(value.values())
    for one in value if isinstance(value, list) else []:
        if find(one) is not None: return find(one)
assert abs(find(json.load(open("scored.json"))) - float(open("p").read())) < 1e-3, (find(json.load(open("scored.json"))), open("p").read())
' || fail "p is not that of attend score: $(cat scored.json) $(cat p)"
else
    skipped "there is no python3 to read the outputs back"
fi

# One setting alone, without an axis: every output still has its table.
sed '/^row/d; s/^title.*//' odd.spec >one.spec
echo 'model = bahdanau' >>one.spec
"$attend" compare one.spec --quiet --html o.html --latex o.tex --csv o.csv --set 'seeds=1' --set 'attention=8' --set maxout=8 >/dev/null
equal "seed,state,wer," "$(head -1 o.csv | grep -o '^seed,state,wer,')" "the CSV of one setting"
equal 0 "$(grep -c '†' o.tex || true)" "marks of one setting"
grep -q '^wer \$.downarrow\$ & ' o.tex || fail "the LaTeX of one setting: $(cat o.tex)"
finish
