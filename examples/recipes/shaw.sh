#!/usr/bin/env bash
# Relative positions in earnest: the shape of the tables of Shaw, Uszkoreit and Vaswani (2018), on lines of random words that a
# small Transformer learns to copy. The words say nothing about their order, so only positions can.
#
#   examples/recipes/shaw.sh [OPTIONS OF attend train]
#
# For each kind of position: the share of lines copied without a fault, and the words wrong (WER), on lines as long as those of
# the training (3 to 12 words) and on longer ones (14 to 18). Then what a training step costs with shaw:16 over one with
# sinusoidal, in a model of the size at which the paper's 7% would show. What is given on the command line replaces the settings
# below, as in: shaw.sh --updates 500. Some minutes on two cores.
# ATTEND names the command (default: build/attend); POSITIONS what to compare; JOBS how many to train at once (default: 2).
set -euo pipefail
attend=$(realpath "${ATTEND:-$(dirname "$0")/../../build/attend}")
positions=${POSITIONS:-none sinusoidal learned shaw:0 shaw:1 shaw:2 shaw:4 shaw:16 shaw:4:keys shaw:4:values rope alibi t5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# lines SEED COUNT LEAST MOST: so many lines of LEAST to MOST of twenty words, the same ones everywhere.
lines() {
    LC_ALL=C awk -v state="$1" -v count="$2" -v least="$3" -v most="$4" '
        function draw(n) { state = (state * 69069 + 12345) % 4294967296; return int(state / 65536) % n }
        BEGIN {
            for (i = 0; i < count; i++) {
                n = least + draw(most - least + 1)
                line = ""
                for (j = 0; j < n; j++) line = line (j ? " " : "") "w" draw(20)
                print line
            }
        }'
}
lines 1 20000 3 12 >train
lines 2 300 3 12 >seen
lines 3 300 14 18 >beyond

settings=(--model transformer --layers 2 --hidden 64 --ffn 128 --heads 4 --dropout 0 --batch-size 64 --learning-rate 0.002
    --schedule cosine --warmup 100 --updates 2000 --seed 1)
data=(--source train --target train --source-vocab word --target-vocab word)
echo "settings: ${settings[*]} $*"

# study POSITION OPTIONS...: one row of the table.
study() {
    local position=$1
    shift
    "$attend" train "${data[@]}" "${settings[@]}" "$@" --position "$position" --threads 1 --quiet --output "model.$position"
    for set in seen beyond; do
        "$attend" translate -m "model.$position" --threads 1 --quiet <"$set" >"said.$position.$set"
        "$attend" score accuracy wer --reference "$set" <"said.$position.$set" | LC_ALL=C awk '{ print $2 }'
    done | LC_ALL=C awk -v of="$position" '{ v[NR] = $1 }
        END { printf "%-14s  %7.2f%%  %6.2f  %10.2f%%  %6.2f\n", of, v[1], v[2], v[3], v[4] }'
}

printf '%-14s  %8s  %6s  %11s  %6s\n' position 'lines ok' WER 'beyond ok' WER
started=()
for position in $positions; do
    while [ "$(jobs -pr | wc -l)" -ge "${JOBS:-2}" ]; do wait -n; done
    study "$position" "$@" &
    started+=($!)
done
for job in "${started[@]}"; do wait "$job"; done

# A step's time, by the fastest of three short runs of each kind, in turn.
speed() {
    "$attend" train "${data[@]}" --model transformer --layers 3 --hidden 256 --ffn 1024 --heads 4 --batch-size 64 --updates 12 \
        --seed 1 --position "$1" --output model.speed 2>&1 | LC_ALL=C sed -n 's/.* : \([0-9.]*\) words\/s : peak.*/\1/p'
}
for round in 1 2 3; do
    speed sinusoidal >>sinusoidal.speed
    speed shaw:16 >>shaw.speed
done
LC_ALL=C awk -v plain="$(sort -n sinusoidal.speed | tail -1)" -v shaw="$(sort -n shaw.speed | tail -1)" \
    'BEGIN { printf "a training step with shaw:16 takes %.3f times that with sinusoidal (%.0f and %.0f words/s; the paper: 1.07)\n", plain / shaw, shaw, plain }'
