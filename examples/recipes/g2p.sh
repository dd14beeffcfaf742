#!/usr/bin/env bash
# Grapheme to phoneme on the SIGMORPHON 2020 data: letters in, phones out, in one command.
#
#   examples/recipes/g2p.sh DATA LANGUAGE [OPTIONS OF attend train]
#
# DATA holds sig20_LANGUAGE_{train,dev,test}.tsv.gz: a word, a tab, its phones with blanks between. LANGUAGE is fre, hun or
# dut. The checkpoint is the one with the most dev words right, tried after every epoch by greedy decoding; test is looked at
# once, at the end. WER is the share of words whose phones are not all right, PER the edit distance over phones. What comes
# after LANGUAGE replaces the settings below, as in: g2p.sh data/g2p fre --minutes 2
# ATTEND names the command (default: build/attend); BEAM how many hypotheses to keep (default: 5); OUTPUT keeps the model.
set -euo pipefail
if [ $# -lt 2 ]; then
    sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
data=$1 language=$2
shift 2
attend=${ATTEND:-$(dirname "$0")/../../build/attend}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
output=${OUTPUT:-$work/g2p.safetensors}

for split in train dev test; do
    file=$data/sig20_${language}_$split.tsv.gz
    [ -r "$file" ] || { echo "g2p.sh: there is no '$file'" >&2; exit 1; }
    gzip -dc "$file" >"$work/$split.tsv"
    cut -f1 "$work/$split.tsv" >"$work/$split.words"
    cut -f2 "$work/$split.tsv" >"$work/$split.phones"
done

settings=(--model luong --cell lstm --bidirectional --input-feeding --score general --embedding 128 --hidden 256
    --dropout 0.3 --batch-size 64 --learning-rate 0.001 --label-smoothing 0.1 --ema 0.999 --seed 1)
limits=(--epochs 100)
for option; do
    case $option in
    --epochs | --updates | --minutes) limits=() ;;
    --model) settings=(--dropout 0.3 --batch-size 64 --label-smoothing 0.1 --ema 0.999 --seed 1) ;;
    esac
done
echo "settings: ${settings[*]} ${limits[*]} $*"
start=$(date +%s)
"$attend" train --tsv "$work/train.tsv" --valid-tsv "$work/dev.tsv" --source-vocab char --target-vocab word \
    --valid-metric accuracy "${settings[@]}" "${limits[@]}" "$@" --output "$output"
echo "seconds: $(($(date +%s) - start))"

for split in dev test; do
    "$attend" translate -m "$output" --beam "${BEAM:-5}" <"$work/$split.words" >"$work/$split.said"
    "$attend" score accuracy wer --reference "$work/$split.phones" <"$work/$split.said" |
        LC_ALL=C awk -v of="$language $split" '{ v[$1] = $2 } END { printf "%-8s  WER %.2f  PER %.2f\n", of, 100 - v["accuracy"], v["wer"] }'
done
