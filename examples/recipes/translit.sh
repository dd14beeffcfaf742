#!/usr/bin/env bash
# Transliteration of Arabic names into Latin letters, on Google's ar2en data: letters in, letters out, in one command.
#
#   examples/recipes/translit.sh DATA [OPTIONS OF attend train]
#
# DATA holds ar2en-{train,eval,test}.txt.gz: an Arabic word, a tab, its Latin spelling; eval is dev here. The checkpoint is the one
# with the fewest dev letters wrong (CER) by greedy search, evaluated after every epoch; test is scored once, at the end. WER is
# the percentage of words that are not right in every letter, CER the edit distance over letters. Options after DATA replace the
# settings below, as in: translit.sh data/translit --minutes 2
# It takes about three minutes of one core.
. "$(dirname "$0")/recipe.bash"
[ $# -ge 1 ] || usage
beam=5
shift

for split in train dev test; do
    unpack_pairs "$from/ar2en-${split/dev/eval}.txt.gz" $split
done

data=(--tsv "$work/train.tsv" --valid-tsv "$work/dev.tsv" --source-vocab char --target-vocab char --valid-metric cer)
shape=(--model luong --cell lstm --bidirectional --input-feeding --score general --embedding 128 --hidden 256)
settings=(--dropout 0.3 --batch-size 64 --learning-rate 0.002 --label-smoothing 0.1 --ema 0.999)
limits=(--schedule cosine --warmup 200 --updates 3030)
train_models "$@"

for split in $splits; do
    translate "$work/$split.source" >"$work/$split.output"
    "$attend" score accuracy cer --reference "$work/$split.target" <"$work/$split.output" | awk -v of="ar2en $split" \
        '{ v[$1] = $2 } END { printf "%-10s  WER %.2f  CER %.2f\n", of, 100 - v["accuracy"], v["cer"] }'
done
