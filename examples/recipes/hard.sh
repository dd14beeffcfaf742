#!/usr/bin/env bash
# Soft attention against hard attention trained exactly, on letters: French and Hungarian pronunciation, German inflection, Arabic names.
#
#   examples/recipes/hard.sh DATA [OPTIONS OF attend compare]
#
# DATA holds the folders g2p, inflection and translit. Each of the four tasks (TASKS='fre hun' leaves out others) is a comparison by attend compare: the model of
# its recipe, a greedy search on dev, three seeds. Hard attention scores every letter of the source, so an update takes 1.2 to 1.5 times as long; soft attention makes
# as many more updates, for the same processor time. DIRECTORY keeps the SPECs, the data and the models. SHORT=10 makes a tenth of the updates.
# It takes about an hour of one core.
. "$(dirname "$0")/recipe.bash"
[ $# -ge 1 ] || usage
data=$1
shift
folder=${DIRECTORY:-$work}
mkdir -p "$folder"

# compare_on NAME SOFT HARD SETTINGS [OPTIONS]...: NAME.train.tsv and NAME.dev.tsv with so many updates of each kind.
compare_on() {
    local name=$1 soft=$(($2 / ${SHORT:-1})) hard=$(($3 / ${SHORT:-1}))
    {
        echo "title = $name"
        printf 'tsv = %s\nvalid-tsv = %s\ntest-tsv = %s\n' "$name.train.tsv" "$name.dev.tsv" "$name.dev.tsv"
        printf '%s\n' "$4" 'model = luong' 'cell = lstm' 'bidirectional = true' 'input-feeding = true' 'score = general' 'embedding = 128' 'hidden = 256'
        printf '%s\n' 'learning-rate = 0.002' 'label-smoothing = 0.1' 'ema = 0.999' 'schedule = cosine' 'warmup = 200' 'seeds = 1 2 3' 'metrics = accuracy wer'
        echo "row = soft : --updates $soft"
        echo "row = hard, exact : --normaliser hard --hard-training exact --updates $hard"
    } >"$folder/$name.spec"
    "$attend" compare "$folder/$name.spec" "${@:5}"
}

letters='source-vocab = char
target-vocab = word
valid-metric = accuracy
batch-size = 32'
for task in ${TASKS:-fre hun german arabic}; do
    case $task in
    fre | hun)
        for split in train dev; do
            unpack "$data/g2p/sig20_${task}_$split.tsv.gz" >"$folder/$task.$split.tsv"
        done
        if [ $task = fre ]; then dropout=0.5 soft=5600; else dropout=0.3 soft=5720; fi
        compare_on $task $soft 4520 "$letters
dropout = $dropout" "$@"
        ;;
    german)
        for split in train-high dev; do
            unpack_forms "$data/inflection/german-$split.gz" "${split%-high}"
            cp "$work/${split%-high}.tsv" "$folder/german.${split%-high}.tsv"
        done
        compare_on german 4440 3000 "${letters/char/word}
dropout = 0.3" "$@"
        ;;
    arabic)
        unpack "$data/translit/ar2en-train.txt.gz" >"$folder/arabic.train.tsv"
        unpack "$data/translit/ar2en-eval.txt.gz" >"$folder/arabic.dev.tsv"
        compare_on arabic 3030 2460 'source-vocab = char
target-vocab = char
valid-metric = cer
batch-size = 64
dropout = 0.3' "$@"
        ;;
    *) refuse 2 "the tasks are fre, hun, german and arabic, not '$task'" ;;
    esac
done
