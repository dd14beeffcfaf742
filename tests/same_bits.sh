#!/usr/bin/env bash
# Checks that a change keeps the bits: tests/same_bits.sh OLD NEW
#
# OLD and NEW are two builds of the attend command. Both train every kind of model, translate, align, score and run the
# attention operator; all files and outputs must be the same, byte by byte. NEW must also read the models of OLD and
# resume from its training states. The data is made here, so nothing else is needed.
set -eu
[ $# = 2 ] || { echo "usage: tests/same_bits.sh OLD NEW" >&2; exit 2; }
old=$(realpath "$1") new=$(realpath "$2") here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8 NO_COLOR=1
cd "$work"

. "$here/cases.bash"
make_corpus
make_arrays

produce() { # COMMAND DIRECTORY
    mkdir "$2"
    while IFS=: read -r name options; do
        local source=valid.source out=$2/$name
        case $name in lm) source=valid.target ;; pictures) source=valid.pictures ;; esac
        # shellcheck disable=SC2086
        "$1" train $(data_of "$name") $options --output "$out.safetensors" >>"$out.said" 2>&1 ||
            { cat "$out.said"; exit 1; }
        "$1" translate -m "$out.safetensors" <$source >"$out.greedy"
        "$1" translate -m "$out.safetensors" --beam 3 --n-best 2 --scores <$source >"$out.beam" 2>&1
        "$1" translate -m "$out.safetensors" --sample 1.0 --seed 3 <$source >"$out.sample"
        "$1" info "$out.safetensors" >"$out.info"
        if attends "$name"; then
            "$1" align -m "$out.safetensors" --source $source --target valid.target >"$out.align" 2>&1
            "$1" encode -m "$out.safetensors" -o "$out.features.safetensors" <$source >/dev/null 2>&1 || true
        fi
    done < <(cases)
    for metric in bleu chrf chrf++ ter wer cer accuracy; do
        "$1" score $metric --reference valid.target --json <"$2/transformer.greedy"
    done >"$2/scores"
    "$1" translate -m "$2/bahdanau.safetensors" -m "$2/bahdanau-sparse.safetensors" --beam 2 <valid.source >"$2/two.beam"
    for score in dot scaled additive general; do
        for normaliser in softmax sparsemax entmax15 sigmoid relu hard; do
            for window in global causal sliding:3 local-m:2; do
                parameters=
                case $score in general) parameters="--param W=w.npy" ;; additive) parameters="--param W=w.npy --param U=w.npy --param v=v.npy" ;; esac
                # shellcheck disable=SC2086
                "$1" attention --query q.npy --key k.npy --value k.npy --score $score --normaliser $normaliser --window $window \
                    $parameters --lengths 7,12 --out "$2/o.npy" --weights "$2/w.npy" --grad-out q.npy --grads "$2/grads"
                cat "$2/o.npy" "$2/w.npy" "$2"/grads/*.npy | cksum
            done
        done
    done >"$2/operator"
    sed -i -E 's/(in |[0-9]+ words\/s|[0-9.]+ s|peak memory).*//; s/, [0-9.]+ (minutes|seconds).*//' "$2"/*.said
    rm -f "$2"/*.log.jsonl
}

produce "$old" old
produce "$new" new
bad=0
for file in old/*; do
    [ -d "$file" ] && continue
    name=${file#old/}
    case $name in *.said | *.previous) continue ;; esac
    cmp -s "$file" "new/$name" || { echo "differs: $name"; bad=1; }
done

# NEW reads and resumes what OLD wrote.
while IFS=: read -r name options; do
    [ $bad = 0 ] || break
    for by in old new; do
        command=$old
        [ $by = new ] && command=$new
        mkdir -p resumed.$by
        cp old/$name.safetensors* resumed.$by/
        [ -e old/$name.safetensors.state ] || continue
        # shellcheck disable=SC2086
        "$command" train $(data_of "$name") ${options/--updates 14/--updates 21} --resume \
            --output resumed.$by/$name.safetensors >resumed.$by/$name.said 2>&1 || true
        rm -f resumed.$by/*.log.jsonl
    done
    rm -f resumed.*/*.previous
    for file in resumed.old/"$name".safetensors*; do
        cmp -s "$file" "resumed.new/${file#resumed.old/}" || { echo "resumed differs: ${file#resumed.old/} ($(tail -1 resumed.new/$name.said))"; bad=1; }
    done
done < <(cases)
[ $bad = 0 ] && echo "the same bits: $(ls old | wc -l) files, and all states resumed"
exit $bad
