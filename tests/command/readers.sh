# Models of other programs, real ones that lie beside the project (../shared/models): what they answer. Their numbers are compared by
# tests/float/test_other_models.c, token by token.
. "$(dirname "$0")/support.bash"
models=$here/../../../shared/models
[ -d "$models/ct2" ] || { echo "SKIPPED: no models of other programs in ../shared/models"; exit 77; }

# CTranslate2, with the weights as float32 and as int8: the first 200 names, letter by letter. Columns of lines200.tsv:
# greedy and a beam of 4, each with the mean log-probability of its tokens.
tail -n +2 "$models/ct2/lines200.tsv" >expected
cut -f1 expected | sed 's/./& /g; s/ $//' >names
formats=$({ "$attend" info . 2>&1 || true; } | sed 's/.*the known formats are: //')
for kind in v2:3 v2-i8:7; do
    model=$models/ct2/aren-transliteration-${kind%:*} column=${kind#*:}
    "$attend" translate "$model" <names >greedy
    "$attend" translate "$model" --beam 4 --normalize 1 <names >beam
    for search in greedy beam; do
        diff <(cut -f$column expected) <(sed 's/ //g' $search) >&2 || fail "$model, $search: other names"
        column=$((column + 2)) checks=$((checks + 1))
    done
done
# All 1,590 names: CTranslate2's own error rates.
words=$models/../data/translit/ar2en-test.txt.gz
zcat "$words" | cut -f2 >reference
zcat "$words" | cut -f1 | sed 's/./& /g; s/ $//' | "$attend" translate "$models/ct2/aren-transliteration-v2" --beam 4 --normalize 1 | sed 's/ //g' >texts
equal "wer 77.48 cer 22.45" "$("$attend" score wer cer --reference reference <texts | paste -sd ' ')" "1,590 names with a beam of 4"
read_from() { "$attend" info "$1" | sed -n 's/^read from *//p'; }
equal "CTranslate2 version 2, TransformerBase 2" "$(read_from "$models/ct2/aren-transliteration-v2")" "what info found"
equal "CTranslate2 version 2, TransformerBase 2, int8" "$(read_from "$models/ct2/aren-transliteration-v2-i8")" "what info found of int8"
run convert "$models/ct2/aren-transliteration-v2" -o ours
"$attend" translate "$models/ct2/aren-transliteration-v2" --scores --beam 4 <names >beam
"$attend" translate ours --scores --beam 4 <names >converted
same_file beam converted
equal "200" "$("$attend" align -m "$models/ct2/aren-transliteration-v2" --source names --target greedy | wc -l)" "aligned lines"
"$attend" info "$models/ct2/aren-transliteration-v2" >said
! grep -q '^longest source' said || fail "info knows what the model was trained on: $(cat said)"
grep -q '^position-denominator half-1$' said && grep -q '^parameters       182731 ' said || fail "info says $(cat said)"
"$attend" vocabulary print "$models/ct2/aren-transliteration-v2" --side target >units
grep -q '^a\b' units || fail "vocabulary print says $(cat units)"
checks=$((checks + 2))

# A copy with its vocabulary or its end missing.
cp -r "$models/ct2/aren-transliteration-v2" broken
chmod -R u+w broken
truncate -s 700000 broken/model.bin
refuse 1 "'broken/model.bin' is truncated or damaged: it ends too early" translate broken
rm broken/target_vocabulary.txt
cp "$models/ct2/aren-transliteration-v2/model.bin" broken/
refuse 1 "'broken' has neither target_vocabulary nor shared_vocabulary, .txt or .json" info broken
refuse 1 "'$models' is a folder, not a model; the known formats are: $formats" info "$models"

# near TOLERANCE COLUMNS-FILE COLUMNS-FILE WHAT: two files with a number a line.
near() {
    paste "$2" "$3" | awk -v most="$1" 'NF != 2 || ($1 - $2) ^ 2 > most ^ 2 { bad = 1 } END { exit bad || NR == 0 }' || fail "$4: other numbers"
    checks=$((checks + 1))
}

# Marian, both kinds: its own greedy output and 4-best lists.
for kind in transformer s2s; do
    model=$models/marian/$kind
    zcat "$model/greedy.nbest.gz" | awk -F ' [|][|][|] ' '{ print $2 }' >greedy.expected
    zcat "$model/beam4.nbest.gz" | awk -F ' [|][|][|] ' '{ print $1 " ||| " $2 }' >beam.expected
    "$attend" translate "$model" --max-length-factor 3 <"$model/input.txt" >greedy
    diff greedy.expected greedy >&2 || fail "$kind: other lines, greedily"
    "$attend" translate "$model/model.npz" --beam 4 --n-best 4 --normalize 1 --max-length-factor 3 <"$model/input.txt" >beam
    diff beam.expected <(awk -F ' [|][|][|] ' '{ print $1 " ||| " $2 }' beam) >&2 || fail "$kind: other 4-best lists"
    checks=$((checks + 2))
done
"$attend" translate "$models/marian/s2s" --alignment soft --max-length-factor 3 <"$models/marian/s2s/input.txt" | awk -F ' [|][|][|] ' '{ print $2 }' | tr ' ,' '\n\n' >soft
zcat "$models/marian/s2s/greedy.nbest.gz" | awk -F ' [|][|][|] ' '{ print $3 }' | sed 's/ [^ ]*$//' | tr ' ,' '\n\n' >soft.expected
near 1e-5 soft soft.expected "s2s, soft alignments"

# OpenNMT-py: a Luong model of 2017.
cut -f1 <(tail -n +2 "$models/onmt/expected.tsv") >source
"$attend" translate "$models/onmt/luong.pt" --max-length 100 <source >greedy
diff "$models/onmt/test_model2.tgt" greedy >&2 || fail "luong.pt: other lines"
"$attend" translate "$models/onmt/luong.pt" --max-length 100 --beam 10 <source >beam
diff "$models/onmt/test_model2.tgt" beam >&2 || fail "luong.pt: other lines with a beam of 10"
checks=$((checks + 2))

# g2p_en: at most 20 phones.
cut -f1 "$models/g2p/words300.tsv" >words
"$attend" translate "$models/g2p/checkpoint20.npz" --max-length 20 <words >phones
diff <(cut -f2 "$models/g2p/words300.tsv") phones >&2 || fail "g2p: other phones"
checks=$((checks + 1))

# OPUS-MT's tokenisation, with somebody's random weights: 50 lines become the ids of vocab.json.
mkdir opus
cp "$models"/opus/{source.spm,target.spm,vocab.json} opus
cp "$models/marian/marian-tiny-random.safetensors" opus/model.safetensors
chmod u+w opus/*
sed 's/"d_model": 512/"d_model": 2/; s/_ffn_dim": 2048/_ffn_dim": 2/; s/_attention_heads": 8/_attention_heads": 1/; s/_layers": 6/_layers": 2/
     s/54687/58100/' "$models/opus/config.json" >opus/config.json
"$attend" vocabulary segment opus --side source <"$models/opus/lines50.en" >pieces
"$attend" info opus | grep -q '^source .*spm (unigram), </s> after it, a language tag' || fail "info: $("$attend" info opus)"
equal 50 "$(wc -l <pieces)" "lines cut into pieces"

# What attend writes for MarianMT has the names and the number types of that file.
printf 'a b\nb c a\nc\n' >text
run train --source text --target text --model transformer --layers 2 --hidden 2 --ffn 2 --heads 1 --norm post --source-end --joint-vocab --share-embeddings --updates 1 --quiet --output tiny
run convert tiny --to hf-marian -o tiny.hf
arrays() { LC_ALL=C head -c "$((8 + $(od -An -tu8 -N8 "$1")))" "$1" | LC_ALL=C grep -a -o '"[a-z_.0-9]*": *{"dtype": *"[A-Z0-9]*"' | tr -d ' ' | LC_ALL=C sort; }
arrays opus/model.safetensors >theirs
equal 86 "$(wc -l <theirs)" "arrays of a model of Hugging Face"
same_file theirs <(arrays tiny.hf/model.safetensors)
echo "$checks checks"
