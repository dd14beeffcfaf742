#!/usr/bin/env bash
# Checks that a change keeps the bits: tests/same_bits.sh OLD NEW
#
# OLD and NEW are two builds of the attend command. Both train every kind of model, translate, align, score and run the
# attention operator; all files and outputs must be the same, byte by byte. NEW must also read the models of OLD and
# resume from its training states. The data is made here, so nothing else is needed.
set -eu
[ $# = 2 ] || { echo "usage: tests/same_bits.sh OLD NEW" >&2; exit 2; }
old=$(realpath "$1") new=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8 NO_COLOR=1
cd "$work"

# Words of a small grammar, and the same reversed; the words' letters swapped on the target side.
awk 'BEGIN { srand(7); for (i = 0; i < 600; i++) { n = 2 + int(rand() * 8); s = t = "";
    for (j = 0; j < n; j++) { w = sprintf("%c%c%s", 97 + int(rand() * 6), 105 + int(rand() * 5), rand() < .3 ? "né" : "");
        s = s (j ? " " : "") w; t = w (j ? " " : "") t } print s "\t" t } }' >pairs.tsv
head -500 pairs.tsv >train.tsv
tail -n +501 pairs.tsv >valid.tsv
cut -f1 valid.tsv >valid.source
cut -f2 valid.tsv >valid.target
awk -F'\t' '{ n = split($1, w, " "); for (i = 0; i < n; i++) printf "%d-%d%s", i, n - 1 - i, i < n - 1 ? " " : "\n" }' train.tsv >links

small="--embedding 16 --hidden 24 --updates 14 --valid-every 7 --batch-size 16 --learning-rate 0.01 --quiet"
narrow="--hidden 16 --heads 2 --ffn 32 --layers 2 --updates 14 --valid-every 7 --batch-size 16 --quiet"
# NAME: OPTIONS
cases() {
    cat <<END
plain: --model rnn-plain ${small#--embedding 16 } --dropout 0.2
encdec: --model rnn-encdec $small --maxout 12
rnnatt: --model rnn-attention ${small#--embedding 16 } --optimiser sgd
bahdanau: --model bahdanau $small --attention 12 --maxout 12 --ema 0.9 --label-smoothing 0.1
bahdanau-sparse: --model bahdanau $small --normaliser sparsemax --average 2 --optimiser adadelta
bahdanau-hard: --model bahdanau $small --normaliser hard --reinforce 0.5
luong: --model luong $small --cell lstm --layers 2 --window local-p:3 --input-feeding --dropout 0.1
luong-local-m: --model luong $small --cell gru --window local-m:2 --score additive --valid-metric bleu
luong-entmax: --model luong $small --normaliser entmax15 --score dot --source-vocab char --target-vocab char
transformer: --model transformer $narrow --schedule noam --warmup 10 --dropout 0.1 --attention-dropout 0.1
transformer-shaw: --model transformer $narrow --norm pre --position shaw:4 --kv-heads 1 --tie false --accumulate 2
transformer-rope: --model transformer $narrow --position rope --optimiser adamw --schedule inverse-sqrt
transformer-t5: --model transformer ${narrow/--batch-size 16/--batch-tokens 200} --position t5 --schedule cosine --clip-norm 0.5
transformer-guided: --model transformer $narrow --guided-alignment links --guided-head 2.1 --valid-metric chrf
transformer-spm: --model transformer $narrow --source-vocab spm:60 --target-vocab spm:60 --joint-vocab --subword-sampling 0.2
lm: --model transformer-lm $narrow
END
}

produce() { # COMMAND DIRECTORY
    mkdir "$2"
    while IFS=: read -r name options; do
        local columns="1,2" source=valid.source out=$2/$name
        case $name in lm) columns=2 source=valid.target ;; esac
        # shellcheck disable=SC2086
        "$1" train --tsv train.tsv --valid-tsv valid.tsv --columns $columns $options --output "$out.safetensors" >>"$out.said" 2>&1 ||
            { cat "$out.said"; exit 1; }
        "$1" translate -m "$out.safetensors" <$source >"$out.greedy"
        "$1" translate -m "$out.safetensors" --beam 3 --n-best 2 --scores <$source >"$out.beam" 2>&1
        "$1" translate -m "$out.safetensors" --sample 1.0 --seed 3 <$source >"$out.sample"
        "$1" info "$out.safetensors" >"$out.info"
        case $name in
        plain | encdec | lm) ;;
        *) "$1" align -m "$out.safetensors" --source valid.source --target valid.target >"$out.align" 2>&1
           "$1" encode -m "$out.safetensors" -o "$out.features.safetensors" <valid.source >/dev/null 2>&1 || true ;;
        esac
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

floats() { # FILE SHAPE COUNT: an array of small numbers
    printf '\x93NUMPY\x01\x00\x76\x00' >"$1"
    printf '%-117s\n' "{'descr': '<f8', 'fortran_order': False, 'shape': ($2), }" >>"$1"
    LC_ALL=C awk -v n="$3" 'BEGIN { for (i = 0; i < n; i++) printf "\\x00\\x00\\x00\\x00\\x00\\x00\\x%02x\\x%02x\n", (i * 37 % 16) * 16, i % 3 ? 63 : 191 }' |
        while read -r bytes; do printf "$bytes"; done >>"$1"
}
floats q.npy '2, 9, 8' 144
floats k.npy '2, 12, 8' 192
floats w.npy '8, 8' 64
floats v.npy '8,' 8

produce "$old" old
produce "$new" new
bad=0
for file in old/*; do
    [ -d "$file" ] && continue
    name=${file#old/}
    case $name in *.said) continue ;; esac
    cmp -s "$file" "new/$name" || { echo "differs: $name"; bad=1; }
done

# NEW reads and resumes what OLD wrote.
while IFS=: read -r name options; do
    [ $bad = 0 ] || break
    columns="1,2"
    case $name in lm) columns=2 ;; esac
    for by in old new; do
        command=$old
        [ $by = new ] && command=$new
        mkdir -p resumed.$by
        cp old/$name.safetensors* resumed.$by/
        [ -e old/$name.safetensors.state ] || continue
        # shellcheck disable=SC2086
        "$command" train --tsv train.tsv --valid-tsv valid.tsv --columns $columns ${options/--updates 14/--updates 21} --resume \
            --output resumed.$by/$name.safetensors >resumed.$by/$name.said 2>&1 || true
        rm -f resumed.$by/*.log.jsonl
    done
    for file in resumed.old/"$name".safetensors*; do
        cmp -s "$file" "resumed.new/${file#resumed.old/}" || { echo "resumed differs: ${file#resumed.old/} ($(tail -1 resumed.new/$name.said))"; bad=1; }
    done
done < <(cases)
[ $bad = 0 ] && echo "the same bits: $(ls old | wc -l) files, and all states resumed"
exit $bad
