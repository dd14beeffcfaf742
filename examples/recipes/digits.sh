#!/usr/bin/env bash
# Reading rows of handwritten digits: canvases of one to five digits in random places, read from left to right, in one command.
#
#   examples/recipes/digits.sh DATA [OPTIONS OF attend train]
#
# DATA holds MNIST's files {train,test}-{images-idx3,labels-idx1}-ubyte.gz. The last eighth of the training digits is for dev, so no digit
# is in the canvases of two splits. A canvas has 48 x 160 pixels; the digits have random heights and distances. CANVASES=20000 are made for
# training, 1000 each for dev and test, the same every time. The checkpoint is the one with the most dev rows right by greedy search; test is scored
# once, at the end. "rows" is the percentage of canvases read without an error, CER the edits over all digits. Options after DATA replace the
# settings below, as in: digits.sh data/digits --minutes 2
# Canvases of one digit come first, then of up to two: a model that begins with all of them takes a third of its time to find out where to look.
# It takes about four and a half minutes of one core; SEEDS='1 2 3' trains an ensemble of three, which makes a sixth fewer errors.
. "$(dirname "$0")/recipe.bash"
[ $# -ge 1 ] || usage
beam=1
shift

# unpack_digits SPLIT: a line for each digit: its label, and its 28 x 28 pixels as numbers.
unpack_digits() {
    unpack "$from/$1-labels-idx1-ubyte.gz" | tail -c +9 | od -An -v -tu1 -w1 >"$work/labels"
    unpack "$from/$1-images-idx3-ubyte.gz" | tail -c +17 | od -An -v -tu1 -w784 | paste -d ' ' "$work/labels" -
}

# make_canvases NAME COUNT SEED: NAME.npy and NAME.target from lines of unpack_digits. The random numbers are those of Park and Miller, as
# rand() differs between awks; the darkest byte is 1, as not all of them print 0.
make_canvases() {
    printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': ($2, 48, 160), }" >"$work/$1.npy"
    awk -v count="$2" -v seed="$3" -v target="$work/$1.target" '
        function draw(below) { state = state * 16807 % 2147483647; return int(state / 2147483647 * below) }
        BEGIN {
            for (i = 0; i < 256; i++) byte[i] = sprintf("%c", i ? i : 1)
            for (i = 0; i < 160; i++) blank = blank byte[0]
        }
        {
            label[NR] = $1
            for (y = 0; y < 28; y++) {
                row = ""
                for (x = 0; x < 28; x++) row = row byte[$(2 + 28 * y + x)]
                pixels[NR, y] = row
            }
        }
        END {
            for (state = seed; count > 0; count--) {
                digits = 1 + draw(5); text = ""
                for (i = 1; i <= digits; i++) { # distances rise: a draw takes its place among those before it
                    at = draw(160 - 28 * digits + 1)
                    for (j = i; j > 1 && left[j - 1] > at; j--) left[j] = left[j - 1]
                    left[j] = at
                }
                for (i = 1; i <= digits; i++) { digit[i] = 1 + draw(NR); top[i] = draw(21); text = text label[digit[i]] }
                for (y = 0; y < 48; y++) {
                    row = ""
                    for (i = 1; i <= digits; i++) {
                        row = row substr(blank, 1, left[i] - (i > 1 ? left[i - 1] : 0))
                        row = row (y < top[i] || y >= top[i] + 28 ? substr(blank, 1, 28) : pixels[digit[i], y - top[i]])
                    }
                    printf "%s%s", row, substr(blank, 1, 160 - length(row))
                }
                print text >target
            }
        }' >>"$work/$1.npy"
}

unpack_digits train >"$work/digits"
all=$(wc -l <"$work/digits")
head -n $((all - all / 8)) "$work/digits" | make_canvases train "${CANVASES:-20000}" 1
tail -n $((all / 8)) "$work/digits" | make_canvases dev 1000 2
unpack_digits test | make_canvases test 1000 3

data=(--source "$work/train.npy" --target "$work/train.target" --valid-source "$work/dev.npy" --valid-target "$work/dev.target"
    --valid-metric accuracy,loss)
shape=(--model show-attend-tell --image-channels 1 --conv 16x5s2,32x3s2,64x3s2,64x3r,64x3r --position sinusoidal --hidden 64 --embedding 32
    --attention 64 --doubly-stochastic 0 --gate false)
settings=(--augment 0.5 --elastic 0.5 --batch-size 32 --optimiser adamw --weight-decay 0.05 --learning-rate 0.003)
updates=5000
limits=(--schedule cosine --warmup 200 --updates $updates --valid-every 1000)

# easy_pairs MOST: canvases of up to so many digits.
easy_pairs() {
    awk -v array="$work/train.npy" -v most="$1" 'length($0) <= most { print array "[" NR - 1 "]\t" $0 }' "$work/train.target"
}
first_vocabulary=(--target-vocab char)
short=('1 1/20' '2 1/20')
first_on short "$@"
train_models "$@"

for split in $splits; do
    translate /dev/null --input "$work/$split.npy" >"$work/$split.output"
    "$attend" score accuracy cer --reference "$work/$split.target" <"$work/$split.output" | awk -v of="digits $split" \
        '{ v[$1] = $2 } END { printf "%-12s  rows %.1f  CER %.2f\n", of, v["accuracy"], v["cer"] }'
done
