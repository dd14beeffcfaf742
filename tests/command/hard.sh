# Hard attention with samples and without, and coverage, through the commands: training with the same bytes for any threads and
# after an interruption, search, sampling, ensembles, alignments; and what the settings of both refuse.
. "$(dirname "$0")/support.bash"

# Letters to letters: the target is the source backwards.
awk 'BEGIN { srand(5); for (i = 0; i < 300; i++) { n = 2 + int(rand() * 5); l = ""; for (w = 0; w < n; w++) l = l sprintf("%c", 97 + int(rand() * 6)); print l } }' >lines
rev lines >back
head -30 lines >few
rev few >few.back
data="--source lines --target back --source-vocab char --target-vocab char --quiet"
small="--hidden 24 --batch-size 10 --learning-rate 0.01"
declare -A settings=(
    [luong]="--model luong --embedding 16 --input-feeding --normaliser hard --hard-training exact --gate"
    [bahdanau]="--model bahdanau --embedding 16 --attention 16 --maxout 16 --normaliser hard --hard-training exact --coverage 3"
    [covered]="--model luong --embedding 16 --attention 16 --score additive --coverage 4 --coverage-width 3"
    [sampled]="--model bahdanau --embedding 16 --attention 16 --maxout 16 --normaliser hard --coverage 2"
)
for name in luong bahdanau covered sampled; do
    train="train $data $small ${settings[$name]} --dropout 0.1"
    run $train --updates 40 --output $name --threads 1
    run $train --updates 40 --output two --threads 2 --overwrite
    same_file $name two
    run $train --updates 17 --output again --overwrite
    run $train --updates 40 --output again --resume
    same_file $name again
    same_file $name.state again.state
    run translate -m $name -i few -o one --batch-size 1 --beam 3 --n-best 2 --alignment soft --threads 1
    run translate -m $name -i few -o many --batch-size 7 --beam 3 --n-best 2 --alignment soft --threads 2
    same_file one many
    equal 60 "$(wc -l <one)" "lines of $name"
    run translate -m $name -i few -o drawn --sample 1 --seed 3
    run translate -m $name -m again -i few -o both --beam 2
    run align -m $name --source few --target few.back --scores -o links
    equal 30 "$(wc -l <links)" "alignments of $name"
    "$attend" info $name --verify >info || fail "$name: $(cat info)"
done

# The score of a translation is that of forced decoding: the sums are the same in both.
run translate -m luong -i few -o scored --scores
sed 's/ ||| .*//' scored >said
sed 's/.*F0= \([^ ]*\) .*/\1/' scored >found
run align -m luong --source few --target said --scores --level subword -o links
sed 's/.*||| //' links >forced
paste found forced | awk '{ d = $1 - $2; if (d < -0.001 || d > 0.001) { print; exit 1 } }' >differ || fail "the scores differ: $(cat differ)"

# What is trained exactly says so, and what is not says nothing: its bytes are those of a model of before.
grep -aq '"hard-training":"exact"\|hard-training.*exact' luong || fail "the model does not say how it was trained"
run train $data $small --model bahdanau --normaliser hard --updates 3 --output plain
run train $data $small --model bahdanau --normaliser hard --hard-training reinforce --coverage 0 --updates 3 --output said.model
same_file plain said.model
head -c 3000 plain | grep -aq 'hard-training\|coverage' && fail "a model with the defaults mentions the settings"

# How samples decode.
run translate -m sampled -i few -o likeliest --hard-decoding argmax --alignment soft
run translate -m sampled -i few -o default --alignment soft
same_file likeliest default
run translate -m sampled -i few -o mean --hard-decoding expectation --alignment soft
cmp -s mean default && fail "the expectation decodes as the likeliest unit does"
grep -q '0\.[0-9]*[1-9]' mean || fail "the expectation has weights of 0 and 1 only"
run align -m sampled --source few --target few.back --scores --hard-decoding expectation -o links
refuse 2 "only a model with the normaliser hard that was trained with samples chooses how to decode, and the normaliser is 'softmax'" \
    translate -m covered -i few --hard-decoding argmax
refuse 2 "only a model with the normaliser hard that was trained with samples chooses how to decode, and the normaliser is 'hard', trained exactly" \
    translate -m luong -i few --hard-decoding expectation

refuse 2 "--hard-training is for --normaliser hard only, and the normaliser is 'softmax'" train $data --output m --hard-training exact
refuse 2 "--expectation is for --normaliser hard with --hard-training reinforce only" \
    train $data --output m --normaliser hard --hard-training exact --expectation 0.2
refuse 2 "--coverage adds to the keys of --score additive, and the score is 'general'" train $data --output m --model luong --coverage 2
refuse 2 "--coverage-width is the window of --coverage, which is not given" train $data --output m --coverage-width 3
finish
