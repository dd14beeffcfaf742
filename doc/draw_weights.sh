#!/usr/bin/env bash
# Draws what `attend show` prints as an SVG. The picture of the README, after the tour's training:
#
#   attend show -m en-de.safetensors "today the old teacher has found a black cat in the garden" | doc/draw_weights.sh > doc/weights.svg
set -euo pipefail
exec awk '
function text(x, y, class, words) { printf "<text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n", x, y, class, words }
function escape(word) { gsub(/&/, "\\&amp;", word); gsub(/</, "\\&lt;", word); gsub(/>/, "\\&gt;", word); return word }
BEGIN { cell = 64; line = 30; left = 108; top = 44 }
{ gsub(/[█▓▒░]/, "") }
NR < 4 { next } # the translation, its log-probability, an empty line
NR == 4 { columns = split($0, source, " "); next }
{
    rows++
    name[rows] = $1
    for (c = 1; c <= columns; c++)
        weight[rows, c] = $(c + 1)
}
END {
    width = left + columns * cell + 16
    height = top + rows * line + 16
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n", width, height, width, height
    print "<title>Attention weights: the source across, the translation down</title>"
    print "<style>text{font:14px system-ui,sans-serif;fill:#1c2733}.c{text-anchor:middle}.r{text-anchor:end}.n{font-size:12px;text-anchor:middle;fill:#44576b}.w{font-size:12px;text-anchor:middle;fill:#fff}</style>"
    printf "<rect x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#fbfcfe\" stroke=\"#c9d3de\"/>\n", width - 1, height - 1
    for (c = 1; c <= columns; c++)
        text(left + (c - 0.5) * cell, top - 14, "c", escape(source[c]))
    for (r = 1; r <= rows; r++) {
        text(left - 12, top + r * line - 10, "r", escape(name[r]))
        for (c = 1; c <= columns; c++) {
            w = weight[r, c]
            printf "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#e8eef5\"/>", left + (c - 1) * cell, top + (r - 1) * line, cell - 2, line - 2
            if (w > 0)
                printf "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#0b5cad\" fill-opacity=\"%.2f\"/>", left + (c - 1) * cell, top + (r - 1) * line, cell - 2, line - 2, w
            print ""
            if (w >= 0.01)
                text(left + (c - 0.5) * cell - 1, top + r * line - 11, w > 0.45 ? "w" : "n", w)
        }
    }
    print "</svg>"
}'
