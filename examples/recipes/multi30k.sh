#!/usr/bin/env bash
# Captions from German to English (or back) with a small Transformer, in one command and a quarter of an hour on two cores.
#
#   examples/recipes/multi30k.sh DATA [de-en|en-de] [OPTIONS OF attend train]
#
# DATA holds tok/{train,val,test_2016_flickr}.lc.norm.tok.{de,en}.gz of Multi30k: lower-cased, tokenised captions. Both sides
# share 8,000 subwords. The checkpoint is the one with the least loss on val; test 2016 is looked at once, at the end, by
# greedy search. BLEU is over the given tokens, as multi-bleu.perl and `sacrebleu --tokenize none` count it. What comes after
# the direction replaces the settings below, as in: multi30k.sh data/multi30k de-en --minutes 5
. "$(dirname "$0")/recipe.bash"
[ $# -ge 1 ] || usage
from=$1 direction=${2:-de-en} beam=1
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
shape=(--model transformer --layers 3 --hidden 256 --ffn 1024 --heads 4 --norm pre --source-vocab spm:8000
    --target-vocab spm:8000 --joint-vocab --share-embeddings)
settings=(--dropout 0.1 --batch-size 32 --learning-rate 0.001 --label-smoothing 0.1 --clip-norm 1 --seed 1)
limits=(--schedule cosine --warmup 400 --updates 3800 --valid-every 1900)
learn "$@"

for split in $splits; do
    answer "$work/$split.$source" >"$work/$split.said"
    echo "$direction ${file[$split]} $("$attend" score bleu --tokenise none --reference "$work/$split.$target" <"$work/$split.said")"
done
