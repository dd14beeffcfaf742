# attend convert --to: folders for CTranslate2 and MarianMT. attend reads them back and answers the same, and a forward pass that
# shares nothing with attend (tests/judge/hf_marian.py) gives the same log-probabilities from a MarianMT folder.
. "$(dirname "$0")/support.bash"
awk 'BEGIN { srand(3); for (i = 0; i < 200; i++) { n = 2 + int(rand() * 4); s = t = ""
    for (w = 0; w < n; w++) { c = sprintf("%c", 97 + int(rand() * 12)); s = s (w ? " " : "") c c; t = toupper(c) (w ? " " : "") t }
    print s >"source"; print t >"target" } }'
head -n 40 source >lines
head -n 40 target >references
small="--model transformer --hidden 16 --ffn 24 --heads 2 --layers 2 --batch-size 20 --learning-rate 0.003 --schedule constant --epochs 8 --quiet"

forced() { "$attend" align -m "$1" --source lines --target references --scores; } # links and log-probabilities of the targets
# alike MODEL MODEL: both translate alike, greedily, but where the first says nothing: models of CTranslate2 never do.
alike() {
    paste <("$attend" translate "$1" <lines) <("$attend" translate "$2" <lines) | awk -F '\t' '$1 != "" && $1 != $2 { bad = 1 } $1 != "" { some = 1 } END { exit bad || !some }' ||
        fail "$1 and $2 translate otherwise"
    checks=$((checks + 1))
}
near() {
    paste "$1" "$2" | awk -v most="$3" 'NF != 2 || ($1 - $2) ^ 2 > most ^ 2 { bad = 1 } END { exit bad || NR == 0 }' || fail "$4: other numbers"
    checks=$((checks + 1))
}

train() { run train --source source --target target $small "$@"; }
train --output words
train --output post --norm post --source-end --joint-vocab --share-embeddings --activation swish --position-layout halves
train --output pieces --norm post --source-end --source-vocab spm:16 --target-vocab spm:16:bpe --activation gelu --output-bias --decoder-layers 1
for model in words post pieces; do
    run convert $model --to ctranslate2 -o $model.ct2
    forced $model >ours
    forced $model.ct2 >theirs
    same_file ours theirs
    alike $model $model.ct2
    "$attend" info $model.ct2 | grep -q '^read from  *CTranslate2 version 6, TransformerSpec 7$' || fail "info of $model.ct2"
done
equal "config.json model.bin source_vocabulary.json target_vocabulary.json tokenizer.json" "$(ls words.ct2 | paste -sd ' ')" "files of words"
equal "config.json model.bin shared_vocabulary.json tokenizer.json" "$(ls post.ct2 | paste -sd ' ')" "files of one vocabulary"
equal "config.json model.bin source.spm source_vocabulary.json target.spm target_vocabulary.json" "$(ls pieces.ct2 | paste -sd ' ')" "files of pieces"
for weights in f16 bf16 int8; do
    run convert words --to ctranslate2 --weights $weights -o small
    [ $(($(stat -c %s small/model.bin) * 10)) -lt $(($(stat -c %s words.ct2/model.bin) * 9)) ] || fail "$weights is not smaller"
    "$attend" convert small -o back
    rm -rf small back
done

for model in post pieces; do
    run convert $model --to hf-marian -o $model.hf
    forced $model >ours
    forced $model.hf >theirs
    near <(sed 's/.*||| //' ours) <(sed 's/.*||| //' theirs) 3e-4 "$model as MarianMT"
    "$attend" info $model.hf | grep -q '^read from  *Hugging Face MarianMT$' || fail "info of $model.hf"
done
same_file <(forced post) <(forced post.hf) # sines and cosines in halves: the same bits
same_file <("$attend" translate post --beam 3 --scores <lines) <("$attend" translate post.hf --beam 3 --scores <lines)
equal "config.json generation_config.json model.safetensors tokenizer.json tokenizer_config.json vocab.json" "$(ls post.hf | paste -sd ' ')" "files of MarianMT"
equal "config.json generation_config.json model.safetensors source.spm target.spm target_vocab.json tokenizer_config.json vocab.json" \
    "$(ls pieces.hf | paste -sd ' ')" "files of MarianMT with pieces"

# From one program's format to another's.
run convert post.hf --to ctranslate2 -o there
same_file <(forced post) <(forced there)
run convert post.hf --to hf-marian -o again
same_file post.hf/model.safetensors again/model.safetensors
refuse 1 "MarianMT of Hugging Face cannot take this model: its --position is learned, and only sinusoidal fits" convert there --to hf-marian -o x

# The forward pass of another hand.
python=python3
$python -c 'import numpy' 2>/dev/null || python=/usr/bin/python3 # Debian's, which its packages are for
if $python -c 'import numpy' 2>/dev/null; then
    train --output two --norm post --source-end --activation gelu --decoder-layers 1 --output-bias
    for model in post two; do
        rm -rf exported
        run convert $model --to hf-marian -o exported
        $python "$here/../judge/hf_marian.py" exported lines references >numpy || fail "hf_marian.py fails"
        near <(forced $model | sed 's/.*||| //') numpy 2e-4 "$model by NumPy"
    done
    rm -rf exported
    run convert two --to hf-marian --weights f16 -o exported
    $python "$here/../judge/hf_marian.py" exported lines references >numpy || fail "hf_marian.py fails"
    near <(forced exported | sed 's/.*||| //') numpy 2e-4 "f16 by NumPy"
else
    skipped "the forward pass of MarianMT by NumPy: there is no NumPy"
fi

# What does not fit.
refuse 1 "MarianMT of Hugging Face cannot take this model: its --norm is pre, and only post fits" convert words --to hf-marian -o x
refuse 1 "cannot write the folder 'words.ct2': it has files in it; name a new one" convert words --to ctranslate2 -o words.ct2
refuse 2 "no format 'onnx'; there are 'attend', 'ctranslate2' and 'hf-marian'" convert words --to onnx -o x
refuse 1 "MarianMT of Hugging Face cannot take this model: its --weights is int8, and only f32, bf16 or f16 fits" convert post --weights int8 --to hf-marian -o x
refuse 2 "--source-end cannot be used with --subword-sampling; leave out one of them" \
    train --source source --target target $small --source-end --subword-sampling 0.1 --source-vocab spm:16 --output x
finish
