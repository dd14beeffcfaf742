#!/usr/bin/env bash
# Inflection on the CoNLL-SIGMORPHON 2017 data: a lemma and the features of a form in, the form out, letter by letter.
#
#   examples/recipes/inflection.sh DATA LANGUAGE [OPTIONS OF attend train]
#
# DATA holds LANGUAGE-{train-high,dev,test}.gz: lemma, tab, form, tab, features separated by `;`. LANGUAGE is german or finnish. The
# source units are the letters of the lemma and then the features, each of them one unit: `l a u f e n [V] [PST] [2] [PL]`. The
# checkpoint is the one with the most dev forms right by greedy search, evaluated after every epoch; test is scored once, at the
# end. Prints the percentage of correct forms and the mean Levenshtein distance. SIZE=medium trains on 1,000 words instead
# of 10,000. Options after LANGUAGE replace the settings below, as in: inflection.sh data/inflection german --minutes 2
# It takes about six minutes of one core.
. "$(dirname "$0")/recipe.bash"
[ $# -ge 2 ] || usage
language=$2 beam=1 updates=6250
[ "$language" != finnish ] || updates=4695
shift 2

unpack_forms "$from/$language-train-${SIZE:-high}.gz" train
for split in dev test; do
    unpack_forms "$from/$language-$split.gz" $split
done

data=(--tsv "$work/train.tsv" --valid-tsv "$work/dev.tsv" --source-vocab word --target-vocab word --valid-metric accuracy)
shape=(--model luong --cell lstm --bidirectional --input-feeding --score general --embedding 128 --hidden 256)
settings=(--dropout 0.3 --batch-size 32 --learning-rate 0.002 --label-smoothing 0.1 --ema 0.999)
limits=(--schedule cosine --warmup 200 --updates "$updates")
train_models "$@"

for split in $splits; do
    translate "$work/$split.source" --replace-unknown | join_characters >"$work/$split.output"
    "$attend" score accuracy cer --decimals 6 --reference "$work/$split.form" <"$work/$split.output" |
        awk -v of="$language $split" 'NR == FNR { letters += gsub(/[^\200-\277]/, ""); next } { v[$1] = $2 }
            END { printf "%-12s  accuracy %.2f  mean distance %.3f\n", of, v["accuracy"], v["cer"] / 100 * letters / (NR - FNR) }' \
            "$work/$split.form" -
done
