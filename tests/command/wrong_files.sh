# Files that are not what they should be are called what they are: text, gzip, a state, a truncated file ... instead of a model;
# UTF-16 and Latin-1 instead of UTF-8.
. "$(dirname "$0")/support.bash"
for i in $(seq 30); do
    echo "word$((i % 7)) ü$((i % 3))"
done >text
run train --source text --target text --output model --embedding 8 --hidden 8 --attention 8 --maxout 8 --updates 3 --quiet

# ---- Instead of a model
known="not a model; the known formats are: attend (of attend train), ctranslate2 (a folder with model.bin), argos (.argosmodel), marian (.npz, or a folder with decoder.yml), g2p_en (.npz with vocabulary.json), hf-marian (a folder with config.json), opennmt-py (.pt)"
says() { # says FILE WHAT
    refuse 1 "'$1' is $2, $known" info "$1"
}
says text "a text file"
iconv -f UTF-8 -t LATIN1 text >latin
says latin "a text file that is not UTF-8, probably Latin-1"
iconv -f UTF-8 -t UTF-16 text >utf16
says utf16 "a text file in UTF-16"
gzip -c model >model.gz
says model.gz "gzip data, which has to be decompressed first"
: >empty
says empty "an empty file"
printf 'PK\003\004 and so on' >model.pt
says model.pt "a zip archive, as PyTorch and NumPy write them (.pt, .npz)"
printf '\200\002}q' >old.pt
says old.pt "a Python pickle, as PyTorch writes it"
npy array.npy '2, 2' 1 2 3 4
says array.npy "a .npy array"
printf '\020\0\0\0\0\0\0\0{"x":1}         ' >other
says other "a safetensors file that attend has not written"
head -c 100 model >cut
code=0
"$attend" info cut 2>said || code=$?
grep -qxE "attend: 'cut' is truncated: it claims a header of [0-9]+ bytes, and 92 bytes follow" said || fail "a cut header says $(cat said)"
head -c 20 model >cut
says cut "a truncated safetensors file"
refuse 1 "'model.state' is a training state, not a model" info model.state
size=$(wc -c <model)
head -c $((size - 10)) model >cut
code=0
"$attend" info cut 2>said || code=$?
equal 1 "$code" "a truncated model"
grep -q "^attend: 'cut' is truncated\|^attend: 'cut' .*truncated" said || fail "a truncated model says $(cat said)"
refuse 1 "'text' is a text file, $known" translate text
own="a checksum is in the models and training states that attend has written"
refuse 1 "'text' is a text file; $own" info --verify text
refuse 1 "'old.pt' is a Python pickle, as PyTorch writes it; $own" info --verify old.pt
refuse 1 "'.' is a folder; $own" info --verify .
refuse 1 "cannot read 'none': No such file or directory" info --verify none

# ---- Instead of UTF-8
wrong() { # wrong FILE ENCODING
    refuse 1 "'$1' is text in UTF-16, and attend reads UTF-8; convert it first: iconv -f $2 -t UTF-8" translate model -i "$1"
}
wrong utf16 UTF-16
iconv -f UTF-8 -t UTF-16LE text >little
wrong little UTF-16LE
iconv -f UTF-8 -t UTF-16BE text >big
wrong big UTF-16BE
printf '\377\376' >mark
cat little >>mark
wrong mark UTF-16
gzip -c utf16 >utf16.gz
wrong utf16.gz UTF-16
printf '\377\376a\0b\0' >short
wrong short UTF-16
refuse 1 "'little' is text in UTF-16, and attend reads UTF-8; convert it first: iconv -f UTF-16LE -t UTF-8" \
    train --source little --target text --output new
# Other bytes are lines, also with zeros among them.
printf '\377\376a\330bc\nx\0y\n' >odd
equal 2 "$("$attend" translate model --quiet -i odd | wc -l)" "lines of odd bytes"

refuse 1 "of 30 training lines with letters beyond ASCII 30 are not UTF-8, the first in line 1; the text is probably Latin-1, so convert it first: iconv -f LATIN1 -t UTF-8" \
    train --source latin --target text --output new
# A few such lines are read with U+FFFD.
for i in $(seq 100); do cat text; done >many
{ cat many; head -5 latin; } >mixed
{ cat many; head -5 text; } >target
"$attend" train --source mixed --target target --output new --embedding 8 --hidden 8 --attention 8 --maxout 8 --updates 1 2>said ||
    fail "a few broken lines stop training: $(cat said)"
grep -q "5 of the 3005 training pairs hold bytes that are not UTF-8, read as U+FFFD, the first in line 3001" said ||
    fail "broken lines are not mentioned: $(cat said)"
finish
