# What the recipes share; each of them reads this file first. ATTEND names the command (default: build/attend), OUTPUT keeps the
# model, BEAM is how many hypotheses to keep, SPLITS what to score: dev alone while settings are chosen (default: dev test).
# SEEDS='1 2 3' trains a model with each of these seeds, as many at once as there are processors, and they answer together
# (default: 1 alone, on all processors).
set -euo pipefail
export LC_ALL=C # text is bytes here: letters are found by the bytes that begin them
recipe=$(basename "$0")
# The first argument, DATA: the folder of the recipe's data, or one that holds it under the recipe's name.
case ${1:-} in
-h | --help) # what stands at the recipe's head
    sed -n -e '1d' -e '/^#/!q' -e 's/^# \{0,1\}//p' "$0"
    exit
    ;;
esac
from=${1:-}
[ ! -d "$from/${recipe%.sh}" ] || from=$from/${recipe%.sh}

attend=${ATTEND:-$(dirname "$0")/../../build/attend}
splits=${SPLITS:-dev test}
work=$(mktemp -d)
trap 'stop_training; rm -rf "$work"' EXIT
output=${OUTPUT:-$work/model.safetensors}
models=()

# The recipe's first lines, which say how it is called.
usage() {
    sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

# refuse CODE SENTENCE
refuse() {
    echo "$recipe: $2" >&2
    exit "$1"
}

# unpack FILE: what is in it.
unpack() {
    [ -r "$1" ] || refuse 1 "there is no '$1'"
    gzip -dc "$1"
}

# unpack_pairs FILE NAME: NAME.tsv, and its two columns as NAME.source and NAME.target.
unpack_pairs() {
    unpack "$1" >"$work/$2.tsv"
    cut -f1 "$work/$2.tsv" >"$work/$2.source"
    cut -f2 "$work/$2.tsv" >"$work/$2.target"
}

# apart: on each line the letters set apart by blanks, and ▁ for a blank. together: back again.
apart() {
    sed -e 's/ /\xe2\x96\x81/g' -e 's/[^\x80-\xbf]/ &/g' -e 's/^ //'
}
together() {
    sed -e 's/ //g' -e 's/\xe2\x96\x81/ /g'
}

# learn OPTIONS...: train with the arrays data, shape, settings and limits, which the recipe fills. OPTIONS come last and so win;
# --model among them drops the shape of another model, --epochs and --minutes the limits with the schedule that leads up to them,
# and one measure of a batch the other.
learn() {
    local option seed running=0
    for option; do
        case $option in
        --epochs | --minutes) limits=() ;;
        --model) shape=() ;;
        --batch-size | --batch-tokens) mapfile -t settings < <(printf '%s\n' "${settings[@]}" | sed '/^--batch-/,+1d') ;;
        esac
    done
    for seed in ${SEEDS:-1}; do
        train_with "$seed" "$@"
    done
    while ((running)); do
        one_ends
    done
    times >"$work/times"
    awk 'NR == 2 { split($1 "m" $2, t, "m"); printf "training took %.1f minutes of one core\n", t[1] + t[3] + (t[2] + t[4]) / 60 }' \
        "$work/times"
}

# train_with SEED OPTIONS...: one of the models, beside those that are already running if there are several.
train_with() {
    local seed=$1 model=$output${SEEDS:+.$1}
    local chosen=("${shape[@]}" "${settings[@]}" --seed "$seed" "${limits[@]}" "${@:2}")
    echo "settings: ${chosen[*]}"
    models+=(-m "$model")
    if [ -z "${SEEDS:-}" ]; then
        "$attend" train "${data[@]}" "${chosen[@]}" --output "$model"
        return
    fi
    ((running < $(nproc))) || one_ends
    "$attend" train "${data[@]}" --threads 1 "${chosen[@]}" --output "$model" 2> >(sed -u "s/^/seed $seed: /" >&2) &
    running=$((running + 1))
}

# one_ends: wait until one of the models is trained; a recipe ends where one of them fails.
one_ends() {
    wait -n
    running=$((running - 1))
}

# stop_training: what still runs when the recipe ends early saves its state and goes.
stop_training() {
    local left
    left=$(jobs -p)
    [ -z "$left" ] || kill $left 2>/dev/null || true
    wait
}

# answer SOURCES OPTIONS...: the lines of the model, or of the models together, for those of SOURCES.
answer() {
    local sources=$1
    shift
    "$attend" translate "${models[@]}" --beam "${BEAM:-$beam}" "$@" <"$sources"
}
