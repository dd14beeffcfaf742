# attend train --model transformer-lm and what is done with it: one file in, one vocabulary, going on from lines.
. "$(dirname "$0")/support.bash"

# Four sentences over and over.
awk 'BEGIN { srand(7); split("a b c d e|b c d e f|f g h|h g f e", s, "|"); for (i = 0; i < 400; i++) print s[1 + int(rand() * 4)] }' >all
head -350 all >text
tail -50 all >valid
train() {
    "$attend" train --model transformer-lm --output "$@" --norm post --schedule constant --label-smoothing 0 --layers 1 --hidden 16 --ffn 32 --heads 2 --batch-size 20 \
        --learning-rate 0.01 --quiet 2>said || fail "training says $(cat said)"
}
train lm --target text --valid-target valid --valid-metric perplexity --epochs 4
"$attend" info lm >about
equal "vocabulary       word, 8 units and 4 specials" "$(grep '^vocabulary' about)" "the one vocabulary"
! grep -q '^source\|^target' about || fail "info mentions a source: $(cat about)"
awk '/perplexity/ { last = $8 } END { exit !(last < 1.7) }' about || fail "it did not learn: $(tail -2 about)"

# Stopped and resumed: the same bytes. One column of a tab-separated file: the same text, the same model.
train half --target text --valid-target valid --valid-metric perplexity --epochs 2
train half --target text --valid-target valid --valid-metric perplexity --epochs 4 --resume
same_file lm.state half.state
sed 's/^/x\t/' text >text.tsv
train plain --target text --epochs 1
train tsv --tsv text.tsv --columns 2 --epochs 1
same_file plain.state tsv.state # a model has the names of its files

# It goes on from every line, the empty one too; unknown words stay as they were written.
printf 'a b\n\nh\nzz a b\n' >in
"$attend" translate -m lm <in >out
same_file <(sed -n 1p out) <(head -1 in | "$attend" translate -m lm --alternatives 2 | awk -F' [|][|][|] ' 'NR == 1 { print $2 }')
equal 4 "$(wc -l <out)" "lines out"
equal "a b c d e" "$(sed -n 1p out)" "a line goes on"
equal "h g f e" "$(sed -n 3p out)" "another line goes on"
equal "zz a b" "$(sed -n 4p out | cut -d' ' -f1-3)" "a beginning with an unknown word"
equal "a b c" "$(echo 'a b' | "$attend" translate -m lm --max-length 3)" "--max-length"
equal "a b c d e" "$(echo 'a b c d e' | "$attend" translate -m lm --max-length 3)" "a beginning that is longer"
for options in "--beam 3 --n-best 3" "--sample 1 --n-best 2 --seed 4" "--scores"; do
    "$attend" translate -m lm $options --batch-size 64 --threads 1 <in >judge
    "$attend" translate -m lm $options --batch-size 1 --threads 2 <in >other
    same_file judge other
done

refuse 2 "model 'transformer-lm' is a language model and has no source; give its text as --target FILE alone" \
    train --model transformer-lm --source text --target text --output no
refuse 2 "model 'transformer-lm' needs --target FILE or --tsv FILE" train --model transformer-lm --output no
refuse 2 "model 'transformer-lm' has one vocabulary, --target-vocab, and does not use --source-vocab" \
    train --model transformer-lm --target text --source-vocab char --output no
refuse 2 "model 'transformer-lm' reads one column; --columns takes its number alone" \
    train --model transformer-lm --tsv text.tsv --columns 1,2 --output no
refuse 2 "--columns takes the columns of source and target, such as 1,2" train --tsv text.tsv --columns 2 --output no
refuse 2 "--target needs --source beside it" train --target text --output no
refuse 2 "--valid-metric accuracy scores translations, and a language model has no source to translate; use loss, perplexity or token-accuracy" \
    train --model transformer-lm --target text --valid-target valid --valid-metric accuracy --output no
refuse 2 "model 'transformer-lm' is a language model: it has no source that the least length could be a multiple of" \
    translate -m lm --min-length-factor 1 <in
refuse 1 "this model has no attention of the kind cross; it has decoder" show -m lm "a b" --kind cross
refuse 2 "model 'transformer-lm' is a language model: it takes no sources beside the text" align -m lm --source text --target text
: >empty
refuse 1 "'empty' is empty: it has no line" train --model transformer-lm --target empty --output no
finish
