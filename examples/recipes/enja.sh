#!/usr/bin/env bash
# Short sentences from English to Japanese or back, on the 50,000 pairs of small_parallel_enja, in one command.
#
#   examples/recipes/enja.sh DATA en-ja|ja-en [OPTIONS OF attend train]
#
# DATA holds {train,dev,test}.{en,ja}.gz: words separated by blanks. The checkpoint is the one with the lowest loss on dev; test is
# scored once, at the end. BLEU is over the given words, as in `sacrebleu --tokenize none`. Some test sentences occur in
# training too: how many is printed, and the BLEU of the others alone. Options after the direction replace the settings
# below, as in: enja.sh data/enja ja-en --minutes 5
# It takes ten to fourteen minutes of one core.
. "$(dirname "$0")/recipe.bash"
[ $# -ge 2 ] || usage
case $2 in
en-ja | ja-en) direction=$2 source=${2%-*} target=${2#*-} beam=5 ;;
*) refuse 2 "the direction is en-ja or ja-en, not '$2'" ;;
esac
shift 2

for split in train dev test; do
    for side in en ja; do
        unpack "$from/$split.$side.gz" >"$work/$split.$side"
    done
done

data=(--source "$work/train.$source" --target "$work/train.$target" --valid-source "$work/dev.$source"
    --valid-target "$work/dev.$target" --source-vocab spm:4000 --target-vocab spm:4000)
shape=(--model transformer --layers 4 --hidden 128 --ffn 256 --heads 4 --norm pre)
settings=(--dropout 0.1 --batch-tokens 512 --learning-rate 0.002 --label-smoothing 0.1 --clip-norm 1)
limits=(--schedule cosine --warmup 500 --updates 7000 --valid-every 700)
train_models "$@"

# bleu_of NAME: the BLEU of NAME.output by NAME.target
bleu_of() {
    "$attend" score bleu --tokenise none --reference "$work/$1.target" <"$work/$1.output"
}
for split in $splits; do
    translate "$work/$split.$source" --length-penalty 1.5 --replace-unknown >"$work/$split.output"
    cp "$work/$split.$target" "$work/$split.target"
    echo "$direction $split $(bleu_of $split)"
    # The same without the pairs whose source occurs in training.
    awk 'NR == FNR { seen[$0]; next } { print ($0 in seen) }' "$work/train.$source" "$work/$split.$source" >"$work/seen"
    for part in output target; do
        paste "$work/seen" "$work/$split.$part" | sed -n 's/^0\t//p' >"$work/unseen.$part"
    done
    echo "$direction $split without the $(grep -c 1 "$work/seen") of $(wc -l <"$work/seen") sources that occur in training $(bleu_of unseen)"
done
