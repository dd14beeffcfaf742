# The demos that train a model of choice: what they must say, with every model; that the seed decides all of it; and what
# is refused before the first page. ATTEND_LONG=1 (make check-long) adds dates to its end with every model, which takes
# long under the sanitizers.
. "$(dirname "$0")/support.bash"
. "$here/demo.bash"

small=
learns || small="--hidden 8"
"$attend" demo beer $small >beer.txt
narrow beer.txt
learnt beer.txt 'ich mochte ein bier P -> i want a beer E'
equal 5 "$(grep -cE '^    epoch +[0-9]+   loss [0-9.]+$' beer.txt)" "losses that beer shows"
! learns || equal 5 "$(grep -cE '^ +(i|want|a|beer|E) .*[01]\.[0-9]{2}' beer.txt)" "rows of the heat map of beer"
"$attend" demo beer $small --threads 1 >again.txt
equal "$(timeless beer.txt)" "$(timeless again.txt)" "beer on one thread"
"$attend" demo beer --score additive --normaliser sparsemax ${small:---hidden 32} >other.txt
learnt other.txt 'ich mochte ein bier P -> i want a beer E'

"$attend" demo antonyms $small >antonyms.txt
narrow antonyms.txt
learnt antonyms.txt 'man -> women' 'mans -> women' 'king -> queen' 'black -> white' 'up -> down'
equal 5 "$(grep -cE '^    epoch +[0-9]+   loss [0-9.]+$' antonyms.txt)" "losses that antonyms shows"
! learns || equal 5 "$(grep -cE ' loss 0\.00[0-9]+$' antonyms.txt)" "small losses of antonyms"

# Every other model learns both, and draws its attention if it has some.
for model in rnn-plain rnn-encdec rnn-attention bahdanau luong transformer; do
    "$attend" demo beer --model $model $small >beer.txt
    learnt beer.txt 'ich mochte ein bier P -> i want a beer E'
    "$attend" demo antonyms --model $model $small girl >antonyms.txt
    learnt antonyms.txt 'man -> women' 'king -> queen' 'black -> white' 'up -> down' 'girl -> boy'
    rows=$(grep -cE '^ +(b|o|y|E) .*[01]\.[0-9]{2}' antonyms.txt || true)
    case $model in
    rnn-plain | rnn-encdec)
        grep -q 'no attention in this model' beer.txt || fail "beer with $model shows attention"
        grep -q 'no attention in this model' antonyms.txt || fail "antonyms with $model shows attention"
        equal 0 "$rows" "rows of the heat map of antonyms with $model"
        ;;
    *) ! learns || equal 4 "$rows" "rows of the heat map of antonyms with $model" ;;
    esac
    narrow antonyms.txt
done

refuse 2 "model 'rnn-plain' does not use --score" demo antonyms --model rnn-plain --score dot
refuse 2 "model 'transformer' does not use --cell" demo dates --model transformer --cell gru
refuse 2 "no window 'local-x'; did you mean 'local-m' or 'local-p'?" demo beer --window local-x
refuse 2 "no model 'bahdanou'; did you mean 'bahdanau'?" demo beer --model bahdanou
refuse 2 "demo 'dates' turns a source into a target, which model 'transformer-lm' cannot do; it works with bahdanau, luong, transformer, rnn-attention, rnn-encdec, rnn-plain" \
    demo dates --model transformer-lm
refuse 2 "demo 'beer' takes no input, so 'wein' is too much" demo beer wein
refuse 2 "'Queen' is not a word of 1 to 5 letters from a to z, which this demo takes" demo antonyms Queen
refuse 2 "'letters' is not a word of 1 to 5 letters from a to z, which this demo takes" demo antonyms letters
refuse 2 "the date has 37 characters; this demo takes one of 1 to 36, such as \"3 may 1979\"" \
    demo dates 1234567890123456789012345678901234567

if [ -n "${ATTEND_LONG:-}" ]; then
    mkdir folder
    # model, and how many of 1000 must be right
    while read -r model least; do
        TMPDIR=$PWD/folder "$attend" demo dates --model "$model" '5 aug 1986' >dates.txt
        narrow dates.txt
        right=$(sed -nE 's/^([0-9]+) of 1000 such dates.*/\1/p' dates.txt)
        ((right >= least)) || fail "$model: only $right of 1000 dates are right"
        says dates.txt '5 aug 1986 -> 1986-08-05'
        rows=$(grep -cE '^ +[0-9-] .*[░▒▓█]' dates.txt || true)
        case $model in
        rnn-plain | rnn-encdec) equal 0 "$rows" "rows of the map of dates with $model" ;;
        *) equal 10 "$rows" "rows of the map of dates with $model" ;;
        esac
        equal "" "$(ls folder)" "files that dates leaves behind"
    done <<<'bahdanau 990
luong 970
transformer 990
rnn-attention 930
rnn-encdec 930
rnn-plain 930'
fi
code=0
said=$(TMPDIR=/nowhere "$attend" demo dates 2>&1 >/dev/null) || code=$?
equal "1 attend: cannot create a folder for the model in '/nowhere'; TMPDIR may name another one" \
    "$code $said" "dates without a folder"

# An interrupt ends the training, and leaves nothing behind.
mkdir -p folder
TMPDIR=$PWD/folder "$attend" demo dates >dates.txt 2>err.txt &
for ((i = 0; i < 300; i++)); do
    [ -n "$(ls folder)" ] && break
    sleep 0.1
done
[ -n "$(ls folder)" ] || fail "dates makes no folder for its model"
kill -TERM $!
code=0
wait $! || code=$?
equal "130 attend: interrupted; the demo's files are removed" "$code $(cat err.txt)" "dates interrupted"
equal "" "$(ls folder)" "files that dates leaves behind"
finish
