#!/usr/bin/env bash
# Handwritten formulas (CROHME) to LaTeX: pictures in, tokens out, with the model show-attend-tell and coverage, in one command.
#
#   examples/recipes/formulas.sh DATA [OPTIONS OF attend train]
#
# DATA holds train.tar.gz (NAME.png, dev included), test2014.tar.gz, and {train,dev,test2014}.tsv: NAME, a tab, LaTeX tokens with
# blanks between. The checkpoint is the one with the most dev formulas right by greedy search; test is scored once, at the end.
# ExpRate is the percentage of formulas with every token right, <= 1 and <= 2 that of those with at most so many edits, WER
# the edits over all tokens. Options after DATA replace the settings below, as in: formulas.sh data/formulas --minutes 20
# SHORT=1 trains a smaller model for a shorter time. Planned for 120 minutes of one core, 30 with SHORT=1; neither was run to its end
# yet (doc/results.md).
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

data=(--source "$work/train.source" --target "$work/train.target" --valid-source "$work/dev.source" --valid-target "$work/dev.target"
    --valid-metric accuracy,wer,loss)
shape=(--model show-attend-tell --image-channels 1 --position sinusoidal --coverage 16 --coverage-width 7 --doubly-stochastic 0)
settings=(--augment 0.5 --dropout 0.2 --label-smoothing 0.1 --batch-size 8 --learning-rate 0.001 --ema 0.999)
limits=(--schedule cosine --warmup 400 --valid-every 2500)
if [ -z "${SHORT:-}" ]; then
    shape+=(--conv 32x5s2,48x3s2,64x3,96x3s2,96x3,96x3 --hidden 256 --embedding 128 --attention 128)
    limits+=(--updates 40000)
else
    shape+=(--conv 24x5s2,40x3s2,64x3,96x3s2,96x3 --hidden 256 --embedding 96 --attention 96)
    limits+=(--updates 14000)
fi
train_models "$@"

# Edits of a formula are its WER times the tokens of its reference.
for split in $splits; do
    sed "s,^,$work/," "$work/$split.source" >"$work/$split.paths"
    translate "$work/$split.paths" >"$work/$split.output"
    "$attend" score wer --sentence --decimals 6 --reference "$work/$split.target" <"$work/$split.output" |
        paste - "$work/$split.target" | awk -F '\t' -v of="formulas ${split/test/test2014}" '
        { n = split($2, token, " "); d = int($1 * n / 100 + 0.5); edits += d; tokens += n; right += d == 0; one += d <= 1; two += d <= 2 }
        END { printf "%-18s  %d of %d right  ExpRate %.2f  <=1 %.2f  <=2 %.2f  WER %.2f\n", of, right, NR,
              100 * right / NR, 100 * one / NR, 100 * two / NR, 100 * edits / tokens }'
done
