#!/usr/bin/env bash
# Captions from German to English (or back) with a small Transformer, in one command and a quarter of an hour on two cores.
#
#   examples/recipes/multi30k.sh DATA [de-en|en-de] [OPTIONS OF attend train]
#
# DATA holds tok/{train,val,test_2016_flickr}.lc.norm.tok.{de,en}.gz of Multi30k: lower-cased, tokenised captions. Both sides
# share 8,000 subwords. The checkpoint is the one with the least loss on val; test 2016 is looked at once, at the end, by
# greedy search. BLEU is over the given tokens, as multi-bleu.perl and `sacrebleu --tokenize none` count it. What comes after
# the direction replaces the settings below, as in: multi30k.sh data/multi30k de-en --minutes 5 --schedule inverse-sqrt
# ATTEND names the command (default: build/attend); BEAM how many hypotheses to keep (default: 1); OUTPUT keeps the model.
set -euo pipefail
if [ $# -lt 1 ]; then
    sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
data=$1 direction=${2:-de-en}
shift $(($# < 2 ? 1 : 2))
case $direction in
de-en | en-de) from=${direction%-*} to=${direction#*-} ;;
*)
    echo "multi30k.sh: the direction is de-en or en-de, not '$direction'" >&2
    exit 2
    ;;
esac
attend=${ATTEND:-$(dirname "$0")/../../build/attend}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
output=${OUTPUT:-$work/multi30k.safetensors}

for split in train val test_2016_flickr; do
    for side in "$from" "$to"; do
        file=$data/tok/$split.lc.norm.tok.$side.gz
        [ -r "$file" ] || { echo "multi30k.sh: there is no '$file'" >&2; exit 1; }
        gzip -dc "$file" >"$work/$split.$side"
    done
done

settings=(--model transformer --layers 3 --hidden 256 --ffn 1024 --heads 4 --norm pre --dropout 0.1
    --source-vocab spm:8000 --target-vocab spm:8000 --joint-vocab --share-embeddings
    --batch-size 32 --learning-rate 0.001 --schedule cosine --warmup 400 --label-smoothing 0.1 --clip-norm 1 --seed 1)
limits=(--updates 3300 --valid-every 1100)
for option; do
    case $option in
    --epochs | --updates | --minutes) limits=() ;;
    esac
done
echo "settings: ${settings[*]} ${limits[*]} $*"
start=$(date +%s)
"$attend" train --source "$work/train.$from" --target "$work/train.$to" --valid-source "$work/val.$from" \
    --valid-target "$work/val.$to" "${settings[@]}" "${limits[@]}" "$@" --output "$output"
echo "seconds: $(($(date +%s) - start))"

for split in val test_2016_flickr; do
    "$attend" translate -m "$output" --beam "${BEAM:-1}" <"$work/$split.$from" >"$work/$split.said"
    echo "$direction $split $("$attend" score bleu --tokenise none --reference "$work/$split.$to" <"$work/$split.said")"
done
