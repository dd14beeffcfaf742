# Models of other programs, small ones with random weights (tests/models): every kind is read, and attend convert writes a
# model file that answers the same, bit by bit. What is damaged or not known is refused by name.
. "$(dirname "$0")/support.bash"
if "$attend" info "$here/../models/g2p/checkpoint.npz" 2>&1 | grep -q 'built without'; then
    echo "SKIPPED: built without libzip"
    exit 77
fi
cp -r "$here/../models" m
chmod -R u+w m
printf 'a b\nc\n\nb a c b\nz\n' >lines

# same MODEL SENTENCE LINES: the model, what info says of it, and its translations, also when converted.
same() {
    "$attend" info "$1" >said || fail "info $1"
    grep -q "^read from  *$2" said || fail "info $1 says $(cat said)"
    "$attend" translate "$1" --max-length 6 --scores <"$3" >theirs
    equal "$(wc -l <"$3")" "$(wc -l <theirs)" "lines of $1"
    run convert "$1" -o converted.safetensors
    "$attend" translate converted.safetensors --max-length 6 --scores <"$3" >ours
    cmp theirs ours || fail "$1 answers otherwise when it is converted"
    "$attend" info converted.safetensors | grep -q "^read from  *$2" || fail "where the converted $1 comes from"
    rm converted.safetensors
    checks=$((checks + 3))
}
same m/marian "Marian v1.12.0, transformer" lines
same m/marian/model.npz "Marian v1.12.0, transformer" lines
same m/s2s "Marian v1.12.0, s2s" lines
same m/onmt/luong.pt "OpenNMT-py, recurrent" lines
same m/onmt/transformer.pt "OpenNMT-py, Transformer" lines
same m/argos/aa_bb.argosmodel "Argos package 1.9, aa to bb; CTranslate2 version 6, TransformerSpec 7; its list of likely words, vmap.txt, is not used" lines
printf 'ab\nc\n\nbacb\nZ\n' >words
same m/g2p/checkpoint.npz "g2p_en" words

printf 'shortlist:\n  - lex.s2t\n  - 50\n' >>m/marian/decoder.yml
"$attend" info m/marian | grep -qx 'read from  *Marian v1.12.0, transformer; its shortlist is not used' || fail "a shortlist: $("$attend" info m/marian | head -1)"

# Marian's kinds that are refused by the setting that says so.
for kind in ssru:transformer-decoder-autoreg:rnn amun:type:amun tied:transformer-tied-layers: factors:lemma-dim-emb:8 \
    multi-source:type:multi-transformer cells:enc-cell:lstm; do
    IFS=: read -r name setting value <<<"$kind"
    refuse 1 "'m/refused/$name.npz' has '$setting: $value', which this reader of Marian's models does not know" info "m/refused/$name.npz"
done

# The source of Marian's models ends with </s>, which no link names.
"$attend" translate m/s2s --alignment hard --max-length 6 <lines >linked
awk -F ' [|][|][|] ' 'NR == 1 { n = split($2, l, " "); for (i = 1; i <= n; i++) { split(l[i], p, "-"); if (p[1] > 1) exit 1 } }' linked ||
    fail "a link to a unit that is not in the line: $(head -n 1 linked)"

# Hugging Face: pieces are found in vocab.json by their text, a leading >>fra<<, too.
printf 'ab a b c ab ba ca b\na b ab c cab abc\n' >text
run vocabulary make text --vocab spm:9 -o m/hf/source.spm
cp m/hf/source.spm m/hf/target.spm
printf 'ab c\n>>fra<< a b\n\n' >lines
same m/hf "Hugging Face MarianMT" lines
mv m/hf/model.safetensors safe
"$attend" translate m/hf --max-length 6 --scores <lines >again
cmp again theirs || fail "pytorch_model.bin answers otherwise than model.safetensors"
mv safe m/hf/model.safetensors

# What is refused: damaged files, and settings that are not known.
cp m/marian/model.npz m/marian/cut.npz
truncate -s 5000 m/marian/cut.npz
"$attend" info m/marian/cut.npz 2>said && fail "half of an .npz is read"
[[ $(cat said) == "attend: 'm/marian/cut.npz' is "* ]] || fail "of half of an .npz: $(cat said)"
cp m/argos/aa_bb.argosmodel damaged.argosmodel
printf 'xxxx' | dd of=damaged.argosmodel bs=1 seek=1500 conv=notrunc status=none
refuse 1 "'damaged.argosmodel' is truncated or damaged: an entry cannot be read" info damaged.argosmodel
cp m/onmt/luong.pt cut.pt
truncate -s 3900 cut.pt
refuse 1 "'cut.pt' is truncated or damaged: a storage is shorter than its arrays" info cut.pt
truncate -s 500 cut.pt
refuse 1 "'cut.pt' is truncated or damaged: a pickle ends too early" info cut.pt
printf '\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02\x69.' >code.pt
refuse 1 "'code.pt' has a pickle with the code 0x69, which this reader does not run" info code.pt
sed -i 's/"swish"/"mish"/' m/hf/config.json
refuse 1 "'m/hf/model.safetensors' has a 'activation_function' that this reader does not know" info m/hf
rm m/marian/vocab.yml
refuse 1 "the vocabulary 'm/marian/vocab.yml' of 'm/marian/model.npz' is missing" info m/marian
rm m/g2p/vocabulary.json
refuse 1 "'m/g2p/vocabulary.json' is missing, which has the letters and phones of 'm/g2p/checkpoint.npz'" info m/g2p/checkpoint.npz
echo "$checks checks"
