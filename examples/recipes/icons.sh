#!/usr/bin/env bash
# Names of pictograms (Material Design Icons): a picture of 32 x 32 pixels in, the words of its name out, in one command.
#
#   examples/recipes/icons.sh DATA [OPTIONS OF attend train]
#
# DATA holds icons.npy.gz, names.txt, with a line for each picture, and {train,dev,test}.txt, numbers of pictures from 0. Every word of a dev or test
# name occurs in training, no name does. The checkpoint is the one with the most dev names right by greedy search; test is scored once, at
# the end. "exact" is the percentage of names with all words right, "F1" the mean over pictures of 2 |common words| / (words of both), words as sets.
# LOOK='off plus alert' also draws where the model looks, off.svg ..., in the first dev picture of each word that it names by this word, too.
# Options after DATA replace the settings below, as in: icons.sh data/icons --minutes 2
# The gate is off, as in formulas.sh. It takes about four minutes of one core.
. "$(dirname "$0")/recipe.bash"
[ $# -ge 1 ] || usage
beam=5
shift

unpack "$from/icons.npy.gz" >"$work/icons.npy"
for split in train dev test; do
    for file in "$from/$split.txt" "$from/names.txt"; do
        [ -r "$file" ] || refuse 1 "there is no '$file'"
    done
    sed "s,.*,$work/icons.npy[&]," "$from/$split.txt" >"$work/$split.source"
    awk 'NR == FNR { name[NR - 1] = $0; next } { print name[$1] }' "$from/names.txt" "$from/$split.txt" >"$work/$split.target"
done

data=(--source "$work/train.source" --target "$work/train.target" --valid-source "$work/dev.source" --valid-target "$work/dev.target"
    --valid-metric accuracy,loss)
shape=(--model show-attend-tell --image-channels 1 --conv 32x3s2,48x3,64x3s2,96x3 --position sinusoidal --hidden 128 --embedding 64
    --attention 64 --doubly-stochastic 0 --gate false)
settings=(--augment 0.3 --dropout 0.3 --word-dropout 0.1 --label-smoothing 0.1 --batch-size 32 --learning-rate 0.002 --ema 0.999)
limits=(--schedule cosine --warmup 200 --updates 8000 --valid-every 1000)
train_models "$@"

for split in $splits; do
    translate "$work/$split.source" >"$work/$split.output"
    paste "$work/$split.output" "$work/$split.target" | awk -F '\t' -v of="icons $split" '
        {
            split("", said); split("", right); common = both = 0
            n = split($1, word, " ")
            for (i = 1; i <= n; i++) said[word[i]]
            n = split($2, word, " ")
            for (i = 1; i <= n; i++) right[word[i]]
            for (w in said) { both++; common += w in right }
            for (w in right) both++
            f1 += both ? 2 * common / both : 1; exact += $1 == $2
        }
        END { printf "%-12s  exact %.1f  F1 %.1f\n", of, 100 * exact / NR, 100 * f1 / NR }'
done

for word in ${LOOK:-}; do
    line=$(paste "$work/dev.output" "$work/dev.target" | awk -F '\t' -v word="$word" '
        index(" " $1 " ", " " word " ") && index(" " $2 " ", " " word " ") { print NR; exit }')
    [ -z "$line" ] || "$attend" show "${models[@]}" "$(sed -n "${line}p" "$work/dev.source")" --output "$word.svg"
done
