# attend show -o FILE.html: a page that holds all weights and needs nothing else. Chromium opens it if it is installed.
. "$(dirname "$0")/support.bash"

printf 'a b c\nb c\nc a b\nb b a c\n' >source
"$attend" train --model transformer --source source --target source --hidden 8 --ffn 8 --layers 2 --heads 2 --epochs 3 --source-vocab char --target-vocab char --quiet --output m
"$attend" show -m m "ab <c>" --target "b c" --gold "0-0 1?1" -o page.html >said
equal "b c" "$(head -1 said)" "what is printed beside a page"
"$attend" show -m m "ab <c>" --target "b c" -o all.tsv >said
"$attend" show -m m "ab <c>" --target "b c" --level word -o words.tsv >said
cp page.html again.html
"$attend" show -m m "ab <c>" --target "b c" --gold "0-0 1?1" --threads 2 -o again.html >said
same_file page.html again.html

# It asks for nothing: no address but the name of SVG, and a policy that forbids the rest.
equal "http://www.w3.org/2000/svg" "$(grep -o "https\?://[^\"' ]*" page.html | sort -u | xargs)" "addresses"
grep -q "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\"" page.html || fail "no policy"
equal 2 "$(grep -c '^</script>' page.html)" "the ends of scripts"
grep -q 'not explanations' page.html || fail "the page does not say that weights are not explanations"

echo "ab <c>" >line.source
echo "b c" >line.target
"$attend" heads -m m --source line.source --target line.target --tsv heads.tsv >said
if command -v python3 >/dev/null; then
    cat >weights.py <<'END'
import base64, json, math, re, sys
text = open('page.html', encoding='utf-8').read()
data = json.loads(re.search(r'<script type="application/json" id="data">\n(.*?)</script>', text, re.S).group(1))
def values(map, rows, columns):
    raw = base64.b64decode(map['bytes'])
    steps = raw if map['steps'] == 255 else [raw[2 * i] + 256 * raw[2 * i + 1] for i in range(len(raw) // 2)]
    return [[map['high'][i] * steps[i * columns + j] / map['steps'] for j in range(columns)] for i in range(rows)]
def close(a, b, what):
    if abs(a - b) > 2e-5: sys.exit(f'{what} is {a} in the page and {b} in the file')
def vector(map, name, index):
    raw = base64.b64decode(map[name])[2 * index * map['size']:]
    return [map[name + 'Unit'] * int.from_bytes(raw[2 * d:2 * d + 2], 'little', signed=True) for d in range(map['size'])]
def pair(map, i, j, weight): # softmax(q k / sqrt(D))
    low, high = map['seen'][i]
    score = [sum(x * y for x, y in zip(vector(map, 'q', i), vector(map, 'k', k))) / math.sqrt(map['size']) for k in range(high)]
    if not low <= j < high: return close(0, weight, f'a key that is not seen, {i} {j}')
    if abs(math.exp(score[j]) / sum(math.exp(x) for x in score[low:]) - weight) > 1e-3: sys.exit(f'queries and keys do not give the weight {i} {j}')
for level, file in (('subword', 'all.tsv'), ('word', 'words.tsv')):
    kinds = {k['name']: k for l in data['levels'] if l['name'] == level for k in l['kinds']}
    heads = {}
    for line in list(open(file, encoding='utf-8'))[1:]:
        kind, layer, head, row, column, row_name, column_name, weight = line.rstrip('\n').split('\t')
        k, name = kinds[kind], f'{layer}.{head}'
        map = next(m for m in k['maps'] if m['name'] == name)
        map.setdefault('decoded', values(map, len(k['rows']), len(k['columns'])))
        if (k['rows'][int(row)], k['columns'][int(column)]) != (row_name, column_name): sys.exit(f'{line} has other names in the page')
        close(map['decoded'][int(row)][int(column)], float(weight), line)
        if level == 'subword': pair(map, int(row), int(column), float(weight))
        heads.setdefault(kind, {}).setdefault(int(layer), []).append(map['decoded']) if row == column == '0' else None
    for kind, layers in heads.items():
        k, n = kinds[kind], len(kinds[kind]['rows'])
        all = [h for l in layers.values() for h in l]
        mean = values(next(m for m in k['maps'] if m['name'] == 'mean'), n, len(k['columns']))
        for i in range(n):
            for j in range(len(k['columns'])): close(mean[i][j], sum(h[i][j] for h in all) / len(all), f'the mean of {kind}')
        for l, list_ in layers.items():
            for h, w in enumerate(list_):
                entropy = -sum(x * math.log(x) for row in w for x in row if x > 0) / n
                if abs(entropy - next(m for m in k['maps'] if m['name'] == f'{l}.{h + 1}')['entropy']) > 2e-3: sys.exit(f'the entropy of {kind} {l}.{h + 1}')
        if kind == 'cross': continue
        r = [[float(i == j) for j in range(n)] for i in range(n)]
        for l in sorted(layers):
            a = [[.5 * sum(h[i][j] for h in layers[l]) / len(layers[l]) + .5 * (i == j) for j in range(n)] for i in range(n)]
            r = [[sum(a[i][k2] * r[k2][j] for k2 in range(n)) for j in range(n)] for i in range(n)]
        rollout = values(next(m for m in k['maps'] if m['name'] == 'rollout'), n, n)
        for i in range(n):
            for j in range(n): close(rollout[i][j], r[i][j], f'the rollout of {kind}')
importance = {}
for line in list(open('heads.tsv', encoding='utf-8'))[1:]:
    kind, layer, head, _, share, _, _ = line.split('\t')
    importance[kind, f'{layer}.{head}'] = float(share)
for level in data['levels']:
    for k in level['kinds']:
        n, columns = len(k['rows']), len(k['columns'])
        relevance = values(next(m for m in k['maps'] if m['name'] == 'gradient'), n, columns)
        for i, row in enumerate(relevance):
            if level['name'] == 'subword' and abs(sum(row) - 1) > 1e-3 and sum(row) > 0: sys.exit(f"the relevance of {k['name']} sums to {sum(row)} in row {i}")
            if k['name'] == 'decoder' and any(x > 0 for x in row[i + 1:]): sys.exit('the relevance of a unit that is not there yet')
        if level['name'] == 'subword' and sum(sum(row) for row in relevance) < n - 1.001: sys.exit(f"there is no relevance in {k['name']}")
        for m in k['maps']:
            if m['layer'] > 0 and abs(m['importance'] - importance[k['name'], m['name']]) > 1e-4: sys.exit(f"the importance of {k['name']} {m['name']} is {m['importance']}")
if data['links'] != [[0, 0, 0], [1, 1, 1]] or data['linked'] != 'word': sys.exit(f"the links are {data['links']}")
if data['source'] != 'ab <c>' or data['target'] != 'b c': sys.exit('the texts differ')
END
    python3 weights.py || fail "the weights of the page differ"
    checks=$((checks + 1))
else
    skipped "python3 is not installed, so the weights of the page were not read"
fi

# Another model, whose units are words: its words are compared with those of the first.
"$attend" train --model bahdanau --source source --target source --hidden 8 --embedding 8 --attention 8 --maxout 8 --epochs 3 --quiet --output words
"$attend" show -m m "ab <c>" --target "b c" --other words -o two.html >said
equal '"name":"other 1.1","title":"other model, head 1.1","other":true' "$(grep -o '"name":"other 1.1","title":"other model, head 1.1","other":true' two.html)" "the other model, once"
grep -q '"other":"words"' two.html || fail "the other model has no name"
"$attend" show -m m "ab <c>" --target "b c" --other m -o two.html >said
equal 17 "$(grep -o '"name":"other [^"]*"' two.html | sort | uniq -c | awk '{ n += $1 } END { print n / 2 }')" "the same model as the other one: a mean and a rollout beside the heads"

# Long rows: the 8 largest of each, found again in the .npy file.
long=$(printf 'abc%.0s' {1..100})
"$attend" show -m m "$long" --target "b c" -o long.html >said
grep -q '8 largest weights' long.html || fail "long rows are not shortened"
[ "$(wc -c <long.html)" -lt 400000 ] || fail "a page of $(wc -c <long.html) bytes"

# Six layers on both sides, eight heads, 60 units: under 1 MB, in 8 bits, and the page makes the heads between words itself.
"$attend" train --model transformer --source source --target source --hidden 16 --ffn 8 --layers 6 --heads 8 --updates 1 --source-vocab char --target-vocab char --quiet --output large
text=$(printf 'abc ba %.0s' {1..9})
"$attend" show -m large "${text:0:60}" --target "${text:1:59}" -o large.html >said
"$attend" show -m large "${text:0:60}" --target "${text:1:59}" --level word -o large.tsv >said
[ "$(wc -c <large.html)" -lt 1000000 ] || fail "a page of $(wc -c <large.html) bytes"
if command -v python3 >/dev/null; then
    python3 - <<'END' || fail "the weights between words that the page makes differ"
import base64, json, re, sys
data = json.loads(re.search(r'<script type="application/json" id="data">\n(.*?)</script>', open('large.html', encoding='utf-8').read(), re.S).group(1))
kinds = [{k['name']: k for k in level['kinds']} for level in data['levels']]
joined = {}
for line in list(open('large.tsv', encoding='utf-8'))[1:]:
    kind, layer, head, row, column, _, _, weight = line.rstrip('\n').split('\t')
    units, words = kinds[0][kind], kinds[1][kind]
    if (kind, layer, head) not in joined:
        named = lambda k: next(m for m in k['maps'] if m['name'] == f'{layer}.{head}')
        map, n, wide = named(units), len(words['rows']), len(units['columns'])
        if not named(words)['joined'] or map['steps'] != 255: sys.exit(f'{kind} {layer}.{head} is not as small as it could be')
        raw, sums, count = base64.b64decode(map['bytes']), [[0.] * len(words['columns']) for _ in range(n)], [0] * n
        for i, word in enumerate(words['rowWords']):
            count[word] += word >= 0
            for j, other in enumerate(words['columnWords']):
                if word >= 0 and other >= 0: sums[word][other] += map['high'][i] * raw[i * wide + j] / 255
        joined[kind, layer, head] = [[x / max(1, c) for x in row] for row, c in zip(sums, count)]
    if abs(joined[kind, layer, head][int(row)][int(column)] - float(weight)) > .01: sys.exit(f'{line} is {joined[kind, layer, head][int(row)][int(column)]}')
END
    checks=$((checks + 1))
fi

# Arrays, also with negative numbers; names as they are.
printf '</script><b>&\n\\"x\n' >rows
run show --weights '1 -2 0; 0.5 0.25 0' --rows rows --gold 0-0 -o array.html
grep -qF '["\u003c/script>\u003cb>\u0026","\u005c\u0022x"]' array.html || fail "names of rows: $(grep '"rows"' array.html)"
grep -q '"low":\[-2,0\],"high":\[1,0.5\]' array.html || fail "ranges: $(grep '"low"' array.html)"

# In the browser: every view by its key, clicks, what is remembered, and no error.
browser=$(command -v chromium || command -v chromium-browser || true)
visit() { # visit PAGE HASH: what the script on stdin leaves in #report
    { cat "$1"; printf '<pre id="report"></pre><script>\nconst report = [];\naddEventListener("error", e => report.push("ERROR " + e.message));\n'; cat
      printf '\ndocument.getElementById("report").textContent = report.join("\\n");\n</script>\n'; } >visited.html
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update --disable-sync \
        --disable-dev-shm-usage --user-data-dir="$work/profile" --virtual-time-budget=5000 --dump-dom "file://$work/visited.html#$2" 2>/dev/null >dom ||
        fail "the browser exits with $?"
    rm -rf "$work/profile"
    sed -n '/<pre id="report">/,$p' dom | sed -e 's/.*<pre id="report">//' -e '/<\/pre>/{s/<\/pre>.*//;q}'
}
if [ -n "$browser" ] && [ -z "${NO_BROWSER:-}" ]; then
    visit page.html "kind=encoder&head=2.1&level=word" >said <<'END'
const key = (k, on) => (on || document.body).dispatchEvent(new KeyboardEvent('keydown', { key: k, bubbles: true, cancelable: true }));
const count = q => document.querySelectorAll('#figure ' + q).length, hash = () => new URLSearchParams(location.hash.slice(1));
const status = () => document.getElementById('status').textContent;
report.push('begin ' + hash().toString() + ' ' + count('rect') + ' ' + [...document.querySelectorAll('nav button')].map(b => b.textContent).join(','));
document.getElementById('kind').value = 'cross';
document.getElementById('kind').dispatchEvent(new Event('change'));
report.push('cross ' + count('rect[stroke-dasharray]') + ' links');
key('ArrowDown', document.querySelector('#figure svg'));
key('ArrowRight', document.querySelector('#figure svg'));
report.push('cell ' + status().replace(/[\d.]+$/, 'N'));
key('2');
report.push('heads ' + count('.word') + ' words ' + (count('path') > 0));
document.querySelector('#figure .word').dispatchEvent(new Event('focus'));
report.push('word ' + status().replace(/ →.*/, ''));
key('3');
report.push('model ' + count('.thumb') + ' heads ' + count('canvas'));
document.getElementById('sort').value = 'sharp';
document.getElementById('sort').dispatchEvent(new Event('change'));
const order = [...document.querySelectorAll('#figure .thumb > span')].map(e => parseFloat(e.textContent.split(' ')[1]));
report.push('sorted ' + order.every((x, i) => !i || x >= order[i - 1]) + ' ' + hash().get('sort'));
document.getElementById('sort').value = 'important';
document.getElementById('sort').dispatchEvent(new Event('change'));
const important = [...document.querySelectorAll('#figure .importance')].map(e => parseFloat(e.textContent.split(' ')[1]));
report.push('sorted ' + important.length + ' ' + important.every((x, i) => !i || x <= important[i - 1]) + ' ' + hash().get('sort') + ' ' + /Michel/.test(document.getElementById('formula').textContent));
document.querySelectorAll('#figure .thumb')[1].click();
report.push('clicked ' + hash().get('view') + ' ' + /^[12]\.[12]$/.test(hash().get('head')));
key('w');
report.push('pieces ' + hash().get('level'));
key('4');
report.push('pair ' + hash().get('view') + ' ' + count('select') + ' ' + [...document.querySelectorAll('#figure text')].filter(t => /^(q · k|score|weight) /.test(t.textContent)).length);
key('1');
document.querySelector('#figure svg').dispatchEvent(new MouseEvent('dblclick', { clientX: 9999, clientY: 9999 }));
report.push('double click ' + hash().get('view') + ' ' + [...document.querySelectorAll('#figure select')].map(x => x.selectedOptions[0].textContent).join(' '));
key('5');
report.push('difference ' + hash().get('view') + ' ' + count('svg'));
key('1');
key('s');
report.push('no special ' + hash().get('special') + ' ' + ![...document.querySelectorAll('#figure text')].some(t => t.textContent === '</s>'));
END
    equal "begin kind=encoder&amp;head=2.1&amp;level=word 26 Matrix,Heads,Model,Difference
cross 2 links
cell b → &lt;c&gt;: N
heads 5 words true
word b
model 4 heads 4
sorted true sharp
sorted 4 true important true
clicked matrix true
pieces subword
pair pair 2 3
double click pair &lt;/s&gt; &gt;
difference difference 1
no special 0 true" "$(cat said)" "the views of the page"
    visit array.html "" >said <<<'report.push(document.querySelectorAll("#figure rect").length, document.title, [...document.querySelectorAll("#figure text")].some(t => t.textContent === "<" + "/script><b>&"));'
    equal "29
Attention: 1 -2 0; 0.5 0.25 0
true" "$(cat said)" "the page of an array"
    visit large.html "kind=cross&level=word&view=model" >said <<<'report.push(document.querySelectorAll("#figure canvas").length, [...document.querySelectorAll("#figure canvas")].map(c => c.width + "x" + c.height)[0]);'
    equal "48
17x18" "$(cat said)" "the heads of a large page between words"
    "$attend" show -m m "ab c" --beam 3 -o beam.html >said
    visit beam.html "view=beam" >said <<'END'
const units = [...document.querySelectorAll('#figure .unit')], status = () => document.getElementById('status').textContent;
report.push('beam ' + (units.length > 6) + ' ' + document.querySelectorAll('#figure path').length + ' of ' + (units.length - units.filter(u => u.getAttribute('aria-label').startsWith('step 1:')).length));
units[units.length - 1].dispatchEvent(new Event('focus'));
report.push('unit ' + /log p -?[\d.]+, together -[\d.]+, (kept|dropped|ended); looked at /.test(status()));
report.push('result ' + units.filter(u => u.getAttribute('aria-label').includes('part of the result')).map(u => u.querySelector('text').textContent).join(''));
report.push('controls ' + [...document.querySelectorAll('#controls select, #controls input')].filter(e => e.offsetParent).length);
END
    equal "$(printf 'beam true N of N\nunit true\nresult %s&lt;/s&gt;\ncontrols 0' "$("$attend" show -m m "ab c" --beam 3 | head -1 | sed 's/ /␣/g; s/</\&lt;/g; s/>/\&gt;/g')")" \
        "$(sed -E 's/^beam true ([0-9]+) of \1$/beam true N of N/' said)" "the steps of the search"
    visit long.html "kind=encoder&view=model" >said <<<'const c = document.querySelector("#figure canvas"), p = new Set(c.getContext("2d").getImageData(0, 0, c.width, c.height).data); report.push(c.width + "x" + c.height, p.size > 3);'
    equal "150x150
true" "$(cat said)" "a small map of 300 units"
    visit long.html "kind=encoder&head=1.1" >said <<<'report.push(document.querySelectorAll("#figure image").length);'
    equal 1 "$(cat said)" "a page of 300 units"
else
    skipped "chromium is not installed, so the page was not opened"
fi

refuse 2 "--other is for a page that compares two models: add -o FILE.html" show -m m a --other m -o x.svg
refuse 2 "--gradients is for a page: add -o FILE.html" show -m m a --gradients -o x.svg
refuse 2 "--gradients is for a model, not for --weights" show --weights '1 0' --gradients -o x.html
refuse 1 "--other: cannot read 'missing': No such file or directory" show -m m a --other missing -o x.html
refuse 2 "the page 'x.html' has every kind and head, so --head is not for it" show -m m a --head 1.1 -o x.html
refuse 2 "the page 'x.html' has every kind and head, so --sums is not for it" show --weights '1 0' --sums -o x.html
refuse 1 "the explorer shows finite weights only; a drawing (.svg) shows NaN and infinity, too" show --weights '1 nan' -o x.html
refuse 1 "there is no row 3 and column 0 for a link: the map has 1 rows and 2 columns, from 0" show --weights '1 0' --gold 0-3 -o x.html
finish
