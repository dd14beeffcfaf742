#!/usr/bin/env bash
# Does every model learn with its defaults? Each one is trained on 6,000 pairs of captions with no options but the files.
#
#   examples/recipes/defaults.sh DATA [OPTIONS OF attend train]
#
# DATA holds {train,val}.{de,en}.gz of Multi30k, as they are: not tokenised. A model trains for 3 minutes of one core, so how many updates it
# makes depends on the machine; options replace this limit, as in: defaults.sh data/multi30k --updates 188
# A line for each model: updates, seconds of processor time, and on val the lowest loss per word, its perplexity and BLEU (greedy; a language
# model has none). MODELS='transformer luong' trains these only, PAIRS=30000 on more pairs.
. "$(dirname "$0")/recipe.bash"
[ $# -ge 1 ] || usage
[ ! -d "$from/multi30k" ] || from=$from/multi30k
shift
[ $# -gt 0 ] || set -- --minutes 3

for side in de en; do
    unpack "$from/train.$side.gz" | sed -n "1,${PAIRS:-6000}p" >"$work/train.$side"
    unpack "$from/val.$side.gz" >"$work/val.$side"
done

TIMEFORMAT=%U
printf '%-15s %8s %8s %8s %11s %6s\n' model updates seconds loss perplexity BLEU
for model in ${MODELS:-$("$attend" list models | sed 's/^ *\([^ ]*\).*/\1/')}; do
    data=(--target "$work/train.en" --valid-target "$work/val.en")
    [ "$model" = transformer-lm ] || data+=(--source "$work/train.de" --valid-source "$work/val.de")
    rm -f "$work"/model*
    { time "$attend" train --model "$model" "${data[@]}" --threads 1 --output "$work/model" --quiet "$@" >&3 2>&4; } 3>&1 4>&2 2>"$work/seconds"
    loss=$(sed -n 's/.*"event":"valid".*"loss":\([-0-9.e+]*\).*/\1/p' "$work/model.log.jsonl" | sort -g | head -1)
    updates=$(sed -n 's/.*"update":\([0-9]*\).*/\1/p' "$work/model.log.jsonl" | tail -1)
    bleu=-
    if [ "$model" != transformer-lm ]; then
        "$attend" translate --model "$work/model" --threads 1 --quiet <"$work/val.de" >"$work/output"
        bleu=$("$attend" score bleu --reference "$work/val.en" <"$work/output" | sed 's/^[^=]*= \([0-9.]*\) .*/\1/;q')
    fi
    printf '%-15s %8s %8.0f %8.2f %11.1f %6s\n' "$model" "$updates" "$(cat "$work/seconds")" "$loss" \
        "$(awk -v loss="$loss" 'BEGIN { print exp(loss) }')" "$bleu"
done
