#!/usr/bin/env bash
# same_bytes.sh: runs translate, align, encode, score perplexity and the attention operator with one to eight threads, in
# batches of many sizes and with their lines in any order, and compares every line that they write, byte by byte.
#
# The models are large enough that all threads have work. Each is also trained with one and with eight threads.
set -u
cd "$(dirname "$0")"
. ./support.bash
. ../cases.bash
build release
enter
make_corpus
export LC_ALL=C # the lines are bytes
orders=$(count 1 3)
settings=$(count 16 600)
models="plain bahdanau luong luong-entmax transformer transformer-shaw transformer-spm lm pictures bahdanau-exact"
[ "$TORTURE" = full ] || models="bahdanau transformer-shaw pictures"
batches="1 2 3 7 16 64 101"
runs=0 compared=0

# shuffle SEED: the lines of stdin in a random order.
shuffle() { awk -v seed="$1" 'BEGIN { srand(seed) } { print rand() "\t" $0 }' | sort | cut -f 2-; }

# ---- Models -------------------------------------------------------------------------------------------------------

# Some lines are unusual: empty, long, of unknown words, of bytes that are not UTF-8.
{
    head -n 96 valid.source
    echo
    tr '\n' ' ' <valid.source | cut -c 1-400
    echo "quite unknown words né"
    printf 'ai \xff\xc3 bj\n'
} >lines.source
{
    head -n 96 valid.target
    echo ai
    echo
    tail -n 2 lines.source
} >lines.target

cut -f 1 pictures.tsv | tail -n "$(wc -l <lines.source)" >lines.pictures

# sources: the file of the sources of the model.
sources() { if [ "$name" = pictures ]; then echo lines.pictures; else echo lines.source; fi; }

larger() # NAME: the options of a case, for a larger model
{
    options_of "$1" | sed 's/--hidden [0-9]*/--hidden 96/; s/--embedding [0-9]*/--embedding 64/; s/--ffn [0-9]*/--ffn 192/; s/--heads 2/--heads 4/;
        s/--updates 14/--updates 6/; s/--valid-every 7/--valid-every 6/; s/--batch-size 16/--batch-size 64/'
}

# What the model of a case can do.
operations() # NAME
{
    case $1 in
    lm) echo "continue sample perplexity" ;;
    plain) echo "greedy beam sample perplexity" ;;
    *) echo "greedy beam limited shifted sample align encode arrays perplexity" ;;
    esac
}

# The rows of an array [lines,d] as lines of text.
rows() # FILE.npy LINES
{
    local start
    start=$((10 + $(od -An -tu2 -j8 -N2 "$1")))
    od -An -v -tx1 -w$((($(stat -c %s "$1") - start) / $2)) -j$start "$1"
}

# operate OPERATION THREADS BATCH: reads now.source and now.target, and writes a line for each.
operate()
{
    local translate=("$attend" translate -m model --threads "$2" --batch-size "$3" --scores)
    case $1 in
    greedy) "${translate[@]}" <now.source ;;
    beam) "${translate[@]}" --beam 4 --length-penalty 0.6 <now.source ;;
    limited) "${translate[@]}" --beam 3 --no-repeat-ngram 2 --coverage-penalty 0.3 <now.source ;;
    shifted) "$attend" align -m model --source now.source --target now.target --align-shift --coverage --threads "$2" --batch-size "$3" ;;
    sample) "${translate[@]}" --sample 1 --seed 5 --max-length 20 <now.source ;;
    continue) "${translate[@]}" --max-length 30 <now.target ;;
    align) "$attend" align -m model --source now.source --target now.target --scores --coverage --threads "$2" --batch-size "$3" ;;
    encode) "$attend" encode -m model --mean -o mean.npy --threads "$2" --batch-size "$3" <now.source && rows mean.npy "$(wc -l <now.source)" ;;
    arrays) "$attend" encode -m model -o arrays.safetensors --threads "$2" --batch-size "$3" <now.source && cksum <arrays.safetensors ;;
    perplexity) "$attend" score perplexity --json -m model --reference now.target --threads "$2" $([ "$name" = lm ] || echo --source now.source) ;;
    esac 2>said || found "$1 of $name exits with $?: $(cat said)"
}

# in_order: the lines of stdin in the order of the file `order`.
in_order() { awk 'NR == FNR { at[NR] = $1; next } { line[FNR] = $0 } END { for (i = 1; i in at; i++) print line[at[i]] }' order -; }

# try OPERATION THREADS BATCH: with the lines in the order of the file `order`.
try()
{
    in_order <"$(sources)" >now.source
    in_order <lines.target >now.target
    operate "$@" >written
    case $1 in arrays | perplexity) cat written ;; *) paste order written | sort -n | cut -f 2- ;; esac >now
    cmp -s expected now || found "$1 of $name with $2 threads, batches of $3 and another order writes other bytes: $(diff expected now | head -n 4)"
    runs=$((runs + 1)) compared=$((compared + $(wc -l <now)))
}

attack_model()
{
    local operation threads batch i
    rm -f model* eight*
    "$attend" train $(larger "$name") --threads 1 --output model >said 2>&1 || { cat said; exit 1; }
    "$attend" train $(larger "$name") --threads 8 --output eight >said 2>&1 || { cat said; exit 1; }
    for i in '' .last .state; do
        cmp -s model$i eight$i || found "training $name with eight threads writes another ${i:-model}"
    done
    for operation in $(operations "$name"); do
        seq "$(wc -l <lines.source)" >order
        : >expected
        cp "$(sources)" now.source
        cp lines.target now.target
        operate "$operation" 1 64 >expected
        for ((i = 0; i < orders; i++)); do
            for threads in 1 2 3 4 5 6 7 8; do
                for batch in $batches; do
                    random 0 "$(count 40 0)" # all of them, or a few
                    [ "$random" = 0 ] || continue
                    case $operation in
                    sample | arrays | perplexity) ;; # they depend on the numbers of the lines, or are a sum over them
                    *) random 0 99999 && seq "$(wc -l <lines.source)" | shuffle "$random" >order ;;
                    esac
                    try "$operation" "$threads" "$batch"
                done
            done
        done
    done
}

# ---- The operator -------------------------------------------------------------------------------------------------

# pick FROM TO BYTES SHAPE ROW...: the rows, of so many bytes each, of an array of float64 as a new one.
pick()
{
    local from=$1 to=$2 bytes=$3 shape=$4 row
    shift 4
    {
        printf '\x93NUMPY\x01\x00\x76\x00'
        printf '%-117s\n' "{'descr': '<f8', 'fortran_order': False, 'shape': ($#, $shape), }"
        for row; do tail -c +$((129 + row * bytes)) "$from" | head -c "$bytes"; done
    } >"$to"
}

# Six sentences of 40 queries and 50 keys, four heads of size 16.
floats q.npy '6, 40, 64' 15360
floats k.npy '6, 50, 64' 19200
floats w.npy '16, 16' 256
floats v.npy '16,' 16
floats r.npy '9, 16' 144
floats b.npy '32, 4' 128
lengths=(50 1 23 0 49 37)

# operator OPTIONS: the checksums of what it writes for the sentences $chosen, a line for each of them.
operator()
{
    local i file size
    local -a some=()
    for i in $chosen; do some+=("${lengths[i]}"); done
    pick q.npy some.q.npy $((40 * 64 * 8)) '40, 64' $chosen
    pick k.npy some.k.npy $((50 * 64 * 8)) '50, 64' $chosen
    rm -rf out
    mkdir out
    "$attend" attention --query some.q.npy --key some.k.npy --heads 4 --lengths "$(IFS=,; echo "${some[*]}")" "$@" \
        --out out/o.npy --weights out/w.npy --grad-out some.q.npy --grads out/grads >said 2>&1 || return $?
    i=0
    for file in $chosen; do
        for file in out/o.npy out/w.npy out/grads/query.npy out/grads/key.npy out/grads/value.npy; do
            size=$((($(stat -c %s $file) - 128) / ${#some[@]}))
            tail -c +$((129 + i * size)) $file | head -c $size | cksum
        done | tr '\n' ' '
        i=$((i + 1))
        echo
    done
}

attack_operator()
{
    local score normaliser window position plain given threads i
    local -a all options
    all=($(for score in dot scaled general additive; do
        for normaliser in softmax sparsemax entmax15 sigmoid relu hard; do
            for window in global causal sliding:3 local-m:5 local-p:5; do
                for position in none shaw:4 rope alibi t5:32; do
                    for plain in '' --plain; do echo "$score/$normaliser/$window/$position/$plain"; done
                done
            done
        done
    done | shuffle "$SEED"))
    for given in "${all[@]}"; do
        [ $tried -lt "$settings" ] || break
        IFS=/ read -r score normaliser window position plain <<<"$given"
        options=(--score $score --normaliser $normaliser --window $window --position $position $plain)
        case $score in general) options+=(--param W=w.npy) ;; additive) options+=(--param W=w.npy --param U=w.npy --param v=v.npy) ;; esac
        case $window in local-p:*) options+=(--param Wp=w.npy --param vp=v.npy) ;; esac
        case $position in shaw:*) options+=(--param wK=r.npy --param wV=r.npy) ;; t5:*) options+=(--param bias=b.npy) ;; esac
        chosen="0 1 2 3 4 5"
        if ! operator "${options[@]}" --threads 1 >expected; then
            grep -q "does not go with" said || found "attention $given: $(cat said)"
            continue
        fi
        tried=$((tried + 1))
        for threads in $(seq 2 $(count 3 8)); do
            random 0 99999
            chosen=$(seq 0 5 | shuffle "$random")
            random 1 6
            chosen=$(head -n "$random" <<<"$chosen")
            operator "${options[@]}" --threads "$threads" >now || found "attention $given: $(cat said)"
            cmp -s <(for i in $chosen; do sed -n $((i + 1))p expected; done) now || found "attention $given with $threads threads for the sentences $(echo $chosen) writes other bytes"
            runs=$((runs + 1)) compared=$((compared + random * 5))
        done
    done
}

# ---- All of it ------------------------------------------------------------------------------------------------------

for name in $models; do attack_model; done
tried=0
attack_operator
echo "$runs runs of $(wc -w <<<"$models") models and $tried settings of the operator with 1 to 8 threads, batches of $batches and shuffled lines: $compared lines and arrays compared, $finds finds"
[ $finds = 0 ]
