#!/usr/bin/env bash
# Handwritten formulas (CROHME) to LaTeX: pictures in, tokens out, with the model show-attend-tell and coverage, in one command.
#
#   examples/recipes/formulas.sh DATA [OPTIONS OF attend train]
#
# DATA holds train.tar.gz (NAME.png, dev included), test2014.tar.gz, and {train,dev,test2014}.tsv: NAME, a tab, LaTeX tokens with
# blanks between. The checkpoint is the one with the most dev formulas right by greedy search, of those that do not occur in training
# (half of dev does, other people having written the same formula, and 28 of the 986 in test); test is scored once, at the end.
# ExpRate is the percentage of formulas with every token right, <= 1 and <= 2 that of those with at most so many edits, WER
# the edits over all tokens. Options after DATA replace the settings below, as in: formulas.sh data/formulas --minutes 20
# Short formulas come first: single symbols, then formulas of up to 3, 7 and 15 tokens, then all. A model that begins with long ones
# does not find what to look at for many epochs, and learns the texts by heart in the meantime. Pairs and triples of short formulas
# side by side are added from 7 tokens on, so that what follows cannot be told from what was written. The gate is off: it closes
# in the first updates, when the context says nothing yet, and then the encoder learns next to nothing (doc/results.md).
# It takes about an hour of one core. SHORT=1 trains a smaller model, in about 20 minutes (with --updates 4500 in about 7).
. "$(dirname "$0")/recipe.bash"
[ $# -ge 1 ] || usage
beam=10
shift

# unpack_pictures FILE FOLDER
unpack_pictures() {
    [ -r "$1" ] || refuse 1 "there is no '$1'"
    mkdir "$work/$2" && tar -xzf "$1" -C "$work/$2"
}

unpack_pictures "$from/train.tar.gz" train
unpack_pictures "$from/test2014.tar.gz" test2014
ln -s train "$work/dev"
ln -s test2014 "$work/test"
for split in train dev test; do
    file=$from/${split/test/test2014}.tsv
    [ -r "$file" ] || refuse 1 "there is no '$file'"
    sed -e "s,\t.*,.png," -e "s,^,$split/," "$file" >"$work/$split.source"
    cut -f2 "$file" >"$work/$split.target"
done

paste "$work/dev.source" "$work/dev.target" | awk -F '\t' 'NR == FNR { known[$0]; next } !($2 in known)' "$work/train.target" - >"$work/new.tsv"
[ -s "$work/new.tsv" ] || paste "$work/dev.source" "$work/dev.target" >"$work/new.tsv"
data=(--source "$work/train.source" --target "$work/train.target" --valid-tsv "$work/new.tsv"
    --valid-metric accuracy,wer,loss)
shape=(--model show-attend-tell --image-channels 1 --position sinusoidal --coverage 16 --coverage-width 7 --doubly-stochastic 0 --gate false)
settings=(--dropout 0.2 --label-smoothing 0.1 --word-dropout 0.1 --batch-size 16 --learning-rate 0.002 --ema 0.999)
if [ -z "${SHORT:-}" ]; then
    shape+=(--conv 16x5s2,32x3s2,32x3r,64x3s2,64x3r,64x3r,64x3r --hidden 224 --embedding 96 --attention 112)
    settings+=(--augment 1 --elastic 0.7)
    updates=32000
else
    shape+=(--conv 16x5s2,32x3s2,64x3s2,64x3,64x3 --hidden 192 --embedding 96 --attention 96)
    settings+=(--augment 0.5)
    updates=18000
fi
limits=(--schedule cosine --warmup 100 --valid-every 1500 --updates $updates)

# joined COUNT MOST <TSV: pairs and triples of its lines with up to MOST tokens together. The random numbers are those of Park and Miller.
joined() {
    awk -F '\t' -v count="$1" -v most="$2" '
        function draw(below) { state = state * 16807 % 2147483647; return int(state / 2147483647 * below) }
        { path[NR] = $1; text[NR] = $2; size[NR] = split($2, token, " ") }
        END {
            state = 1
            for (tries = 100 * count; NR > 0 && count > 0 && tries > 0; tries--) {
                line = ""; words = ""; tokens = 0
                for (parts = 2 + draw(2); parts > 0; parts--) {
                    k = 1 + draw(NR)
                    line = line (line == "" ? "" : " | ") path[k]; words = words (words == "" ? "" : " ") text[k]; tokens += size[k]
                }
                if (tokens <= most) { print line "\t" words; count-- }
            }
        }'
}

# up_to TOKENS: the pairs of training that are no longer
up_to() {
    paste "$work/train.source" "$work/train.target" | awk -F '\t' -v most="$1" 'split($2, token, " ") <= most'
}

# easy_pairs MOST: formulas of up to so many tokens.
easy_pairs() {
    up_to "$1"
    [ "$1" -lt 7 ] || up_to 3 | joined $((pairs / 2)) "$1"
}
pairs=$(wc -l <"$work/train.target")
"$attend" vocabulary make "$work/train.target" -o "$work/words.txt"
first_vocabulary=(--target-vocab "$work/words.txt")
easy='--augment 0.5 --elastic 0 --dropout 0.1 --ema 0 --learning-rate'
short=("1 4/45 $easy 0.003" "3 6/45 $easy 0.002" "7 12/45 $easy 0.002" "15 15/45 $easy 0.002")
first_on short "$@"
up_to 7 | joined $((pairs * 3 / 8)) 16 >"$work/joined.tsv"
cut -f1 "$work/joined.tsv" >>"$work/train.source"
cut -f2 "$work/joined.tsv" >>"$work/train.target"
train_models "$@"

# Edits of a formula are its WER times the tokens of its reference.
for split in $splits; do
    sed "s,^,$work/," "$work/$split.source" >"$work/$split.paths"
    translate "$work/$split.paths" --length-penalty 1 >"$work/$split.output"
    "$attend" score wer --sentence --decimals 6 --reference "$work/$split.target" <"$work/$split.output" |
        paste - "$work/$split.target" | awk -F '\t' -v of="formulas ${split/test/test2014}" '
        { n = split($2, token, " "); d = int($1 * n / 100 + 0.5); edits += d; tokens += n; right += d == 0; one += d <= 1; two += d <= 2 }
        END { printf "%-18s  %d of %d right  ExpRate %.2f  <=1 %.2f  <=2 %.2f  WER %.2f\n", of, right, NR,
              100 * right / NR, 100 * one / NR, 100 * two / NR, 100 * edits / tokens }'
done
