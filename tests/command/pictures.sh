# Models that read pictures: attend train --model show-attend-tell and every command that takes the model.
. "$(dirname "$0")/support.bash"

# array FILE KIND SHAPE: an array of version 1.0 whose values come from the standard input.
array() {
    local header
    header=$(printf "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" "$2" "$3")
    { printf '\x93NUMPY\x01\x00\x76\x00' && printf '%-117s\n' "$header" && cat; } >"$1"
}

# pictures COUNT SEED NAME: 8 x 8 grey pictures with a bright half, NAME.npy, and which one it is, NAME.txt.
pictures() {
    awk -v count="$1" -v seed="$2" 'BEGIN {
        srand(seed); split("left right upper lower", half, " ")
        for (i = 0; i < count; i++) print "the " half[1 + int(rand() * 4)] " half"
    }' >"$3.txt"
    awk '{
        for (y = 0; y < 8; y++) for (x = 0; x < 8; x++) {
            bright = $2 == "left" ? x < 4 : $2 == "right" ? x > 3 : $2 == "upper" ? y < 4 : y > 3
            printf "\\x%02x", (bright ? 200 : 10) + (NR * 7 + x * 3 + y * 5) % 40
        }
        print ""
    }' "$3.txt" | while read -r line; do printf '%b' "$line"; done | array "$3.npy" '|u1' "$1, 8, 8"
}
pictures 200 1 train
pictures 30 2 test
small="--image-channels 1 --conv 4x3s2,6x3 --hidden 12 --embedding 8 --attention 8 --batch-size 10 --learning-rate 0.01"
train() {
    "$attend" train --model show-attend-tell --source train.npy --target train.txt $small --quiet --output "$@" 2>said ||
        fail "training says $(cat said)"
}

# It learns; the model says what it reads.
train m --valid-source test.npy --valid-target test.txt --valid-metric accuracy,loss --epochs 5
"$attend" info m >about
equal "source           pictures" "$(grep '^source' about)" "what info says of the source"
equal "conv             4x3s2,6x3" "$(grep '^conv' about)" "what info says of the convolutions"
"$attend" translate m -i test.npy -o said.txt
"$attend" score accuracy --reference test.txt <said.txt >score
awk '{ exit !($2 > 90) }' score || fail "it did not learn: $(cat score)"

# Stopped and resumed, with other numbers of threads: the same bytes. Changed pictures are other data.
train half --valid-source test.npy --valid-target test.txt --valid-metric accuracy,loss --epochs 2
cp half.state before.state
train half --valid-source test.npy --valid-target test.txt --valid-metric accuracy,loss --epochs 5 --resume --threads 2
same_file m.state half.state
pictures 200 3 other
cp train.npy kept.npy && cp other.npy train.npy && cp before.state half.state
! "$attend" train --model show-attend-tell --source train.npy --target train.txt $small --quiet --output half --epochs 5 --resume 2>said ||
    fail "a run on other pictures goes on"
grep -q pictures said || fail "a resumed run on other pictures says $(cat said)"
cp kept.npy train.npy
train shaken --augment 0.5 --epochs 1
train shaken2 --augment 0.5 --epochs 1 --threads 2
same_file shaken.state shaken2.state
train bent --elastic 1 --epochs 1
train bent2 --elastic 1 --epochs 1 --threads 2
train straight --epochs 1
same_file bent.state bent2.state
! cmp -s bent straight || fail "--elastic changes nothing"

# Layers that add their input: the same bytes for any number of threads, and stopped and resumed; the file keeps them.
train added --conv 4x3s2,4x3r --epochs 2
train added2 --conv 4x3s2,4x3r --epochs 1 --threads 2
train added2 --conv 4x3s2,4x3r --epochs 2 --resume
train other --conv 4x3s2,4x3 --epochs 2
same_file added added2
same_file added.state added2.state
! cmp -s added other || fail "a layer that adds its input is like one that does not"
"$attend" info added >about
equal "conv             4x3s2,4x3r" "$(grep '^conv' about)" "what info says of a layer that adds its input"
"$attend" translate added -i test.npy -o said.txt

# The gate is on unless it is switched off, in any of three ways.
train gated --updates 2
train gated2 --gate --updates 2
same_file gated gated2
printf 'gate = false\n' >off.conf
for off in "--gate false" "--gate=false" "--config off.conf"; do
    train open --updates 2 --overwrite $off
    grep -aq 'attention.gate' gated || fail "a model with a gate has no parameters for it"
    ! grep -aq 'attention.gate' open || fail "$off leaves the gate"
done
refuse 2 "--gate takes true or false, not 'maybe'" train --source train.txt --target train.txt --output no --gate=maybe

# The same bytes for any batch and number of threads; lines from a pipe are the same pictures.
for i in $(seq 0 29); do echo "test.npy[$i]"; done >names
for options in "--beam 3 --n-best 2" "--sample 1 --seed 4" "--scores --alignment hard"; do
    "$attend" translate -m m $options --batch-size 64 --threads 1 -i test.npy >judge
    "$attend" translate -m m $options --batch-size 1 --threads 2 <names >other
    same_file judge other
done
"$attend" translate -m m -m half -i test.npy >both
equal 30 "$(wc -l <both)" "lines of an ensemble"
run average m half -o mean
equal 30 "$("$attend" translate mean -i test.npy | wc -l)" "lines of an average"

# Forced decoding, features, maps: a cell is one unit of the source.
"$attend" align -m m --source test.npy --target test.txt >links
equal 30 "$(wc -l <links)" "lines of links"
awk '{ for (i = 1; i <= NF; i++) { split($i, p, "-"); if (p[1] > 15 || p[2] > 3) exit 1 } }' links || fail "links beyond the 4 x 4 cells: $(cat links)"
"$attend" score perplexity --model m --source test.npy --reference test.txt >perplexity
grep -q 'of 120 units' perplexity || fail "the perplexity is $(cat perplexity)"
head -1 names | "$attend" encode m -o features.npy
equal "(16, 6)" "$(head -c 200 features.npy | grep -ao '(16, 6)')" "the shape of the features"
"$attend" show m 'test.npy[0]' --level subword >map
grep -q "$(head -1 test.txt)" map || fail "show says $(head -3 map)"

# A drawing: the picture, and a frame with its 16 cells for every word. The picture in it is the one that the model read.
"$attend" show m 'test.npy[0]' -o frames.svg >said
equal 5 "$(grep -c '<use href="#picture"' frames.svg)" "frames of three words and the end"
equal "the picture $(head -1 test.txt) &lt;/s&gt;" "$(sed -n 's/.*class="word".*>\(.*\)<.text>/\1/p' frames.svg | xargs -d '\n')" "words below the frames"
veils=$(grep -c 'fill-opacity' frames.svg)
[ "$veils" -le $((4 * 15)) ] && [ "$veils" -ge $((4 * 12)) ] || fail "$veils cells are veiled"
sed -n 's/.*base64,\([^"]*\)".*/\1/p' frames.svg | base64 -d >drawn.png
"$attend" show m 'drawn.png' >again || fail "the picture in a drawing cannot be read"
"$attend" show m 'test.npy[0]' >map
same_file map again
refuse 2 "--sums and --gold are for texts, not for pictures" show m 'test.npy[0]' --sums -o no.svg

# The cells of a picture say nothing about the length of its text: it has at most as many units as --max-length of training.
train short --updates 1 --max-length 3
awk 'NF > 3 { exit 1 }' <("$attend" translate short -i test.npy) || fail "a text longer than any of the training"

# PNG files, named relative to the folder of the file that names them; an empty line stays empty.
mkdir folder
base64 -d <<<iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAAEElEQVR42mP4DwQMIEAZAwC7xB/h8DmDUAAAAABJRU5ErkJggg== >folder/left.png
base64 -d <<<iVBORw0KGgoAAAANSUhEUgAAAAwAAAAICAAAAADoj0EtAAAAEElEQVR42mP4jwQYiOSQAQCSmi/R3QHv2wAAAABJRU5ErkJggg== >folder/wide.png
printf 'left.png\n\nleft.png\n' >folder/list
"$attend" translate m -i folder/list >png || fail "pictures in a folder"
equal "the left half||the left half" "$(tr '\n' '|' <png | sed 's/|$//')" "the translations of PNG files"
# In the terminal: for every word a map of its own, here 4 lines of 6 cells, each two characters wide.
"$attend" show m folder/wide.png --target 'the left half' >grids
equal "the left half </s>" "$(sed -n 4p grids | xargs)" "the titles of the maps"
equal "4 54" "$(sed -n '5,8s/█\|▓\|▒\|░/#/gp' grids | awk '{ n++; w = length($0) > w ? length($0) : w } END { print n, w }')" "lines and columns of four maps"
equal 10 "$(wc -l <grids)" "lines of text and maps"
grep -q '█' grids || fail "no cell has the largest weight: $(cat grids)"
printf 'left.png\tthe left half\n' >folder/pairs.tsv
"$attend" train --model show-attend-tell --tsv folder/pairs.tsv $small --updates 1 --quiet --output from_tsv 2>said ||
    fail "a column of pictures: $(cat said)"
train scaled --image-size 8x8 --epochs 5
echo folder/wide.png | "$attend" translate scaled >wide
equal "the upper half" "$(cat wide)" "a picture of another size, scaled"

# Pictures in the lines themselves, alone and beside others; no folder goes before them.
for file in left.png wide.png; do printf 'data:image/png;base64,%s\n' "$(base64 -w0 "folder/$file")"; done >folder/inline
equal "the left half" "$("$attend" translate m -i folder/inline | head -1)" "a picture in its line"
equal "$(echo folder/wide.png | "$attend" translate m)" "$("$attend" translate m -i folder/inline | tail -1)" "a picture in its line as in its file"
equal "$(echo 'folder/left.png | folder/left.png' | "$attend" translate m)" \
    "$(echo "$(head -1 folder/inline) | left.png" >folder/both && "$attend" translate m -i folder/both)" "a picture in the line beside one of a file"
wrong="a picture in a line is data:image/png;base64, or data:image/jpeg;base64, and its bytes in base64"
for bad in "gif;base64,AAAA" "png;base64,AAA" "png;base64,AA=A" "png;base64,A===" "png;base64,AA A" "png,AAAA"; do
    refuse 1 "line 1: $wrong" encode m -o no.safetensors -i <(echo "data:image/$bad")
done
refuse 1 "line 1: 'data:image/jpeg' is an empty file, not a PNG or JPEG picture" encode m -o no.safetensors -i <(echo "data:image/jpeg;base64,")
refuse 1 "line 1: 'data:image/png' is a truncated PNG picture" encode m -o no.safetensors \
    -i <(printf 'data:image/png;base64,%s\n' "$(head -c 60 folder/left.png | base64 -w0)")

# Features in place of pictures: [pictures, cells, numbers].
awk 'BEGIN { srand(3); for (i = 0; i < 200; i++) for (j = 0; j < 8; j++) printf "%s", "\\x00\\x00\\x80\\x3f"; print "" }' |
    while read -r line; do printf '%b' "$line"; done | array features.npy '<f4' '200, 4, 2'
"$attend" train --model show-attend-tell --source features.npy --target train.txt --features 2 --hidden 8 --embedding 8 --attention 8 \
    --epochs 1 --quiet --output from_features 2>said || fail "training on features says $(cat said)"
equal 200 "$("$attend" translate from_features -i features.npy | wc -l)" "lines from features"

# Refusals.
printf 'left.png\nnot.png\n' >folder/missing
refuse 1 "line 2: cannot read 'folder/not.png': No such file or directory; each line of the source must name a picture file" \
    encode m -o no.safetensors -i folder/missing
printf 'names\n' >folder/text
head -c 60 folder/left.png >folder/cut.png
printf 'left.png\ncut.png\n' >folder/broken
said=$("$attend" translate m -i folder/broken 2>&1 >/dev/null) && fail "a truncated picture is read"
[[ $said == "attend: line 2: "*folder/cut.png* ]] || fail "a truncated picture: $said"
# Each costs its own line and no other, also in a file, on a pipe and with starts of the texts.
printf 'left.png\ncut.png\n\nnot.png\nleft.png\n' >folder/some
for way in "-i folder/some" "-i folder/some -o some.out" "--batch-size 1 --threads 2 -i folder/some"; do
    code=0
    "$attend" translate m $way >out 2>said || code=$?
    [ ! -e some.out ] || mv some.out out
    equal "1 the left half||||the left half|" "$code $(tr '\n' '|' <out)" "translate $way"
    equal "attend: line 2: 'folder/cut.png' is a truncated PNG picture
attend: line 4: cannot read 'folder/not.png': No such file or directory; each line of the source must name a picture file" "$(cat said)" "the messages of translate $way"
done
code=0
(cd folder && printf 'cut.png\tthe\nleft.png\tthe\n' | "$attend" translate ../m --prefix >../out 2>../said) || code=$?
equal "1 |the left half|" "$code $(tr '\n' '|' <out)" "pictures with starts of their texts"
for ((i = 0; i < 12; i++)); do echo no.png; done | "$attend" translate m >out 2>said || true
equal "12 11 attend: 2 more pictures cannot be read" "$(wc -l <out) $(wc -l <said) $(tail -1 said)" "twelve pictures that are not there"
refuse 1 "'folder/left.png' is a PNG picture; the source is a file whose lines each name a picture, or an array (.npy)" translate m -i folder/left.png
said=$("$attend" train --model show-attend-tell --source folder/missing --target links --output no 2>&1) && fail "trained on nothing"
[[ $said == *"line 2"* ]] || [[ $said == *"no partner"* ]] || fail "a missing picture: $said"
refuse 2 "model 'show-attend-tell' reads pictures, and --source-vocab is about source texts" \
    train --model show-attend-tell --source train.npy --target train.txt --source-vocab char --output no
refuse 1 "'train.npy' is an array (.npy), not lines of text; --model show-attend-tell takes it as its source" \
    train --source train.npy --target train.txt --output no
refuse 2 "--augment changes pictures, and model 'bahdanau' reads text" \
    train --source train.txt --target train.txt --augment 1 --output no
refuse 2 "--elastic changes pictures, and the source is --features" \
    train --model show-attend-tell --source features.npy --target train.txt --features 2 --elastic 1 --output no
refuse 2 "--conv is for pictures, and the source is --features" \
    train --model show-attend-tell --source features.npy --target train.txt --features 2 --conv 4x3 --output no
refuse 2 "the first layer of '4x3r' cannot add its input (r), which is the picture" \
    train --model show-attend-tell --source train.npy --target train.txt --conv 4x3r --output no
refuse 2 "layer 2 of '4x3,6x3r' adds its input (r), so it must have stride 1 and 4 channels like the layer before it, and not stride 1 and 6 channels" \
    train --model show-attend-tell --source train.npy --target train.txt --conv 4x3,6x3r --output no
refuse 2 "model 'bahdanau' does not use --conv" train --source train.txt --target train.txt --conv 4x3 --output no
refuse 2 "--image-size is HEIGHTxWIDTH, such as 40x60, HEIGHTx or xWIDTH, each up to 8192, or keep, not '8by8'" \
    train --model show-attend-tell --source train.npy --target train.txt --image-size 8by8 --output no
"$attend" train --source train.txt --target train.txt --hidden 4 --embedding 4 --attention 4 --maxout 4 --updates 1 --quiet --output text
refuse 1 "'text' is a 'bahdanau', which cannot be in an ensemble with a 'show-attend-tell': only one of them reads pictures" \
    translate -m m -m text -i test.npy
refuse 1 "'scaled' makes other grids of a picture than the models before it; the models of an ensemble must have the same --image-size, --image-channels, and strides and pooling of --conv" \
    translate -m m -m scaled -i test.npy
echo "$checks refusals and outputs"
