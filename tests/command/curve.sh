# attend curve: the plots in the terminal, as SVG and as numbers; and what is no log.
. "$(dirname "$0")/support.bash"

line() { printf '{"event":"%s","epoch":1,"update":%s,%s,"time":"2026-11-17T19:00:00Z"}\n' "$@"; }
{
    line start 0 '"run":{"output":"a"}'
    for n in 1 2 3 4 5 6 7 8 9 10; do
        line update "$n"00 '"cost":'$((11 - n))',"seconds":1'
        line valid "$n"00 '"bleu":'$((n * 3))',"loss":'$((12 - n))',"perplexity":20,"token-accuracy":50,"better":true,"failures":0'
    done
    line end 1000 '"reason":"updates"'
} >a.log.jsonl
sed 's/"cost":/"cost":1/; s/"bleu":/"bleu":1/' a.log.jsonl >b.log.jsonl
printf '{"event":"upd' >>b.log.jsonl # of a run that was killed, or still writes

# Numbers, in the order of the metrics; a model stands for its log.
run curve a.log.jsonl b -o numbers.tsv
equal "log	metric	update	value
a.log.jsonl	cost	100	10
a.log.jsonl	cost	200	9" "$(head -3 numbers.tsv)" "numbers"
equal "81" "$(wc -l <numbers.tsv)" "lines of numbers: two runs, four curves, ten points"
grep -qx 'b	bleu	1000	130' numbers.tsv || fail "no $(grep bleu numbers.tsv)"
run curve a.log.jsonl --metric perplexity --metric bleu -o two.tsv
equal "bleu perplexity" "$(tail -n +2 two.tsv | cut -f 2 | sort -u | xargs)" "chosen curves"

# In the terminal: fitted to its width; the first value is at the top left, the last at the bottom right.
for width in 80 60 30; do
    COLUMNS=$width "$attend" curve a.log.jsonl b >plot.$width 2>said || fail "$(cat said)"
    LC_ALL=C awk -v w=$width '{ n = gsub(/[^\200-\277]/, "&") } n > w { exit 1 }' plot.$width || fail "a plot is wider than $width columns: $(cat plot.$width)"
    equal "4" "$(grep -c '^\(training\|validation\) ' plot.$width)" "plots in $width columns"
done
COLUMNS=60 "$attend" curve a.log.jsonl --metric cost >plot
equal "training loss" "$(sed -n 1p plot)" "title"
equal "     10 ┤     ●●●" "$(sed -n 2p plot)" "first point"
equal "      1 ┤                                                ●●●" "$(sed -n 13p plot)" "last point"
equal "        └───────────────────────────────────────────────────" "$(sed -n 14p plot)" "axis"
equal "         0                                      1000 updates" "$(sed -n 15p plot)" "updates"
equal "● a.log.jsonl" "$(tail -1 plot)" "legend"
equal "● a.log.jsonl
○ b" "$(tail -2 plot.80)" "legend of two"
# A mark for each column of the curve, in rows that never rise.
awk 'NR > 1 && NR < 14 { s = substr($0, 10); if (index(s, "●") < last) exit 1; last = index(s, "●") }' plot || fail "the curve does not fall: $(cat plot)"

# As SVG: well-formed, a plot for each metric, a line for each run.
run curve a.log.jsonl b -o plots.svg
equal 8 "$(grep -c '<polyline' plots.svg)" "lines in the SVG"
equal 4 "$(grep -c '<g class="plot"' plots.svg)" "plots in the SVG"
grep -q 'prefers-color-scheme: dark' plots.svg || fail "no colours for dark screens"
if command -v xmllint >/dev/null; then
    xmllint --noout plots.svg || fail "the SVG is not well-formed"
elif command -v python3 >/dev/null && python3 -c 'import xml.dom.minidom' 2>/dev/null; then
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' plots.svg || fail "the SVG is not well-formed"
else
    skipped "neither xmllint nor python3 is installed, so the SVG was not parsed"
fi

if "$attend" curve a.log.jsonl -o plots.png 2>said; then
    equal "1672 $((2 * $(sed -n '1s/.* height="\([0-9]*\)".*/\1/p' plots.svg)))" "$(od -An -tu1 -j16 -N8 plots.png | awk '{ print $3 * 256 + $4, $7 * 256 + $8 }')" "the size of a PNG file"
    [ "$(wc -c <plots.png)" -gt 5000 ] || fail "a PNG file of $(wc -c <plots.png) bytes"
    run curve a.log.jsonl -o plots.pdf
    equal "%PDF-" "$(head -c 5 plots.pdf)" "the beginning of a PDF file"
else
    grep -q 'built without librsvg\|librsvg cannot be loaded' said || fail "a PNG file: $(cat said)"
    skipped "librsvg is not installed, so no PNG or PDF file was drawn"
fi

# Refusals.
echo text >text
refuse 2 "attend curve needs a log: attend curve OUTPUT.log.jsonl" curve
refuse 1 "cannot read 'missing': No such file or directory" curve missing
refuse 1 "'text' is not a log of attend train, which writes OUTPUT.log.jsonl" curve a.log.jsonl text
refuse 2 "-o is a name that ends in .svg, .png, .pdf or .tsv, not 'plot.gif'" curve a.log.jsonl -o plot.gif
refuse 2 "no curve 'blue'; did you mean 'bleu'?" curve a.log.jsonl --metric blue
head -1 a.log.jsonl >begun
refuse 1 "there is nothing to draw yet: no log has a report or a validation" curve begun
finish
