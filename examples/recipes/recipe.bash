# Shared by the recipes; each of them sources this file first. Variables: ATTEND is the command (default: build/attend), OUTPUT
# the file that keeps the model (run again, a recipe continues its training, or with --overwrite starts again), BEAM the
# size of the beam, SPLITS what to score: dev only while settings are chosen (default: dev test). SEEDS='1 2 3' trains an ensemble, one model for each of these seeds, as many at once as there are processors
# (default: seed 1 only, on all processors).
set -euo pipefail
export LC_ALL=C # text is processed as bytes: a character starts at a byte that does not continue another
recipe=$(basename "$0")
# The first argument, DATA: the folder of the recipe's data, or one that holds it under the recipe's name.
case ${1:-} in
-h | --help) # the comment at the top of the recipe
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

# The first lines of the recipe, with its usage.
usage() {
    sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

# refuse CODE MESSAGE
refuse() {
    echo "$recipe: $2" >&2
    exit "$1"
}

# unpack FILE: its decompressed contents.
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

# unpack_forms FILE NAME: of lines with a lemma, a form and features, NAME.source, NAME.tsv with units between blanks, and NAME.form as it is.
unpack_forms() {
    unpack "$1" >"$work/lines"
    cut -f2 "$work/lines" >"$work/$2.form"
    cut -f1 "$work/lines" | split_characters >"$work/lemma"
    cut -f3 "$work/lines" | sed -e 's/;/] [/g' -e 's/.*/[&]/' | paste -d ' ' "$work/lemma" - >"$work/$2.source"
    split_characters <"$work/$2.form" | paste "$work/$2.source" - >"$work/$2.tsv"
}

# split_characters: the characters of each line separated by blanks, and ▁ for a blank. join_characters: the reverse.
split_characters() {
    sed -e 's/ /\xe2\x96\x81/g' -e 's/[^\x80-\xbf]/ &/g' -e 's/^ //'
}
join_characters() {
    sed -e 's/ //g' -e 's/\xe2\x96\x81/ /g'
}

# train_models OPTIONS...: trains with the arrays data, shape, settings and limits, which the recipe sets. OPTIONS come last and override the others;
# --model among them removes the shape of another model, --epochs and --minutes the limits and their schedule,
# and one unit of the batch size the other.
train_models() {
    local option seed running=0 begin=(--resume)
    for option; do
        case $option in
        --epochs | --minutes) limits=() ;;
        --model) shape=() ;;
        --overwrite) begin=() ;;
        --batch-size | --batch-tokens) mapfile -t settings < <(printf '%s\n' "${settings[@]}" | sed '/^--batch-/,+1d') ;;
        esac
    done
    for seed in ${SEEDS:-1}; do
        train_with "$seed" "$@"
    done
    while ((running)); do
        wait_for_one
    done
    times >"$work/times"
    awk 'NR == 2 { split($1 "m" $2, t, "m"); printf "training took %.1f minutes of one core\n", t[1] + t[3] + (t[2] + t[4]) / 60 }' \
        "$work/times"
}

# first_on STAGES OPTIONS...: before the main training, shorter ones on easier pairs, each of which begins with the model of the one before; the
# main one begins with the last. STAGES is an array of "NAME SHARE OPTIONS", and the recipe's function easy_pairs NAME prints the pairs of one. SHARE is
# of what limits the main training (OPTIONS, or the updates of the recipe). The model that it begins with stays as OUTPUT.begin, for a training that is continued.
first_on() {
    local -n stages=$1
    local limit=--updates amount=$updates others=() begin=("${first_vocabulary[@]}") stage name share own
    shift
    if [ -e "$output${SEEDS:+.${SEEDS%% *}}.state" ] && [[ " $* " != *' --overwrite '* ]]; then
        settings+=(--init "$output.begin")
        return
    fi
    while [ $# -gt 0 ]; do
        case $1 in
        --updates | --epochs | --minutes) limit=$1 amount=$2 && shift 2 ;;
        --valid-*) shift 2 ;;
        --overwrite) shift ;;
        *) others+=("$1") && shift ;;
        esac
    done
    for stage in "${stages[@]}"; do
        read -r name share own <<<"$stage"
        easy_pairs "$name" >"$work/easy.tsv"
        [ -s "$work/easy.tsv" ] || continue
        "$attend" train --tsv "$work/easy.tsv" "${shape[@]}" "${settings[@]}" "${others[@]}" "${begin[@]}" --schedule constant --warmup 50 $own \
            --overwrite --output "$work/easy.$name" \
            $limit "$(awk -v all="$amount" -v share="$share" -v whole="${limit/--minutes/}" '
                BEGIN { split(share "/1", part, "/"); n = all * part[1] / part[2]; print whole ? int(n + 0.5) + (n < 0.5) : n }')"
        begin=(--init "$work/easy.$name")
    done
    [ "${begin[0]}" != --init ] || { mv "${begin[1]}" "$output.begin" && begin[1]=$output.begin; }
    settings+=("${begin[@]}")
}

# train_with SEED OPTIONS...: trains one of the models, in parallel with those that are running if there are several.
train_with() {
    local seed=$1 model=$output${SEEDS:+.$1}
    local chosen=("${shape[@]}" "${settings[@]}" --seed "$seed" "${limits[@]}" "${@:2}")
    echo "settings: ${chosen[*]}"
    models+=(-m "$model")
    if [ -z "${SEEDS:-}" ]; then
        "$attend" train "${data[@]}" "${chosen[@]}" --output "$model" "${begin[@]}"
        return
    fi
    ((running < $(nproc))) || wait_for_one
    "$attend" train "${data[@]}" --threads 1 "${chosen[@]}" --output "$model" "${begin[@]}" 2> >(sed -u "s/^/seed $seed: /" >&2) &
    running=$((running + 1))
}

# wait_for_one: waits until one of the models is trained; the recipe ends if it failed.
wait_for_one() {
    wait -n
    running=$((running - 1))
}

# stop_training: if the recipe ends early, running trainings save their state and exit.
stop_training() {
    local left
    left=$(jobs -p)
    [ -z "$left" ] || kill $left 2>/dev/null || true
    wait
}

# translate SOURCES OPTIONS...: translations of SOURCES by the model, or by the ensemble.
translate() {
    local sources=$1
    shift
    "$attend" translate "${models[@]}" --beam "${BEAM:-$beam}" "$@" <"$sources"
}
