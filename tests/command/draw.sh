# attend show -o FILE.svg, .png and .pdf: maps of arrays and of models, their names, sums and links.
. "$(dirname "$0")/support.bash"

# drawing NAME ARGUMENTS...: the SVG file is NAME, byte by byte.
drawing() {
    local name=$1
    shift
    run show "$@" -o drawn.svg
    [ -z "${UPDATE_GOLDENS:-}" ] || cp drawn.svg "$here/$name"
    diff -u "$here/$name" drawn.svg >&2 || fail "attend show $* does not draw $name"
}

# Wide, turned and combining letters, markup, a name that is too long; sums, links, an empty cell, NaN and infinity.
printf 'der Hund\n犬\nالكلب\n<&">\n' >rows
printf '猫\nInternationalisierungsdebattenbeitrag\nété\n' >columns
drawing draw_names.svg --weights '0.5 0.25 0.25; 0 1 0; 0.1 0.2 0.7; 0.004 0.006 0.99' --rows rows --columns columns --sums --gold '0-0 1-1 2?3'
drawing draw_values.svg --weights '-2 nan 7; inf 0 1e7' --theme dark
npy heads.npy '2, 2, 1, 3' 1 0 0 0 1 0 0 0 1 1 0 0
drawing draw_heads.svg --weights heads.npy --head all --theme light
run show --weights heads.npy -o default.svg --theme light
same_file drawn.svg default.svg
awk 'BEGIN { for (i = 0; i < 300; i++) { for (j = 0; j < 40; j++) printf "%s%d", j ? " " : "", i % 40 == j; print "" } }' >long.txt
run show --weights long.txt -o long.svg
equal 300 "$(grep -c 'class="s50" .*width="3" height="3"' long.svg)" "cells of a long map"
for file in drawn.svg draw_names.svg draw_values.svg; do
    [ -e $file ] || cp "$here/$file" .
    if command -v python3 >/dev/null && python3 -c 'import xml.dom.minidom' 2>/dev/null; then
        python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' $file || fail "$file is not well-formed"
    else
        skipped "python3 is not installed, so $file was not parsed"
    fi
done
# No name may become markup, whatever its bytes.
printf 'a\x01\xff\xef\xbf\xbf\x1b]]><x/>\n' >rows
run show --weights '1 0' --rows rows -o bytes.svg
grep -q '>a����\]\]&gt;&lt;x/&gt;</text>' bytes.svg || fail "a name of odd bytes is $(grep -a '>a' bytes.svg)"

# A model: one map, or one for every head; what it says stays the same.
printf 'a b c\nb c\nc a b\nb b a c\n' >source
"$attend" train --model transformer --source source --target source --hidden 8 --ffn 8 --layers 2 --heads 2 --epochs 3 --quiet --output m
"$attend" show -m m "a b c" --target "b c" >printed
"$attend" show -m m "a b c" --target "b c" -o m.svg >said
equal "$(head -2 printed)" "$(cat said)" "what is printed beside a drawing"
grep -q '>cross attention, mean of 4 heads</text>' m.svg || fail "the title is $(grep title m.svg)"
grep -q 'rows: target · columns: source' m.svg || fail "rows and columns are not named"
equal "a b c" "$(sed -n 's/.*text-anchor="middle" font-size="13">\(.*\)<.text>/\1/p' m.svg | xargs)" "the columns"
equal "$(tail -n +5 printed | grep -o '[01]\.[0-9][0-9]' | xargs)" "$(sed -n 's/.*class="[lh][io]".*>\([0-9.]*\)<.text>/\1/p' m.svg | xargs)" "numbers in the terminal and in the drawing"
"$attend" show -m m "a b c" --kind encoder --head all -o m.svg >said
equal "1.1 1.2 2.1 2.2" "$(sed -n 's/.*class="muted".*>\([12]\.[12]\)<.text>/\1/p' m.svg | xargs)" "the titles of the heads"
"$attend" show -m m "a b c" --kind encoder --head 2.1 --threads 2 -o m.svg >said
grep -q '>encoder attention, head 2.1</text>' m.svg || fail "the title is $(grep title m.svg)"
cp m.svg before.svg
"$attend" show -m m "a b c" --kind encoder --head 2.1 --threads 1 -o m.svg >said
same_file m.svg before.svg
"$attend" show -m m "a b c" --target "b c" --level word --gold "0-0 2-1" -o m.svg >said
equal 3 "$(grep -c 'class="gold"' m.svg)" "two links and their legend"

# PNG and PDF: twice the size of the drawing, or that size in points, and some ink.
if "$attend" show --weights '0.5 0.5; 0 1' -o x.png 2>said; then
    run show --weights '0.5 0.5; 0 1' -o x.svg
    wide=$(sed -n '1s/.* width="\([0-9]*\)".*/\1/p' x.svg) tall=$(sed -n '1s/.* height="\([0-9]*\)".*/\1/p' x.svg)
    equal "$((2 * wide)) $((2 * tall))" "$(od -An -tu1 -j16 -N8 x.png | awk '{ print $3 * 256 + $4, $7 * 256 + $8 }')" "the size of a PNG file"
    run show --weights '0.5 0.5; 0 1' -o x.pdf
    equal "%PDF-" "$(head -c 5 x.pdf)" "the beginning of a PDF file"
    LC_ALL=C grep -a -q "MediaBox \[ 0 0 $(awk "BEGIN { print $wide * 0.75, $tall * 0.75 }") \]" x.pdf || fail "the page is $(LC_ALL=C grep -a MediaBox x.pdf)"
    for ending in png pdf; do
        cp x.$ending before.$ending
        sleep 1.1 # a date would differ
        run show --weights '0.5 0.5; 0 1' -o x.$ending
        same_file x.$ending before.$ending
    done
    if command -v python3 >/dev/null; then
        # The share of pixels that are white, and of those in the colour of the largest value.
        cat >ink.py <<'END'
import struct, sys, zlib
data = open(sys.argv[1], 'rb').read()
at, packed = 8, b''
while at < len(data):
    size, kind = struct.unpack('>I4s', data[at:at + 8])
    if kind == b'IHDR': width, height, depth, colour = struct.unpack('>IIBB', data[at + 8:at + 18])
    if kind == b'IDAT': packed += data[at + 8:at + 8 + size]
    at += size + 12
raw, n = zlib.decompress(packed), {2: 3, 6: 4}[colour]
line = bytearray(n * width)
counts = {}
for y in range(height):
    how, row = raw[y * (n * width + 1)], bytearray(raw[y * (n * width + 1) + 1:(y + 1) * (n * width + 1)])
    for x in range(n * width):
        a, b, c = row[x - n] if x >= n else 0, line[x], line[x - n] if x >= n else 0
        p = [abs(b - c), abs(a - c), abs(a + b - 2 * c)]
        row[x] = row[x] + [0, a, b, (a + b) // 2, (a, b, c)[p.index(min(p))]][how] & 255
    line = row
    for x in range(width):
        colour_of = bytes(row[n * x:n * x + 3]).hex()
        counts[colour_of] = counts.get(colour_of, 0) + 1
print(' '.join(str(round(100 * counts.get(c, 0) / (width * height))) for c in sys.argv[2:]))
END
        # The cell of 1 is 39 x 25 of the drawing; its number takes a part of it.
        share=$((100 * 39 * 25 / (wide * tall)))
        read -r white most < <(python3 ink.py x.png ffffff 0a2654)
        [ "$white" -gt 40 ] && [ "$most" -ge $((share - 3)) ] && [ "$most" -le $((share + 1)) ] || fail "$white% white, $most% of the largest value, not $share%"
        run show --weights '0.5 0.5; 0 1' --theme dark -o x.png
        equal 0 "$(python3 ink.py x.png ffffff)" "white pixels of a dark drawing"
    fi
else
    grep -q 'built without librsvg\|librsvg cannot be loaded' said || fail "a PNG file: $(cat said)"
    skipped "librsvg is not installed, so no PNG or PDF file was drawn"
fi

# Refusals.
refuse 2 "attend show needs a model: attend show MODEL TEXT, or -m MODEL" show
refuse 2 "--weights draws an array, so it takes neither a model nor a text" show --weights '1 0' text
refuse 2 "--target is for a model, not for --weights" show --weights '1 0' --target x
refuse 2 "--rows names the rows of --weights, which is not given" show -m m a --rows rows
refuse 2 "with --weights -o is a name that ends in .svg, .png, .pdf or .html, not 'x.tsv'" show --weights '1 0' -o x.tsv
refuse 2 "-o is a name that ends in .svg, .png, .pdf, .html, .npy, .safetensors or .tsv, not 'x.gif'" show --weights '1 0' -o x.gif
refuse 2 "--sums is for a drawing in a file: add -o FILE.svg" show --weights '1 0' --sums
refuse 2 "--gold links words; add --level word" show -m m a --gold 0-0 -o y.svg
refuse 1 "'1:2' is no link; links are source-target pairs such as 0-0 or 1?2" show --weights '1 0' --gold 1:2 -o y.svg
refuse 1 "there is no row 1 and column 0 for a link: the map has 1 rows and 2 columns, from 0" show --weights '1 0' --gold 0-1 -o y.svg
refuse 1 "--rows: 'columns' has 3 lines, and the weights have 1 rows" show --weights '1 0' --rows columns
refuse 1 "there is no head 3.1: the weights have 2 layers of 2 heads" show --weights heads.npy --head 3.1
npy flat.npy '3,' 1 2 3
refuse 1 "--weights has the shape [3]; it must be [rows,columns], [heads,rows,columns] or [layers,heads,rows,columns]" show --weights flat.npy
refuse 1 "cannot write 'no/x.svg': No such file or directory" show --weights '1 0' -o no/x.svg
finish
