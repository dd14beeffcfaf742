# What users of other programs type: the right option is named; a model as a word, -i and -o, info -m.
. "$(dirname "$0")/support.bash"

# ---- Names of other programs
named() { # named COMMAND TYPED OURS
    refuse 2 "no option '$2'; it is called $3" "$1" "$2" x
}
named train --lr --learning-rate
named train -lr --learning-rate
named train --learning_rate --learning-rate
named train --src --source
named train -src --source
named train --tgt --target
named train --trg --target
named train --train-src --source
named train --bsz --batch-size
named train --max-tokens --batch-tokens
named train --mini-batch-words --batch-tokens
named train --optim --optimiser
named train --optimizer --optimiser
named train --normalizer --normaliser
named train --normalize --normalise
named train --warmup-steps --warmup
named train --max-epoch --epochs
named train --arch --model
named train --save-dir --output
named train --restore-file --resume
named translate --beam-size --beam
named translate -b --beam
refuse 2 "no option '-b'; it is called --beam" translate -b5
named translate --temperature --sample
named translate --src --input
named translate -model --model
named align --src --source
named score --tokenize --tokenise
named score --ref --reference
named attention --normalizer --normaliser
refuse 2 "no option '--train-sets'; the text is --source FILE and --target FILE, or --tsv FILE" train --train-sets a b
refuse 2 "no option '--fp16'; attend computes in 32-bit numbers" train --fp16
refuse 2 "no option '--gpus'; attend computes on the CPU; --threads chooses how many cores it uses" translate --gpus 0
refuse 2 "no option '-x'; attend train --help shows those there are" train -x
refuse 2 "no option '--metric'; metrics are words: attend score bleu chrf --reference FILE" score --metric bleu
refuse 2 "--model is a kind of model, such as transformer, not 'model.npz'; the file to write is --output" \
    train --source a --target b --model model.npz --output new
refuse 2 "no command 'generate'; it is called attend translate" generate
printf 'source = a\nlr = 0.1\n' >run.conf
refuse 2 "run.conf:2: no setting 'lr' for attend train; it is called learning-rate" train --config run.conf

# Every option that the table names is one of attend, and no name of the table is an option where it would be needed.
commands=$("$attend" help | sed -n 's/^  \([a-z]*\) .*/\1/p')
for command in $commands; do
    { "$attend" help "$command"; [ $command != train ] || "$attend" train --help all; } | sed -n "s/^  --\([a-z-]*\).*/\1/p"
done | sort -u >options
"$attend" help | grep -q . || fail "no help"
ours=$(sed -n 's/^    {"\([a-z-]*\)",.*/\1/p' "$here/../../cli/habits.c" | sort -u)
[ "$(wc -w <<<"$ours")" -gt 50 ] || fail "the table of habits was not found"
for name in $ours; do
    grep -qx -- "$name" options || grep -qw -- "$name" <<<"$commands" || fail "the table names --$name, which no command has"
    checks=$((checks + 1))
done

# ---- Values: Luong's concat is the additive score, by its own name in the model
awk 'BEGIN { for (i = 0; i < 20; i++) print "a b c" >"few" }'
run train --source few --target few --model luong --score concat --hidden 8 --embedding 8 --attention 8 --updates 1 --quiet --output concat
run train --source few --target few --model luong --score additive --hidden 8 --embedding 8 --attention 8 --updates 1 --quiet --output additive
same_file concat additive
npy x.npy '3, 3' 1 3 2 1 1 3 1 2 1
npy w.npy '2, 3' 1 3 2 1 1 3
npy v.npy '2,' 1 2
for score in concat additive; do
    run attention --query x.npy --score $score:relu --param W=w.npy --param U=w.npy --param v=v.npy --out $score.npy
done
same_file concat.npy additive.npy

# ---- Numbers as they were typed
rm concat concat.*
run train --source few --target few --learning-rate 0.0005 --max-ratio 20 --dropout 0.00005 --hidden 8 --embedding 8 --attention 8 --maxout 8 \
    --updates 1 --quiet --output numbers
"$attend" info numbers | grep -qE '^dropout +0\.00005$' || fail "info shows $("$attend" info numbers | grep dropout)"
refuse 1 "cannot resume from 'numbers.state', which was written with --learning-rate 0.0005 and not with --learning-rate 0.003; train as before, or from the start with --overwrite" \
    train --source few --target few --learning-rate 0.003 --max-ratio 20 --dropout 0.00005 --hidden 8 --embedding 8 --attention 8 --maxout 8 \
    --updates 2 --quiet --output numbers --resume
refuse 1 "cannot resume from 'numbers.state', which was written with --max-ratio 20 and not with --max-ratio 1000; train as before, or from the start with --overwrite" \
    train --source few --target few --learning-rate 0.0005 --max-ratio 1000 --dropout 0.00005 --hidden 8 --embedding 8 --attention 8 --maxout 8 \
    --updates 2 --quiet --output numbers --resume

# ---- The model as a word, -i and -o
awk 'BEGIN { srand(5); for (i = 0; i < 60; i++) { n = 2 + int(rand() * 3); s = t = ""
    for (w = 0; w < n; w++) { c = sprintf("%c", 97 + int(rand() * 8)); s = s (w ? " " : "") c; t = c (w ? " " : "") t }
    print s >"source"; print t >"target" } }'
run train --source source --target target --output model --embedding 8 --hidden 16 --attention 8 --maxout 8 --updates 10 --quiet
"$attend" translate -m model <source >expected
"$attend" translate model <source >out
same_file expected out
run translate model -i source -o out2
same_file expected out2
run translate -m model --input source --output out2
same_file expected out2
"$attend" translate model -i source -o - >out
same_file expected out
"$attend" translate -m model -m model <source >ensemble
"$attend" align -m model --source source --target target >expected
run align model --source source --target target -o out2
same_file expected out2
"$attend" encode -m model --mean -o expected.npy <source
run encode model --mean -i source -o out.npy
same_file expected.npy out.npy
"$attend" info model >expected
"$attend" info -m model >out
same_file expected out
"$attend" show -m model "a b" >expected
"$attend" show model "a b" >out
same_file expected out
"$attend" score bleu --reference target <source >expected
"$attend" score bleu --reference target -i source >out
same_file expected out

refuse 2 "attend translate needs a model: attend translate MODEL, or -m MODEL" translate
refuse 2 "attend translate has its model, 'model', so 'other' is too much" translate -m model other
refuse 2 "-o would write over 'source', which is read; name another file" translate model -i source -o source
refuse 2 "-o would write over 'model', which is read; name another file" translate model -i source -o model
refuse 2 "-o would write over 'target', which is read; name another file" \
    align model --source source --target target -o target
refuse 2 "attend show takes one text, in quotes if it has blanks, so 'b' is too much" show -m model a b
refuse 2 "attend info needs a model file: attend info MODEL" info
refuse 2 "attend info has its model, 'model', so 'other' is too much" info -m model other
refuse 1 "cannot read 'nothing': No such file or directory" translate model -i nothing -o new
refuse 1 "cannot write 'nowhere/out': No such file or directory" translate model -i source -o nowhere/out
# A file that cannot be written whole is not there.
code=0
(
    trap '' XFSZ
    ulimit -f 1
    for i in $(seq 200); do cat source; done | "$attend" translate model --scores -o full
) >../full.$$ 2>&1 || code=$?
equal 1 "$code" "a full disk"
grep -q "^attend: cannot write 'full': " ../full.$$ || fail "a full disk says $(cat ../full.$$)"
rm ../full.$$
[ ! -e full ] || fail "half a file is left"
finish
