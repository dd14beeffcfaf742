# The recipes under examples/recipes, on a few invented lines in the formats of their data: each must train, search and score to
# its end, and refuse bad arguments. The quality of the models is not tested here.
. "$(dirname "$0")/support.bash"
recipes=$here/../../examples/recipes
export ATTEND=$attend
tiny="--embedding 8 --hidden 8 --updates 3 --warmup 1 --batch-size 4 --quiet"
small="--layers 1 --hidden 8 --heads 2 --ffn 8 --updates 3 --warmup 1 --source-vocab word --target-vocab word --quiet"
learner="--dropout 0 --ema 0 --learning-rate 0.02 --quiet"

# recipe NAME ARGUMENTS...: its output without the settings and the time.
recipe() {
    local name=$1
    shift
    bash "$recipes/$name.sh" "$@" >said.out 2>said.err || fail "$name.sh $* exits with $?: $(cat said.err)"
    [ ! -s said.err ] || fail "$name.sh $* prints on stderr: $(cat said.err)"
    grep -q '^settings: --' said.out || fail "$name.sh does not print its settings: $(cat said.out)"
    grep -v -e '^settings: ' -e '^training took [0-9.]* minutes of one core$' said.out
    checks=$((checks + 1))
}

# matches PATTERN TEXT: the lines of TEXT match those of PATTERN one by one.
matches() {
    [ "$(printf '%s\n' "$1" | wc -l)" = "$(printf '%s\n' "$2" | wc -l)" ] || fail "expected $1, got $2"
    while IFS= read -r pattern <&3 && IFS= read -r line <&4; do
        [[ $line =~ ^$pattern$ ]] || fail "expected '$pattern', got '$line'"
        checks=$((checks + 1))
    done 3<<<"$1" 4<<<"$2"
}

# refused CODE MESSAGE NAME ARGUMENTS...: it exits with CODE and prints MESSAGE on stderr.
refused() {
    local code=$1 message=$2 name=$3 got=0 said
    shift 3
    said=$(bash "$recipes/$name.sh" "$@" 2>&1 >/dev/null) || got=$?
    [ "$got" = "$code" ] && [[ $said == *"$message"* ]] || fail "$name.sh $* exits with $got and prints '$said'"
    checks=$((checks + 1))
}

mkdir data
# Words and phones; the model memorises three words quickly.
for split in train dev test; do
    printf 'ab\tA B\nba\tB A\nœa\tØ A\n' | gzip -c >data/sig20_fre_$split.tsv.gz
    cp data/sig20_fre_$split.tsv.gz data/sig21_eng_us_$split.tsv.gz
done
matches $'fre dev +WER 0.00  PER 0.00\nfre test +WER 0.00  PER 0.00' \
    "$(recipe g2p data fre --epochs 60 --embedding 8 --hidden 16 $learner)"
matches 'eng_us dev +WER [0-9.]+  PER [0-9.]+' "$(SPLITS=dev recipe g2p data eng_us $tiny)"
matches $'settings: --model .* --seed 4 .*\nsettings: --model .* --seed 2 .*\nfre dev +WER 0.00  PER 0.00' \
    "$(SEEDS='4 2' SPLITS=dev OUTPUT=seeds bash "$recipes/g2p.sh" data fre --epochs 60 --embedding 8 --hidden 16 $learner 2>&1 | grep -v took)"
[ -s seeds.4 ] && [ -s seeds.2 ] || fail "no model for each seed: $(ls)"
# With several trainings each line of progress names its seed; if one fails the recipe fails, and a signal stops all of them.
several() { # (in a separate process, so that $! is the recipe)
    export SEEDS='4 2' SPLITS=dev OUTPUT=$1
    exec bash "$recipes/g2p.sh" data fre --embedding 8 --hidden 16 "${@:2}"
}
code=0
(several seeds --epochs 61) >said.out 2>said.err || code=$?
[ $code = 1 ] && grep -q "^seed [24]: attend: cannot resume from 'seeds.[24].state', .* or from the start with --overwrite$" said.err ||
    fail "a recipe with other settings exits with $code: $(cat said.err)"
(several seeds --epochs 2 --overwrite) >said.out 2>said.err || fail "two seeds: $(cat said.err)"
for seed in 4 2; do
    grep -q "^seed $seed: 'seeds.$seed' is the model$" said.err || fail "no line of seed $seed: $(cat said.err)"
done
[ -z "$(grep -v '^seed [42]: ' said.err)" ] || fail "lines without a seed: $(grep -v '^seed [42]: ' said.err)"
code=0
(several none/m --epochs 2) >said.out 2>said.err || code=$?
[ $code = 1 ] && ! grep -q took said.out || fail "a training that cannot write: the recipe exits with $code: $(cat said.out said.err)"
several stopped --epochs 1000000 --quiet >said.out 2>said.err &
for _ in {1..300}; do
    [ -s stopped.4 ] && [ -s stopped.2 ] && break
    sleep 0.1
done
kill $! && { wait $! || true; }
[ -s stopped.4.state ] && [ -s stopped.2.state ] || fail "a recipe that was stopped lost its state: $(ls; cat said.err)"
before=$(cksum stopped.*) && sleep 0.5
[ "$before" = "$(cksum stopped.*)" ] || fail 'a training continues after its recipe ended'
# Run again, the recipe continues, and here has nothing left to train.
before=$(cksum stopped.*.state)
(several stopped --epochs 1 --quiet) >said.out 2>said.err || fail "a recipe that is run again: $(cat said.err)"
[ "$before" = "$(cksum stopped.*.state)" ] && grep -q 'fre dev' said.out || fail "a recipe that is run again trains again: $(cat said.out)"
checks=$((checks + 6))
refused 1 "g2p.sh: there is no 'data/sig20_xyz_train.tsv.gz'" g2p data xyz
refused 2 'examples/recipes/g2p.sh DATA LANGUAGE' g2p data
# DATA may also be the folder that holds all data sets.
mkdir -p all && ln -s ../data all/g2p
matches 'eng_us dev +WER [0-9.]+  PER [0-9.]+' "$(SPLITS=dev recipe g2p all eng_us $tiny)"
for name in "$recipes"/*.sh; do
    said=$(bash "$name" --help 2>&1) || fail "$name --help exits with $?: $said"
    [[ $said == *"examples/recipes/$(basename "$name") DATA "* && $said == *'one core'* ]] || fail "$name --help prints $said"
    checks=$((checks + 1))
done

# Every model with its defaults: a table, whose sizes are small here.
mkdir captions6000
for file in train.de train.en val.de val.en; do
    printf 'a b c\nb c\nc a\n' | gzip -c >captions6000/$file.gz
done
said=$(MODELS='rnn-plain transformer-lm' bash "$recipes/defaults.sh" captions6000 --hidden 8 --updates 2 2>&1) || fail "defaults.sh: $said"
matches $'model +updates +seconds +loss +perplexity +BLEU\nrnn-plain +2 +[0-9]+ +[0-9.]+ +[0-9.]+ +[0-9.]+\ntransformer-lm +2 +[0-9]+ +[0-9.]+ +[0-9.]+ +-' "$said"

# Lemmas, forms and features; a form with a blank and one with a letter beyond ASCII.
printf 'ablegen\tlegt ab\tV;3;SG\nTür\tTüren\tN;PL\nBär\tBären\tN;PL\nlegen\tlegt\tV;3;SG\n' | gzip -c >data/german-dev.gz
cp data/german-dev.gz data/german-test.gz
cp data/german-dev.gz data/german-train-high.gz
matches $'german dev +accuracy [0-9.]+  mean distance [0-9.]+\ngerman test +accuracy [0-9.]+  mean distance [0-9.]+' \
    "$(recipe inflection data german $tiny)"
# Every letter, blank and feature survives the conversion to units and back.
matches 'german dev +accuracy 100.00  mean distance 0.000' \
    "$(SPLITS=dev recipe inflection data german --embedding 16 --hidden 32 --epochs 200 --valid-every 200 $learner)"
# The scores by hand: the model knows only one form, which is 3, 1 and 0 edits from these three.
printf 'a\tbä\tX\n' | gzip -c >data/german-train-high.gz
printf 'a\tbäume\tX\na\tb\tX\na\tbä\tX\n' | gzip -c >data/german-dev.gz
matches 'german dev +accuracy 33.33  mean distance 1.333' \
    "$(SPLITS=dev recipe inflection data german --epochs 60 --valid-every 60 --embedding 8 --hidden 16 $learner)"

# Names.
printf 'اب\tab\nبا\tba\nاا\taa\n' >pairs
for split in train eval test; do
    gzip -c pairs >data/ar2en-$split.txt.gz
done
matches $'ar2en dev +WER 0.00  CER 0.00\nar2en test +WER 0.00  CER 0.00' \
    "$(recipe translit data --epochs 60 --embedding 8 --hidden 16 $learner)"

# Soft and hard attention, a table for each task, on the invented words above; the folder keeps the runs.
ln -s ../data all/inflection && ln -s ../data all/translit
said=$(TASKS='fre german arabic' SHORT=1000 DIRECTORY=soft-hard bash "$recipes/hard.sh" all --set hidden=8 --set embedding=8 --set warmup=1 --set seeds=1 --quiet 2>&1) || fail "hard.sh: $said"
for row in soft 'hard, exact'; do
    equal 3 "$(grep -c "^$row  *[0-9]" <<<"$said")" "tables with the row $row: $said"
done
[ -e soft-hard/german.spec.runs ] || fail "hard.sh keeps no runs: $(ls soft-hard)"
TASKS=dutch refused 2 "hard.sh: the tasks are fre, hun, german and arabic, not 'dutch'" hard all --quiet

# Sentences; one of the three test sentences occurs in training.
printf 'a b .\nb a .\na a .\n' | gzip -c >data/train.en.gz
printf 'ア イ 。\nイ ア 。\nア ア 。\n' | gzip -c >data/train.ja.gz
for split in dev test; do
    printf 'a b .\nb b .\nb b a .\n' | gzip -c >data/$split.en.gz
    printf 'ア イ 。\nイ イ 。\nイ イ ア 。\n' | gzip -c >data/$split.ja.gz
done
matches $'en-ja dev BLEU.* = .*\nen-ja dev without the 1 of 3 sources that occur in training BLEU.* = .*
en-ja test BLEU.* = .*\nen-ja test without the 1 of 3 sources that occur in training BLEU.* = .*' \
    "$(recipe enja data en-ja $small --batch-size 4)"
matches $'ja-en dev BLEU.* = .*\nja-en dev without the 1 of 3 sources that occur in training BLEU.* = .*' \
    "$(SPLITS=dev recipe enja data ja-en --model bahdanau --embedding 8 --hidden 8 --epochs 1 --quiet \
        --source-vocab word --target-vocab word)"
refused 2 "enja.sh: the direction is en-ja or ja-en, not 'en-de'" enja data en-de

# Captions.
mkdir data/tok
for split in train val test_2016_flickr; do
    printf 'ein bier .\nein mann .\n' | gzip -c >data/tok/$split.lc.norm.tok.de.gz
    printf 'a beer .\na man .\n' | gzip -c >data/tok/$split.lc.norm.tok.en.gz
done
matches $'de-en val BLEU.* = .*\nde-en test_2016_flickr BLEU.* = .*' "$(recipe multi30k data de-en $small)"
matches 'en-de val BLEU.* = .*' "$(SPLITS=dev recipe multi30k data en-de $small)"
matches 'de-en val BLEU.* = .*' "$(RECURRENT=1 SPLITS=dev recipe multi30k data de-en --embedding 8 --hidden 8 ${small#*--ffn 8})"
refused 2 "multi30k.sh: the direction is de-en or en-de, not 'de-fr'" multi30k data de-fr

# Pictures of formulas: an upright and a level stroke. The last one of the test is two edits from what the model knows.
mkdir -p formulas train test2014
echo iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAAAAAA6mKC9AAAAEUlEQVR42mNgIB/8H7oCOAEAcOYK9nPJsEQAAAAASUVORK5CYII= | base64 -d >train/upright.png
echo iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAAAAAA6mKC9AAAAEUlEQVR42mNgGDzgPwIMmBsAcOYK9ql9UPYAAAAASUVORK5CYII= | base64 -d >train/level.png
cp train/*.png test2014
tar -czf formulas/train.tar.gz -C train . && tar -czf formulas/test2014.tar.gz -C test2014 .
printf 'upright\t1 pm 1\nlevel\t-\n' >formulas/train.tsv
cp formulas/train.tsv formulas/dev.tsv
printf 'upright\t1 pm 1\nlevel\t-\nlevel\t- x\nlevel\t- x y z\n' >formulas/test2014.tsv
matches $'formulas dev +2 of 2 right  ExpRate 100.00  <=1 100.00  <=2 100.00  WER 0.00
formulas test2014 +2 of 4 right  ExpRate 50.00  <=1 75.00  <=2 75.00  WER 40.00' \
    "$(recipe formulas . --conv 4x3s2,8x3s2 --hidden 16 --embedding 8 --attention 8 --coverage 2 --augment 0 --epochs 150 --valid-every 150 $learner)"
matches 'formulas dev +[0-2] of 2 right .*' "$(SHORT=1 SPLITS=dev recipe formulas formulas --conv 4x3s2,8x3s2 --coverage 2 $tiny)"
mv formulas/dev.tsv formulas/other.tsv
refused 1 "formulas.sh: there is no './formulas/dev.tsv'" formulas .

# Rows of digits. Every pixel of a digit is 100 and its label, so that a canvas says what it must be read as.
mkdir digits pictograms
idx() { # FILE LABEL...: the images and the labels of these digits
    local name=$1 label count
    shift
    count="\\0\\0\\0\\0$(printf %o $#)"
    {
        printf '%b' "\\0\\0\\010\\03$count\\0\\0\\0\\034\\0\\0\\0\\034"
        for label; do head -c 784 /dev/zero | tr '\0' "\\$(printf %o $((100 + label)))"; done
    } | gzip -c >"digits/$name-images-idx3-ubyte.gz"
    {
        printf '%b' "\\0\\0\\010\\01$count"
        for label; do printf '%b' "\\0$(printf %o "$label")"; done
    } | gzip -c >"digits/$name-labels-idx1-ubyte.gz"
}
idx train 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5
idx test 6 7
matches $'digits dev +rows [0-9.]+  CER [0-9.]+\ndigits test +rows [0-9.]+  CER [0-9.]+' \
    "$(CANVASES=20 recipe digits . --conv 4x5s4,4x3s4 --attention 8 $tiny)"
for run in first again; do # a training that began with others is continued
    matches $'digits dev +rows [0-9.]+  CER [0-9.]+' "$(SPLITS=dev OUTPUT=staged CANVASES=20 recipe digits . --conv 4x5s4,4x3s4 --attention 8 $tiny)"
done
cat >keeper <<'S' # in place of attend: keeps the canvases
#!/usr/bin/env bash
[ "$1 $2" != 'train --source' ] || cp "$3" "$5" "$7" "$9" .
S
chmod +x keeper
CANVASES=60 ATTEND=./keeper bash "$recipes/digits.sh" digits >said.out 2>&1 || fail "the canvases: $(cat said.out)"
for split in train dev; do
    tail -c +129 $split.npy | od -An -v -tu1 -w7680 | awk '{
        text = ""; columns = 0
        for (x = 0; x < 160; x++) for (y = 0; y < 48; y++) if ($(1 + 160 * y + x) > 1) {
            if (columns++ % 28 == 0) text = text $(1 + 160 * y + x) - 100
            break
        }
        print text
    }' >read
    same_file read $split.target
done
equal 60 "$(wc -l <train.target)" "canvases for training"
equal "1 2 3 4 5" "$(awk '{ print length($1) }' train.target | sort -u | xargs)" "digits in a canvas"
equal "4 5" "$(fold -w1 dev.target | sort -u | xargs)" "the last eighth of the training digits, for dev"
cp train.npy before && CANVASES=60 ATTEND=./keeper bash "$recipes/digits.sh" digits >said.out 2>&1
same_file before train.npy
refused 1 "digits.sh: there is no 'data/train-labels-idx1-ubyte.gz'" digits data

# Pictograms: two halves of light. The model knows "left" and "right"; the test has names of more words.
{ printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 8, 8), }"
    for half in '\310\310\310\310\0\0\0\0' '\0\0\0\0\310\310\310\310'; do
        for _ in {1..16}; do printf "$half"; done
    done; } | gzip -c >pictograms/icons.npy.gz
printf 'left\nleft half off\nright\nright\n' >pictograms/names.txt
printf '0\n2\n' >pictograms/train.txt
printf '0\n3\n' >pictograms/dev.txt
printf '1\n2\n' >pictograms/test.txt
said=$(LOOK='right up' recipe icons pictograms --conv 4x3s2,8x3s2 --hidden 16 --embedding 8 --attention 8 --augment 0 --label-smoothing 0 --epochs 150 --valid-every 150 $learner)
matches $'icons dev +exact 100.0  F1 100.0\nicons test +exact 50.0  F1 75.0' "$(sed 2q <<<"$said")"
grep -q '<svg' right.svg && [ ! -e up.svg ] || fail "icons.sh does not show where it looks: $said"
rm pictograms/test.txt
refused 1 "icons.sh: there is no 'pictograms/test.txt'" icons pictograms

finish
