# attend encode, the heads of align, translate and show, guided alignment, coverage and perplexity on small models.
. "$(dirname "$0")/support.bash"

# Words turned round: "a b c" -> "C B A", and the links between them.
awk 'BEGIN { srand(5); for (i = 0; i < 400; i++) { n = 2 + int(rand() * 3); s = t = l = ""
    for (w = 0; w < n; w++) { c = sprintf("%c", 97 + int(rand() * 8)); s = s (w ? " " : "") c
        t = toupper(c) (w ? " " : "") t; l = l (w ? " " : "") w "-" (n - 1 - w) }
    print s >"source"; print t >"target"; print l >"links" } }'
train() {
    "$attend" train --source source --target target --output "$@" --hidden 32 --batch-size 20 --learning-rate 0.005 \
        --quiet 2>said || fail "training says $(cat said)"
}
small="--model transformer --layers 2 --heads 2 --ffn 64 --norm post --schedule constant --label-smoothing 0"
train free $small --epochs 16
train guided $small --epochs 16 --guided-alignment links --guided-weight 1
equal "guided-head      1.1" "$("$attend" info guided | grep guided)" "the guided head in the model"
head -40 source >s
head -40 target >t
head -40 links >gold
aer() {
    "$attend" align -m "$1" --source s --target t --quiet "${@:2}" >said.links || fail "align $* fails"
    "$attend" score aer --reference gold <said.links | cut -d' ' -f2
}
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }' || fail "$3: $1 is not below $2"; checks=$((checks + 1)); }
below "$(aer guided)" 8 "AER of the guided head"
below "$(aer guided)" "$(aer free)" "AER with and without guidance"
below "$(aer guided --head 1.1)" "$(aer free --head 1.1)" "AER of the guided head and of the same head left free"
"$attend" align -m guided --source s --target t --head best >/dev/null 2>said
equal "attend: head 1.1, which training guided" "$(cat said)" "what best is without gold"
"$attend" align -m guided --source s --target t --head best --gold gold >best 2>said
grep -qE '^attend: head [12]\.[12] has the lowest AER, [0-9.]+$' said || fail "best by gold says $(cat said)"
"$attend" align -m guided --source s --target t --head "$(cut -d' ' -f3 said)" >one
same_file one best
"$attend" align -m free --source s --target t --head best >best 2>said
grep -qE '^attend: head [12]\.[12] agrees most with itself in both directions, [0-9.]+%$' said || fail "best says $(cat said)"
"$attend" align -m free --source s --target t --head "$(cut -d' ' -f3 said)" >one
same_file one best
# One source word that three target words look at, and that looks back at one of them: 2 * 1 / (1 + 3).
echo a >single
echo "A B C" >triple
"$attend" align -m free --source single --target triple --head best >/dev/null 2>said
equal "attend: head 1.1 agrees most with itself in both directions, 50.00%" "$(cat said)" "agreement"
# The same bytes in any batch; another head, other weights.
for head in average 2.2; do
    "$attend" align -m free --source s --target t --head $head --coverage --threads 1 >judge
    "$attend" align -m free --source s --target t --head $head --coverage --threads 2 --batch-size 3 >other
    same_file judge other
done
"$attend" translate -m free --alignment soft --head 1.1 <s >first
"$attend" translate -m free --alignment soft --head 2.2 <s >second
! cmp -s first second || fail "two heads have the same weights"

# Coverage: sums that add up to the target's words, and the words below 0.1.
# One target word cannot give 0.1 to each of twelve.
{ cat s; echo a b c d e f g h a b c d; } >more.s
{ cat t; echo A; } >more.t
"$attend" align -m guided --source more.s --target more.t --coverage >out
awk -F' \\|\\|\\|' '{ n = split($2, c, " "); sum = 0; m = NR == 41 ? 1 : n; low = ""; for (i = 1; i <= n; i++) { sum += c[i]; if (c[i] < 0.1) low = low " " (i - 1) }
    if (NF != 3 || sum < m - 0.01 || sum > m + 0.01 || low != $3) { print; bad = 1 } lows += low != "" } END { exit bad || !lows }' out || fail "coverage does not add up"
printf 'a b c\n' | "$attend" translate -m guided --coverage >out
grep -qE '^[A-H ]+ \|\|\| [0-9]\.[0-9]{4} [0-9]\.[0-9]{4} [0-9]\.[0-9]{4} \|\|\|( [0-9])*$' out || fail "coverage looks like $(cat out)"
"$attend" show -m guided --head 2.1 "a b" >out
[ "$(wc -l <out)" -gt 3 ] || fail "show --head shows $(cat out)"

# Guided runs go on to the same bits; recurrent models are guided too, and characters by their words.
train half $small --epochs 4 --guided-alignment links --guided-weight 1
train half $small --epochs 16 --guided-alignment links --guided-weight 1 --resume
same_file guided.state half.state
train gru --model bahdanau --embedding 16 --attention 16 --maxout 16 --epochs 3 --guided-alignment links --guided-weight 1
below "$(aer gru)" 10 "AER of a guided recurrent model"
train chars $small --epochs 2 --source-vocab char --target-vocab char --guided-alignment links --guided-weight 1
below "$(aer chars)" 40 "AER of guided characters"

sed '3s/.*/0-0/' links >other
"$attend" train --source source --target target --output half $small --hidden 32 --batch-size 20 --learning-rate 0.005 \
    --epochs 20 --guided-alignment other --guided-weight 1 --resume --quiet 2>said && fail "other alignments are taken for the same"
grep -q "^attend: cannot resume from 'half.state', which was written with --guided-weight 1 and alignments (" said || fail "resuming says $(cat said)"
sed '3s/.*/0-0 7-0/' links >far
refuse 1 "line 3 of 'far' links source word 7, and the words of that line go from 0 to $(($(sed -n 3p source | wc -w) - 1))" \
    train --source source --target target --output no $small --guided-alignment far
sed '2s/.*/0-0 x/' links >bad
refuse 1 "line 2 of 'bad' is not an alignment: 'x' should be a link such as 0-0, source and target" \
    train --source source --target target --output no $small --guided-alignment bad
refuse 1 "'gold' has 40 lines and the training data 400; each pair needs its own" \
    train --source source --target target --output no $small --guided-alignment gold
refuse 2 "--guided-head is '3.1' and must be LAYER.HEAD, from 1.1 to 2.2" \
    train --source source --target target --output no $small --guided-alignment links --guided-head 3.1
refuse 2 "--guided-head needs --guided-alignment FILE, the word alignments to train on" \
    train --source source --target target --output no $small --guided-head 1.1
refuse 2 "model 'rnn-plain' does not attend to a source, so --guided-alignment has no head to train" \
    train --source source --target target --output no --model rnn-plain --guided-alignment links
for model in rnn-plain transformer; do
    refuse 2 "--doubly-stochastic is for recurrent models that attend to the source, and model '$model' is not one" \
        train --source source --target target --output no --model $model --doubly-stochastic 1
done
refuse 2 "--doubly-stochastic trains attention weights, and the normaliser 'hard' samples positions instead" \
    train --source source --target target --output no --normaliser hard --doubly-stochastic 1
refuse 1 "there is no head 3.1: the model has 2 layers of 2 heads" align -m free --source s --target t --head 3.1
refuse 2 "--head is best, average or LAYER.HEAD such as 2.1, not 'x'" align -m free --source s --target t --head x
refuse 2 "--gold is for --head best only" align -m free --source s --target t --gold gold

# ---- encode: one array for each line, the same bytes in any batch; the mean of a line is its array's.
printf 'a b c\n\nd\n' >three
for model in free gru; do
    "$attend" encode -m $model -o judge.safetensors --threads 1 <s
    "$attend" encode -m $model -o other.safetensors --threads 2 --batch-size 3 <s
    same_file judge.safetensors other.safetensors
done
"$attend" encode -m free -o three.safetensors <three
cp free copy.safetensors
refuse 2 "-o would write over the model 'copy.safetensors'; name another file" encode -m copy.safetensors -o ./copy.safetensors
LC_ALL=C grep -a -q '"1":{"dtype":"F32","shape":\[3,32\]' three.safetensors || fail "line 1 is $(head -c 300 three.safetensors | tr -d '\0')"
LC_ALL=C grep -a -q '"2":{"dtype":"F32","shape":\[0,0\]' three.safetensors || fail "the empty line has features"
"$attend" encode -m free --mean -o mean.npy <three
equal "(3, 32)" "$(shape mean.npy)" "means"
echo d >line
"$attend" encode -m free -o one.npy <line
equal "(1, 32)" "$(shape one.npy)" "one line"
equal "$(values one.npy)" "$(values mean.npy | cut -d' ' -f65-96)" "the mean of one unit"
equal "0.0000" "$(values mean.npy | cut -d' ' -f33)" "the mean of nothing"
train plain --model rnn-plain --epochs 1
refuse 1 "model 'rnn-plain' has no features of a source's units: it encodes the whole source as one vector" \
    encode -m plain -o no.npy <line
refuse 2 "a .npy file holds one array, and there are 3 lines; take -o FILE.safetensors, or --mean" encode -m free -o no.npy <three
refuse 2 "-o is a name that ends in .npy or .safetensors, not 'no'" encode -m free -o no <three

# ---- perplexity
"$attend" score perplexity -m free --source s --reference t --json >out
grep -qE '^\{"perplexity":[0-9.]+,"perplexity_per_word":[0-9.]+,"log_probability":-[0-9.]+,"log_probability_per_line":-[0-9.]+,"units":[0-9]+,"words":[0-9]+,"lines":40\}$' out || fail "perplexity says $(cat out)"
words=$(($(wc -w <t) + 40))
equal "$words $words" "$(sed 's/.*"units":\([0-9]*\),"words":\([0-9]*\).*/\1 \2/' out)" "units and words, ends counted"
"$attend" train --model transformer-lm --target target --output lm --hidden 32 --ffn 64 --layers 1 --heads 2 --epochs 3 --quiet
"$attend" score perplexity -m lm --reference t >out
grep -qE "^perplexity [0-9.]+ per unit, [0-9.]+ per word; log-probability -[0-9.]+ per line, of $words units, $words words and 40 lines$" out || fail "perplexity says $(cat out)"
refuse 2 "this is a language model, so perplexity takes --reference alone and no --source" score perplexity -m lm --source s --reference t
refuse 2 "this model translates, so perplexity needs --source FILE beside --reference" score perplexity -m free --reference t
refuse 2 "perplexity needs a model: -m FILE" score perplexity --reference t
refuse 2 "model 'transformer-lm' is a language model: it has no encoder" encode -m lm -o no.npy <line
finish
