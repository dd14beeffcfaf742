#!/usr/bin/env bash
# valgrind.sh: runs every command on small inputs, those that it refuses among them, under Valgrind's memcheck: no invalid or
# uninitialised memory is used, and at the end no block is left, not even one that a pointer still reaches.
#
# In full it also runs the tests of the command that work on data (tests/command), with each call of it under memcheck.
# valgrind.supp names what is left out, and why; nothing of ours is.
set -u
cd "$(dirname "$0")"
command -v valgrind >/dev/null || { echo "SKIPPED: valgrind is not installed"; exit 77; }
. ./support.bash
. ../cases.bash
suppressions=$PWD/valgrind.supp
build release
enter
mkdir logs
cat >attend <<END
#!/bin/sh
exec valgrind --quiet --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all --track-fds=no --fair-sched=yes \\
    --trace-children=yes --suppressions='$suppressions' --log-file='$work/logs/%p' '$attend' "\$@"
END
chmod +x attend
runs=0

# reports WHAT: looks for what memcheck wrote since the last call.
reports()
{
    local log
    for log in $(find logs -type f -size +0); do
        found "$1: $(head -n 12 "$log")"
    done
    runs=$((runs + $(find logs -type f | wc -l)))
    rm -f logs/*
}

# call CODE COMMAND...: it must exit with that code.
call()
{
    local code=$1 got=0
    shift
    ./attend "$@" <"$input" >said 2>&1 || got=$?
    [ $got = "$code" ] || found "attend $* exits with $got instead of $code: $(tail -n 3 said)"
    reports "attend $*"
    called=" $called$1 "
}
called= input=/dev/null

# also CODE COMMAND...: the same, in full only.
also() { [ "$TORTURE" = short ] || call "$@"; }

make_corpus
make_arrays
head -n 24 train.tsv >few.tsv
head -n 24 links >few.links
head -n 5 valid.tsv >fewer.tsv
cut -f 1 fewer.tsv >source
cut -f 2 fewer.tsv >target
head -n 24 train.pictures.tsv >few.pictures.tsv
head -n 5 valid.pictures.tsv >fewer.pictures.tsv
cut -f 1 fewer.pictures.tsv >pictures.source
few() { options_of "$1" | sed 's/train\(\.pictures\)*\.tsv/few\1.tsv/; s/valid\(\.pictures\)*\.tsv/fewer\1.tsv/; s/links/few.links/; s/--updates 14/--updates 3/; s/--valid-every 7/--valid-every 2/; s/spm:60/spm:40/g
    s/--embedding 16/--embedding 8/; s/--hidden 24/--hidden 8/; s/--batch-size 16/--batch-size 8/; s/--quiet//'; }

call 0 --version
also 0 --help
call 2 nosuch
commands=$("$attend" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
for command in $commands; do
    [ $command != bench ] || continue
    also 0 "$command" --help
    also 2 "$command" --nosuch
done
call 1 bench # a program of its own, which is not built here
call 0 list
also 0 list scores
also 2 list nosuch

call 0 attention --query q.npy --key k.npy --out o.npy --weights ow.npy --summary o.json --grad-out q.npy --grads grads --lengths 7,0 --verbose
call 0 attention --query q.npy --key k.npy --out o.npy --score additive --param W=w.npy --param U=w.npy --param v=v.npy --normaliser entmax15 --window local-m:2 --plain
call 0 attention --query q.npy --heads 2 --normaliser sparsemax --window sliding:2 --position alibi --weights ow.npy --rows 0,3 --grad-out q.npy --grads grads
also 0 attention --query q.npy --normaliser hard --sample 3 --position rope --out o.npy
call 1 attention --query few.tsv --out o.npy
also 1 attention --query q.npy --key w.npy --out o.npy

models="bahdanau lm pictures"
[ "$TORTURE" = short ] || models=$(cases | sed 's/:.*//')
for name in $models; do
    call 0 train $(few "$name") --output "$name"
    case $(few "$name") in # the end of a cosine cannot move
    *cosine*) call 0 train $(few "$name") --resume --output "$name" ;;
    *) call 0 train $(few "$name") --updates 4 --resume --output "$name" ;;
    esac
    call 0 info "$name"
    also 0 info "$name" --verify
    lines=$(case $name in lm) echo target ;; pictures) echo pictures.source ;; *) echo source ;; esac)
    input=$lines
    also 0 translate -m "$name"
    call 0 translate -m "$name" --beam 3 --n-best 2 --scores --max-length 8
    call 0 translate -m "$name" --sample 1 --n-best 2 --max-length 8
    input=/dev/null
    case $name in
    lm) call 0 score perplexity -m lm --reference target ;;
    *) call 0 score perplexity -m "$name" --reference target --source "$lines" --json ;;
    esac
    attends "$name" || continue
    call 0 align -m "$name" --source "$lines" --target target --scores --coverage
    also 0 align -m "$name" --source "$lines" --target target --head best
    case $name in transformer*) call 0 heads -m "$name" --source "$lines" --target target --prune 50% -o pruned --tsv heads.tsv ;; esac
    input=$lines
    call 0 translate -m "$name" --alignment soft --coverage $([ "$name" = pictures ] || echo --replace-unknown)
    also 0 encode -m "$name" -o features.safetensors
    call 0 encode -m "$name" --mean -o features.npy
    input=/dev/null
    call 0 show "$(head -n 1 "$lines")" -m "$name"
    also 0 show "$(head -n 1 "$lines")" -m "$name" --head all -o heads.svg
    also 0 show "$(head -n 1 "$lines")" -m "$name" --beam 2 -o page.html # PNG and PDF files are librsvg's, in a process of its own
done
call 1 train --source source --target target --hidden 8 --embedding 8 --updates 2 --learning-rate 1e38 --output diverged
also 2 train --source source --target target --score nosuch --output refused
also 1 train --source source --target none --output refused
input=source
call 0 translate -m bahdanau -m bahdanau.last --beam 2
call 0 average bahdanau bahdanau.last -o mean
call 0 convert bahdanau --weights int8 -o converted
call 0 translate -m converted --beam 2
also 1 average bahdanau lm -o mean
call 0 heads -m lm --target target --prune 50% -o pruned --tsv heads.tsv
also 1 heads -m bahdanau --source source --target target
call 0 calibrate -m bahdanau --source source --target target -o calibrated
also 0 calibrate -m calibrated --source source --target target --beam 2 --check
also 1 calibrate -m lm --source source --target target
call 0 curve bahdanau.log.jsonl
also 0 curve bahdanau lm -o curves.svg
also 1 curve source
call 0 vocabulary make source -o words.txt
also 0 vocabulary make source --vocab spm:16 -o words.spm
call 0 vocabulary segment words.txt
also 0 vocabulary print bahdanau --side target
also 1 vocabulary print q.npy
head -c 3000 bahdanau >cut
call 1 translate -m cut
also 1 info cut
call 1 info source
input=target
for metric in accuracy bleu cer chrf chrf++ ter wer; do
    also 0 score $metric --reference target --confidence 20 --compare source
done
also 0 score bleu chrf --reference target --by-length 3
call 0 score bleu chrf ter wer --reference target --sentence
cp few.links links.few
input=links.few
call 0 score aer --reference few.links
also 1 score aer --reference source
input=/dev/null
cat >spec <<'END'
task = copy
train-lines = 30
test-lines = 4
embedding = 4
hidden = 4
updates = 2
batch-size = 10
score = additive general
seeds = 1
metrics = accuracy
END
# Under Valgrind a comparison cannot start /proc/self/exe, itself: its runs fail, or they are there already. What they do,
# train, translate and align, runs above.
call 1 compare spec --jobs 1
"$attend" compare spec --quiet >said 2>&1 || found "compare: $(cat said)"
call 0 compare spec --json table.json --html table.html --curves table.svg --latex table.tex --csv table.csv
call 0 compare hard --print # not the name of a model here
call 0 serve -m de-en=bahdanau --port 0 --check --no-isolation # memcheck does not know the calls
call 0 serve --watch bahdanau.log.jsonl --port 0 --check --no-isolation
call 2 serve -m de-de=bahdanau
call 0 demo self-attention
for demo in $("$attend" list demos | sed -n 's/^  \([a-z-]*\)  .*/\1/p'); do
    case $demo in # those that train get small models, and two would still take too long
    self-attention | dates | transformer) ;;
    scenes) also 0 demo scenes 1 --hidden 4 ;;
    antonyms | beer) also 0 demo "$demo" --hidden 4 ;;
    rnn-vs-attention) also 0 demo rnn-vs-attention 16 ;;
    *) also 0 demo "$demo" ;;
    esac
done
for command in $commands; do
    case $called in *" $command "*) ;; *) found "no run of attend $command here" ;; esac
done

if [ "$TORTURE" = full ]; then
    for test in any_bytes attention compressed config damaged heads list lm refusals score show subwords train transformer translate; do
        [ -e "$top/tests/command/$test.sh" ] || continue
        TMPDIR=$work bash "$top/tests/command/$test.sh" "$work/attend" >said 2>&1 || found "tests/command/$test.sh fails: $(tail -n 3 said)"
        reports "tests/command/$test.sh"
    done
fi
echo "$runs processes of all commands under memcheck: $finds finds"
[ $finds = 0 ]
