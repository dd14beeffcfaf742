# attend show: every kind of attention, in the terminal and in files, for every kind of model that has it.
. "$(dirname "$0")/support.bash"

printf 'a b c\nb c\nc a b\nb b a c\n' >source
printf 'A B C\nB C\nC A B\nB B A C\n' >target
train() {
    "$attend" train --source source --target target --hidden 8 --epochs 3 --quiet --output "$@" 2>said || fail "training says $(cat said)"
}
train both --model transformer --ffn 8 --layers 2 --heads 2 --decoder-layers 3
train gru --model bahdanau --embedding 6 --attention 6 --maxout 6
"$attend" train --model transformer-lm --target target --output lm --hidden 8 --ffn 8 --layers 2 --heads 2 --epochs 3 --quiet

# ---- Files: the arrays of all layers and heads, by their names and shapes.
names() { LC_ALL=C grep -a -o '"[a-z.]*[0-9.]*":{"dtype":"F32","shape":\[[0-9,]*\]' "$1" | sed 's/":{"dtype":"F32","shape":/ /; s/"//' | sort | tr '\n' ' '; }
show() { "$attend" show "$@" >out 2>said || fail "attend show $* says $(cat said)"; }
show -m both "c b a" --target "A B" -o all.safetensors
equal "cross.1 [2,3,3] cross.2 [2,3,3] cross.3 [2,3,3] decoder.1 [2,3,3] decoder.2 [2,3,3] decoder.3 [2,3,3] encoder.1 [2,3,3] encoder.2 [2,3,3] " \
    "$(names all.safetensors)" "the arrays of a transformer"
for meta in '"source.tokens":"[\"c\",\"b\",\"a\"]"' '"decoder.tokens":"[\"<s>\",\"A\",\"B\"]"' \
    '"target.tokens":"[\"A\",\"B\",\"</s>\"]"' '"target":"A B"'; do
    LC_ALL=C grep -a -q -F "$meta" all.safetensors || fail "the metadata lacks $meta: $(head -c 400 all.safetensors | tr -d '\0')"
done
show -m gru "c b a" --target "A" -o gru.safetensors
equal "cross.1 [1,2,3] " "$(names gru.safetensors)" "the array of a recurrent model"
show -m lm "A B C" -o lm.safetensors
equal "decoder.1 [2,4,4] decoder.2 [2,4,4] " "$(names lm.safetensors)" "the arrays of a language model"
show -m both "c b a" --target "A B" --kind encoder --head 2.1 -o one.safetensors
equal "encoder.2.1 [3,3] " "$(names one.safetensors)" "one head"
show -m both "c b a" --target "A B" --kind encoder --head average -o one.safetensors
equal "encoder.average [3,3] " "$(names one.safetensors)" "the mean of all heads"

# .npy: one array. Its numbers are those of the tab-separated file, of the safetensors file and of attend translate.
show -m both "c b a" --target "A B" --kind decoder -o decoder.npy
equal "(3, 2, 3, 3)" "$(shape decoder.npy)" "all heads of the decoder"
show -m both "c b a" --target "A B" -o all.tsv
equal "kind	layer	head	row	column	row_token	column_token	weight" "$(head -1 all.tsv)" "the columns of a .tsv file"
equal $((2 * 2 * 9 + 3 * 2 * 9 + 3 * 2 * 9 + 1)) "$(wc -l <all.tsv)" "the lines of a .tsv file"
equal "$(awk -F'\t' '$1 == "decoder" { printf "%s%.4f", n++ ? " " : "", $8 }' all.tsv)" "$(values decoder.npy)" "weights in .npy and .tsv"
awk -F'\t' 'NR > 1 { sum[$1 $2 $3 $4] += $8; if ($1 == "decoder" && $5 > $4 && $8 != 0) bad = 1 }
    END { for (r in sum) { rows++; if (sum[r] < 0.9999 || sum[r] > 1.0001) bad = 1 } exit bad || rows != 3 * 16 }' all.tsv || fail "weights are not distributions"
show -m both "c b a" --kind cross --head 3.2 -o own.npy
equal "$("$attend" translate -m both --alignment soft --head 3.2 <<<"c b a" | sed 's/.*||| //' | tr ' ' '\n' | awk -F, 'NF == 3 { printf "%s%.4f %.4f %.4f", n++ ? " " : "", $1, $2, $3 }')" \
    "$(values own.npy | cut -d' ' -f1-$((3 * ($(shape own.npy | tr -d '(' | cut -d, -f1) - 1))))" "a head by show and by translate"
show -m both "c b a" --target "A B" --kind encoder --head average -o mean.npy
equal "$(awk -F'\t' '$1 == "encoder" { sum[$4 * 3 + $5] += $8 / 4 } END { for (i = 0; i < 9; i++) printf "%s%.4f", i ? " " : "", sum[i] }' all.tsv)" \
    "$(values mean.npy)" "the mean of all heads"
show -m both "c b a" --target "A B" --head average -o mean.npy
equal "(3, 3)" "$(shape mean.npy)" "a .npy file holds the cross-attention unless told otherwise"
show -m lm "A B C" -o lm.npy
equal "(2, 2, 4, 4)" "$(shape lm.npy)" "a language model's array"

# ---- The terminal: the whole map, fitted to the width.
show -m both "c b a" --target "A B"
equal "A B" "$(head -1 out)" "the target shown"
equal 7 "$(wc -l <out)" "the lines of one map"
show -m both "c b a" --target "A B" --kind encoder --head all
equal "rows     c b a" "$(sed -n 4p out)" "the rows of small maps"
equal "1.1  1.2  2.1  2.2 " "$(grep '^[12]\.1' out | tr '\n' ' ' | sed 's/  */  /g; s/  $/ /')" "the titles of small maps"
show -m lm "A B C" --head 2.1
grep -q '^ *<s>  ██ 1.00     0.00     0.00     0.00$' out || fail "the first row of a language model is $(cat out)"
equal "A B C" "$(head -1 out)" "a language model's text"
long="a b c a b c a b c a b c a b c a b c a b c a b c a b c"
for width in 80 40 20; do
    for head in average all; do
        COLUMNS=$width "$attend" show -m both "$long" --target "A B C" --kind encoder --head $head | tail -n +3 >out
        [ "$(wc -L <out)" -le $width ] || fail "$(wc -L <out) columns instead of $width"
        checks=$((checks + 1))
    done
done
show -m gru "c b a"
[ "$(wc -l <out)" -gt 4 ] || fail "a recurrent model shows $(cat out)"
show -m both ""
equal 2 "$(wc -l <out)" "an empty line"

# ---- Words and their units.
train letters --model transformer --ffn 8 --layers 1 --heads 2 --source-vocab char --target-vocab char
show -m letters "ab c" --target "A BC" -o units.safetensors
equal "cross.1 [2,5,4] decoder.1 [2,5,5] encoder.1 [2,4,4] " "$(names units.safetensors)" "units"
show -m letters "ab c" --target "A BC" --level word -o words.safetensors
equal "cross.1 [2,3,2] decoder.1 [2,3,3] encoder.1 [2,2,2] " "$(names words.safetensors)" "words"
show -m letters "ab c" --target "A BC" --level word --kind cross -o words.tsv
equal "A BC </s>" "$(awk -F'\t' '$3 == 1 && $5 == 0 { printf "%s%s", n++ ? " " : "", $6 }' words.tsv)" "the words of the target"
equal "ab c" "$(awk -F'\t' '$3 == 1 && $4 == 0 { printf "%s%s", n++ ? " " : "", $7 }' words.tsv)" "the words of the source"
show -m letters "a b" --head average
grep -q '␣' out || fail "a blank is not seen in $(cat out)"
printf 'a\tb\\\n' >tab
show -m letters "$(cat tab)" --target A --kind cross --head 1.1 -o tab.tsv
equal 'a \t b \\' "$(awk -F'\t' '$4 == 0 { printf "%s%s", n++ ? " " : "", $7 }' tab.tsv)" "a tab and a backslash in a .tsv file"

# ---- Refusals.
refuse 1 "there is no head 3.1: the encoder attention has 2 layers of 2 heads" show -m both "a" --kind encoder --head 3.1
refuse 1 "there is no head 1.3: the cross attention has 3 layers of 2 heads" show -m both "a" --head 1.3 -o no.npy --kind cross
refuse 2 "--head is all, average or LAYER.HEAD such as 2.1, not 'best'" show -m both "a" --head best
refuse 1 "this model has no attention of the kind encoder; it has cross" show -m gru "a" --kind encoder
refuse 1 "this model has no attention of the kind cross; it has decoder" show -m lm "a" --kind cross
refuse 2 "this is a language model: it reads its text and has no --target" show -m lm "a" --target "b"
refuse 2 "-o is a name that ends in .svg, .png, .pdf, .html, .npy, .safetensors or .tsv, not 'no.txt'" show -m both "a" -o no.txt
cp both model.npy
refuse 2 "-o would write over the model 'model.npy'; name another file" show -m model.npy "a" -o ./model.npy
refuse 1 "cannot write 'no/x.tsv': No such file or directory" show -m both "a" -o no/x.tsv
finish
