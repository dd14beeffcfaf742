#!/usr/bin/env bash
# ctranslate2.sh ATTEND FOLDER: CTranslate2 itself loads what `attend convert --to ctranslate2` writes, and translates alike, greedily
# and with a beam of 4: the same texts and the same scores. FOLDER keeps the Debian 13 that it runs in.
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2"
folder=$(cd "$2" && pwd)
. "$here/../command/support.bash"
here=$(dirname "$here")
. "$here/judge/root.bash"
judge_root "$folder" || exit 77
models=$here/../../shared/models/ct2
tour=$here/../examples/tour

# ours MODEL BEAM: as ctranslate2.js prints it.
ours() {
    "$attend" translate "$1" --beam "$2" --normalize 1 --max-length 255 --scores <lines | awk -F ' [|][|][|] ' '{ print $3 "\t" $1 }'
}

# compare NAME TOLERANCE OTHERS: theirs and ours; so many lines may have another text. Hypotheses that reach the most units do not
# end in CTranslate2, and have another score.
compare() {
    paste theirs said | awk -F '\t' -v name="$1" -v most="$2" -v others="$3" '
        split($2, unit, " ") >= 255 || length($2) >= 255 { long++; next }
        $2 != $4 { other++; next }
        { d = $1 - $3; if (d < 0) d = -d; if (d > far) far = d }
        END { printf "%s: %d lines, %d other texts, scores within %.2g\n", name, NR, other, far; exit other > others || far > most || NR == 0 || long > NR / 2 }' ||
        fail "$1: CTranslate2 translates otherwise"
    checks=$((checks + 2))
}

# both NAME MODEL TOLERANCE OTHERS: an exported model, greedily and with a beam.
both() {
    local beam
    for beam in 1 4; do
        judge "$folder" "$2" lines $beam >theirs || fail "$1: CTranslate2 does not run"
        ours "$2" $beam >said
        compare "$1, beam $beam" "$3" "$4"
    done
}

# A model somebody else trained, as it was and from int8. Small integers are computed with as such in CTranslate2, not here.
if [ -d "$models" ]; then
    words=$here/../../shared/data/translit/ar2en-test.txt.gz
    zcat "$words" | cut -f1 | sed 's/./& /g; s/ $//' >lines
    zcat "$words" | cut -f2 >reference
    run convert "$models/aren-transliteration-v2" --to ctranslate2 -o names
    both "names, f32" names 1e-4 0
    cut -f2 said | tr -d ' ' >texts
    equal "wer 77.48 cer 22.45" "$("$attend" score wer cer --reference reference <texts | paste -sd ' ')" "names, beam 4"
    run convert "$models/aren-transliteration-v2-i8" --to ctranslate2 --weights int8 -o names-int8
    both "names, int8" names-int8 0.05 60
else
    skipped "no models of other programs in ../shared/models"
fi

# Models of our own. Lines are cut by tokenizer.json; those with pieces are cut here, as bindings differ in what they add.
train() {
    "$attend" train --source "$tour/train.en" --target "$tour/train.de" --model transformer --hidden 32 --ffn 64 --heads 4 --layers 2 \
        --updates 300 --batch-size 32 --learning-rate 0.003 --schedule constant --threads 2 --quiet --output "$@"
}
case_of() {
    local name=$1 weights
    shift
    train $name "$@"
    for weights in f32 f16 bf16 int8; do
        rm -rf exported
        run convert $name --to ctranslate2 --weights $weights -o exported
        cp "$tour/test.en" lines
        if [ $weights = int8 ]; then both "$name, $weights" exported 0.2 100; else both "$name, $weights" exported 1.1e-4 0; fi
    done
}
case_of pre-norm
case_of post-norm --norm post --final-norm true --source-end --joint-vocab --share-embeddings --position-layout halves --activation swish
case_of characters --source-vocab char --target-vocab char --first-position 1 --position-denominator half-1 --position-layout halves
case_of relative --position shaw:4 --output-bias --decoder-layers 1
case_of keys --position shaw:3:keys --norm post --activation gelu
case_of learned --position learned --positions 300

train pieces --source-vocab spm:90 --target-vocab spm:110:bpe
rm -rf exported
run convert pieces --to ctranslate2 -o exported
"$attend" vocabulary segment pieces --side source <"$tour/test.en" >lines
cp -r exported cut
rm cut/*.spm
{
    printf '{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,"pre_tokenizer":{"type":"WhitespaceSplit"},'
    printf '"post_processor":null,"decoder":{"type":"WordPiece","prefix":"\\u0001","cleanup":false},"model":{"type":"WordLevel","unk_token":"<unk>","vocab":{'
    grep '^ ' cut/source_vocabulary.json | sed 's/,$//; s/^ //' | awk '{ printf "%s%s:%d", (NR > 1 ? "," : ""), $0, NR - 1 }'
    printf '}}}'
} >cut/tokenizer.json
for beam in 1 4; do
    judge "$folder" cut lines $beam | awk -F '\t' '{ gsub(" ", "", $2); gsub("▁", " ", $2); sub("^ +", "", $2); print $1 "\t" $2 }' >theirs
    cp lines cut.lines
    cp "$tour/test.en" lines
    ours exported $beam >said
    cp cut.lines lines
    compare "pieces, beam $beam" 1.1e-4 0
done
finish
