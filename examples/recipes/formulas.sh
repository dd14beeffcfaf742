#!/usr/bin/env bash
# Handwritten formulas (CROHME) to LaTeX: pictures in, tokens out, with the model show-attend-tell and coverage, in one command.
#
#   examples/recipes/formulas.sh DATA [OPTIONS OF attend train]
#
# DATA holds train.tar.gz (NAME.png, dev included), test2014.tar.gz, and {train,dev,test2014}.tsv: NAME, a tab, LaTeX tokens with
# blanks between. The checkpoint is the one with the most dev formulas right by greedy search, of those that do not occur in training
# (half of dev does, other people having written the same formula, and 28 of the 986 in test); test is scored once, at the end.
# ExpRate is the percentage of formulas with every token right, <= 1 and <= 2 that of those with at most so many edits, WER
# the edits over all tokens. Options after DATA replace the settings below, as in: formulas.sh data/formulas --minutes 20
# Short formulas come first: formulas of up to 8 tokens, then of up to 20, then all. Attention that has to find its way through a
# long formula from the beginning learns for many epochs next to nothing. SHORT=1 trains a smaller model:
# 23 minutes of one core (doc/results.md). Without it 40,000 updates are planned for 120; they were not run yet.
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

paste "$work/dev.source" "$work/dev.target" | awk -F '\t' 'NR == FNR { known[$0]; next } !($2 in known)' "$work/train.target" - >"$work/new.tsv"
[ -s "$work/new.tsv" ] || paste "$work/dev.source" "$work/dev.target" >"$work/new.tsv"
data=(--source "$work/train.source" --target "$work/train.target" --valid-tsv "$work/new.tsv"
    --valid-metric accuracy,wer,loss)
shape=(--model show-attend-tell --image-channels 1 --position sinusoidal --coverage 16 --coverage-width 7 --doubly-stochastic 0)
settings=(--augment 0.5 --dropout 0.2 --label-smoothing 0.1 --batch-size 8 --learning-rate 0.001 --ema 0.999)
if [ -z "${SHORT:-}" ]; then
    shape+=(--conv 32x5s2,48x3s2,64x3,96x3s2,96x3,96x3 --hidden 256 --embedding 128 --attention 128)
    updates=40000
else
    shape+=(--conv 16x5s2,32x3s2,64x3s2,64x3,64x3 --hidden 192 --embedding 96 --attention 96)
    updates=20000
fi
limits=(--schedule cosine --warmup 100 --valid-every 2500 --updates $updates)

# short_first OPTIONS...: trains on formulas of up to 8 tokens, then of up to 20, for a tenth and for three twentieths as long; the
# training that follows begins with that model. A training that is continued has one already.
short_first() {
    local limit=--updates amount=$updates others=() begin=(--target-vocab "$work/words.txt") stage most
    [ -e "$output${SEEDS:+.${SEEDS%% *}}.state" ] && [[ " $* " != *' --overwrite '* ]] && return
    while [ $# -gt 0 ]; do
        case $1 in
        --updates | --epochs | --minutes) limit=$1 amount=$2 && shift 2 ;;
        --valid-*) shift 2 ;;
        --overwrite) shift ;;
        *) others+=("$1") && shift ;;
        esac
    done
    "$attend" vocabulary make "$work/train.target" -o "$work/words.txt"
    for stage in 8:0.1 20:0.15; do
        most=${stage%:*}
        paste "$work/train.source" "$work/train.target" | awk -F '\t' -v most="$most" 'split($2, token, " ") <= most' >"$work/short.tsv"
        "$attend" train --tsv "$work/short.tsv" "${shape[@]}" "${settings[@]}" "${others[@]}" "${begin[@]}" --dropout 0.1 --ema 0 \
            --schedule constant --warmup 100 --overwrite --output "$work/short$most" \
            $limit "$(awk -v all="$amount" -v share="${stage#*:}" -v whole="${limit/--minutes/}" 'BEGIN { print whole ? int(all * share) + 1 : all * share }')"
        begin=(--init "$work/short$most")
    done
    settings+=("${begin[@]}")
}
short_first "$@"
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
