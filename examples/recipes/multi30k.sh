#!/usr/bin/env bash
# Captions from German to English (or back) with a small Transformer, in a quarter of an hour on two cores, or in an hour.
#
#   examples/recipes/multi30k.sh DATA [de-en|en-de] [OPTIONS OF attend train]
#
# DATA holds tok/{train,val,test_2016_flickr}.lc.norm.tok.{de,en}.gz of Multi30k: lower-cased, tokenised captions. Both sides
# share 8,000 subwords. The checkpoint is the one with the least loss on val; test 2016 is looked at once, at the end, by
# greedy search. BLEU is over the given tokens, as multi-bleu.perl and `sacrebleu --tokenize none` count it. What comes after
# the direction replaces the settings below, as in: multi30k.sh data/multi30k de-en --minutes 5
#
# HOUR=1 trains a narrower and deeper model (4+4 layers of 128) on eight times as many sentences, an hour of one core, and
# searches with a beam of 5 and a length penalty of 1.5.
. "$(dirname "$0")/recipe.bash"
[ $# -ge 1 ] || usage
from=$1 direction=${2:-de-en} beam=1 penalty=0
shift $(($# < 2 ? 1 : 2))
case $direction in
de-en | en-de) source=${direction%-*} target=${direction#*-} ;;
*) refuse 2 "the direction is de-en or en-de, not '$direction'" ;;
esac

declare -A file=([train]=train [dev]=val [test]=test_2016_flickr)
for split in train dev test; do
    for side in "$source" "$target"; do
        unpack "$from/tok/${file[$split]}.lc.norm.tok.$side.gz" >"$work/$split.$side"
    done
done

data=(--source "$work/train.$source" --target "$work/train.$target" --valid-source "$work/dev.$source"
    --valid-target "$work/dev.$target")
shape=(--model transformer --heads 4 --norm pre --source-vocab spm:8000 --target-vocab spm:8000 --joint-vocab
    --share-embeddings)
if [ -z "${HOUR:-}" ]; then
    shape+=(--layers 3 --hidden 256 --ffn 1024)
    settings=(--dropout 0.1 --batch-size 32 --learning-rate 0.001)
    limits=(--schedule cosine --warmup 400 --updates 3800 --valid-every 1900)
else
    beam=5 penalty=1.5
    shape+=(--layers 4 --hidden 128 --ffn 256)
    settings=(--dropout 0.2 --batch-tokens 2048 --learning-rate 0.003)
    limits=(--schedule cosine --warmup 500 --updates 8000 --valid-every 800)
fi
settings+=(--label-smoothing 0.1 --clip-norm 1)
learn "$@"

for split in $splits; do
    answer "$work/$split.$source" --length-penalty $penalty >"$work/$split.said"
    echo "$direction ${file[$split]} $("$attend" score bleu --tokenise none --reference "$work/$split.$target" <"$work/$split.said")"
done
