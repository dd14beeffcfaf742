#!/usr/bin/env bash
# commands.sh: whole commands on mutated files, in the build with the sanitizers: models, states, arrays, subword models,
# texts, compressed texts, glossaries, pictures, alignments, config files and SPECs. Every command succeeds, or is refused with exactly one
# message; none crashes, runs without end, or leaves a temporary file. commands.c mutates, runs and judges.
set -u
cd "$(dirname "$0")"
. ./support.bash
. ../cases.bash
build=$top/build/check # that of `make test`
build_in "$build" "attend torture_commands" -DAT_TESTS=ON -DAT_SANITIZE=ON
found=$top/build/torture/found
mkdir -p "$found"
enter

# ---- The files ----------------------------------------------------------------------------------------------------

mkdir s
cd s || exit 1
cp "$top"/fuzz/seeds/*.{model,state,safetensors,png,jpeg,torch,npz} "$top/tests/ref/rules.spm" .
cp "$top"/tests/models/{marian/vocab.yml,marian/decoder.yml,g2p/vocabulary.json} ..
make_arrays
bytes dots.npy '2, 5, 5' 50
printf 's/rgb.png\ns/grey.jpeg\n' >pictures
printf 'a b\nb\n' >source
printf 'b\na\n' >target
echo x.jpeg >one
printf '0-0 1?0\n0-0\n' >links
printf '0-0\n0-0\n' >sure
printf 'a\tb\nb\t!a\n\t!c\n' >glossary
paste source target >pairs.tsv
gzip -k source
command -v zstd >/dev/null && zstd -q source
printf 'score = scaled # comment\nheads = 2\nwindow = sliding:3\nlengths = 3,2\nrows = 0,1\nthreads = 1\n' >attention.conf
printf 'tsv = s/pairs.tsv\nmodel = luong\nhidden = 2\nembedding = 2\nlearning-rate = 1e-3\nbatch-size = 1\nwarmup = 5\n' >train.conf
printf 'tokenise = 13a\nlowercase = true\nreference = s/target\n' >score.conf
cat >small.spec <<'END'
title = A comparison # comment
tsv = pairs.tsv
test-tsv = pairs.tsv
score = dot general
row = luong : --model luong --embedding 2
hidden = 2
batch-size = 2
updates = 1
seeds = 1
metrics = wer accuracy
END
cp "$top/examples/compare/luong.spec" .
cd ..

# ---- The commands -------------------------------------------------------------------------------------------------

tiny="--hidden 2 --embedding 2 --batch-size 1 --updates 1 --max-length 100 --model luong --attention 2 --threads 1 --quiet --output o"
luong="--source s/source --target s/target --hidden 2 --batch-size 1 --max-length 4 --updates 3 --model luong --embedding 2 --average 2 --valid-every 1
    --label-smoothing 0.1 --valid-source s/source --valid-target s/target --quiet --output m --resume"
transformer="--source s/source --target s/target --hidden 2 --batch-size 1 --max-length 4 --updates 2 --model transformer --layers 1 --heads 1 --ffn 2
    --ema 0.9 --accumulate 2 --schedule cosine --warmup 1 --quiet --output m --resume"
{
    for model in rnn-plain rnn-encdec rnn-attention bahdanau luong transformer subwords int8 bf16 f16; do
        echo "s/$model.model m translate -m m --beam 2 --max-length 6 --threads 1 --quiet < s/source"
        echo "s/$model.model m info m --quiet"
    done
    for model in luong.torch transformer.torch transformer.npz s2s.npz g2p.npz; do # models of other programs
        echo "s/$model m.npz translate -m m.npz --beam 2 --max-length 6 --threads 1 --quiet < s/source"
    done
    echo "s/transformer.model m heads -m m --source s/source --target s/target --prune 50% -o pruned --threads 1 --quiet"
    for model in bahdanau luong transformer subwords int8; do
        echo "s/$model.model m calibrate -m m --source s/source --target s/target -o calibrated --threads 1 --quiet"
        echo "s/$model.model m align -m m --source s/source --target s/target --threads 1 --quiet"
        echo "s/$model.model m encode -m m -o out.npy --mean --threads 1 --quiet < s/source"
        echo "s/$model.model m average -o mean m s/$model.model --quiet"
        echo "s/$model.model m convert m -o converted --weights int8 --quiet"
        echo "s/$model.model m show a -m m --quiet"
    done
    echo "s/transformer-lm.model m translate -m m --max-length 6 --threads 1 --quiet < s/target"
    echo "s/transformer-lm.model m score perplexity -m m --reference s/target --threads 1 --quiet"
    echo "s/luong.model m translate -m s/luong.model -m m --alignment soft --threads 1 --quiet < s/source"
    echo "s/luong.model m score perplexity -m m --source s/source --reference s/target --threads 1 --quiet"
    echo "s/show-attend-tell.model m translate -m m --beam 2 --max-length 6 --threads 1 --quiet < s/pictures"
    echo "s/show-attend-tell.model m show s/rgb.png -m m --level subword --quiet"
    for file in "$top"/fuzz/seeds/*.png; do
        echo "s/$(basename "$file") x.png show x.png -m s/show-attend-tell.model --level subword --quiet"
    done
    for file in "$top"/fuzz/seeds/*.jpeg; do
        echo "s/$(basename "$file") x.jpeg encode -m s/show-attend-tell.model -o out.npy --threads 1 --quiet < s/one"
    done
    echo "s/dots.npy x.npy translate -m s/show-attend-tell.model -i x.npy --max-length 6 --threads 1 --quiet"
    echo "s/pictures x translate -m s/show-attend-tell.model -i x --max-length 6 --threads 1 --quiet"
    for i in 1 2 3 4 5 6; do
        echo s/luong.state m.state train $luong
        echo s/transformer.state m.state train $transformer
    done
    echo "s/q.npy q.npy attention --query q.npy --key s/k.npy --heads 2 --out out.npy --summary summary --threads 1 --quiet"
    echo "s/k.npy k.npy attention --query s/q.npy --key k.npy --plain --weights w.npy --quiet"
    echo "s/w.npy w.npy attention --query s/q.npy --score general --param W=w.npy --out out.npy --quiet"
    echo "s/small.safetensors w.safetensors attention --query w.safetensors:a.weight --out out.npy --quiet"
    echo "s/luong.model w.safetensors attention --query w.safetensors:source.E --out out.npy --quiet"
    for i in 1 2 3; do
        echo "s/rules.spm v.spm train --source s/source --target s/target --source-vocab v.spm $tiny"
    done
    for text in source source.gz $(ls s | grep -x source.zst); do
        echo "s/$text x translate -m s/transformer.model --max-length 6 --threads 1 --quiet < x"
        echo "s/$text x translate -m s/subwords.model --prefix --max-length 6 --threads 1 --quiet < x"
        echo "s/$text x translate -m s/luong.model --split --placeholders --coverage-penalty 0.2 --beam 2 --max-length 6 --threads 1 --quiet < x"
        echo "s/$text x train --source x --target s/target $tiny"
        echo "s/$text x score bleu chrf ter wer --reference s/target --quiet < x"
    done
    echo "s/pairs.tsv x train --tsv x $tiny"
    echo "s/pairs.tsv x train --tsv x --source-vocab char --target-vocab word:1 --normalise nfkc --lowercase $tiny"
    echo "s/links l train --source s/source --target s/target --guided-alignment l $tiny"
    echo "s/links l score aer --reference l --quiet < s/sure"
    echo "s/links l align -m s/luong.model --source s/source --target s/target --head best --gold l --quiet"
    echo "s/glossary g translate -m s/transformer.model --glossary g --max-length 6 --threads 1 --quiet < s/source"
    echo "s/glossary g translate -m s/subwords.model --glossary g --beam 2 --no-repeat-ngram 1 --max-length 6 --threads 1 --quiet < s/source"
    echo "s/attention.conf c attention --config c --query s/q.npy --key s/k.npy --weights w.npy --quiet"
    echo "s/score.conf c score bleu wer --config c --quiet < s/source"
    for i in 1 2; do
        echo "!s/train.conf c train --config c --output missing/m --quiet"
        echo "!s/small.spec s.spec compare s.spec --directory missing/runs --quiet"
        echo "!s/luong.spec s.spec compare s.spec --directory missing/runs --set updates=1 --quiet"
    done
} >cases

# ---- The attack ---------------------------------------------------------------------------------------------------

wanted=$(count 400 20000)
export ASAN_OPTIONS=exitcode=99:allocator_may_return_null=1:max_allocation_size_mb=1500:hard_rss_limit_mb=3000:detect_leaks=1 LSAN_OPTIONS=exitcode=99
export ATTEND_MAX_DECOMPRESSED=67108864
for worker in $(seq 0 $((jobs - 1))); do
    mkdir "w$worker"
    ln -s ../s ../vocab.yml ../decoder.yml ../vocabulary.json "w$worker" # a link stays when a run is cleaned up
    (cd "w$worker" && exec "$build/tests/torture_commands" "$build/attend" ../cases "$found" "$worker" "$jobs" "$wanted" >../said."$worker") &
done
wait
grep -hv '^[0-9]* [0-9]* [0-9]*$' said.*
# A worker that ended without its counts is a find too.
awk -v workers="$jobs" -v wanted="$wanted" '
    /^[0-9]+ [0-9]+ [0-9]+$/ { refused += $1; succeeded += $2; finds += $3; workers-- }
    END {
        finds += workers
        printf "%d commands on mutated files: %d refused with one message, %d succeeded, %d finds\n", refused + succeeded + finds, refused, succeeded, finds
        exit finds > 0 || refused + succeeded != wanted
    }' said.*
