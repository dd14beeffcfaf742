#!/usr/bin/env bash
# Grapheme to phoneme on the SIGMORPHON 2020 and 2021 data: letters in, phones out, in one command.
#
#   examples/recipes/g2p.sh DATA LANGUAGE [OPTIONS OF attend train]
#
# DATA holds sig20_LANGUAGE_{train,dev,test}.tsv.gz: a word, a tab, its phones with blanks between. LANGUAGE is fre, hun or dut, or
# eng_us of 2021, whose files begin with sig21_. The checkpoint is the one with the most dev words right by greedy search, evaluated
# after every epoch; test is scored once, at the end. WER is the percentage of words whose phones are not all right, PER the edit
# distance over phones. Options after LANGUAGE replace the settings below, as in: g2p.sh data/g2p fre --minutes 2
# It takes about three minutes of one core, twelve for English, for each of SEEDS.
. "$(dirname "$0")/recipe.bash"
[ $# -ge 2 ] || usage
language=$2 beam=5 year=20 dropout=0.3 updates=4520
case $language in
fre) dropout=0.5 ;;
eng_us) year=21 updates=20840 ;; # nine times the words, 20 epochs instead of 40
esac
shift 2

for split in train dev test; do
    unpack_pairs "$from/sig${year}_${language}_$split.tsv.gz" $split
done

data=(--tsv "$work/train.tsv" --valid-tsv "$work/dev.tsv" --source-vocab char --target-vocab word --valid-metric accuracy)
shape=(--model luong --cell lstm --bidirectional --input-feeding --score general --embedding 128 --hidden 256)
settings=(--dropout $dropout --batch-size 32 --learning-rate 0.002 --label-smoothing 0.1 --ema 0.999)
limits=(--schedule cosine --warmup 200 --updates $updates)
train_models "$@"

for split in $splits; do
    translate "$work/$split.source" >"$work/$split.output"
    "$attend" score accuracy wer --reference "$work/$split.target" <"$work/$split.output" | awk -v of="$language $split" \
        '{ v[$1] = $2 } END { printf "%-11s  WER %.2f  PER %.2f\n", of, 100 - v["accuracy"], v["wer"] }'
done
