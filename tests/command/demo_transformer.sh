# attend demo transformer: what it learns, the maps of every head, and what is refused before the first page.
# ATTEND_LONG=1 (make check-long) adds other sizes, which take long under the sanitizers.
. "$(dirname "$0")/support.bash"
. "$here/demo.bash"

refuse 2 "'ab' is not a word of 3 to 8 letters from a to z, which this demo takes" demo transformer ab
refuse 2 "'Listen' is not a word of 3 to 8 letters from a to z, which this demo takes" demo transformer Listen
refuse 2 "'abcdefghi' is not a word of 3 to 8 letters from a to z, which this demo takes" demo transformer abcdefghi
refuse 2 "demo 'transformer' shows model 'transformer' and no other, so --model cannot be 'bahdanau'" \
    demo transformer --model bahdanau
refuse 2 "no model 'tranformer'; did you mean 'transformer'?" demo transformer --model tranformer
refuse 2 "model 'transformer' does not use --cell" demo transformer --cell gru

# maps FILE PAGE: the rows of the maps of a page.
maps() {
    awk -v page="$2." '$1 ~ /^[0-9]+\.$/ { on = $1 == page } on && /^    [^ ]+ .*[░▒▓█]/' "$1"
}

if ! learns; then
    "$attend" demo transformer --hidden 8 --heads 2 --layers 1 planet >said.txt
    narrow said.txt
    finish
    exit
fi
"$attend" demo transformer planet >said.txt
narrow said.txt
right=$(sed -nE 's/^([0-9]+) of 500 such words.*/\1/p' said.txt)
((right >= 470)) || fail "only $right of 500 words are right"
says said.txt 'planet -> tenalp'
equal 12 "$(maps said.txt 5 | wc -l)" "rows of the maps of the encoder: 2 layers of 6 letters"
equal 14 "$(maps said.txt 6 | wc -l)" "rows of the maps of the decoder: 2 layers, <s> and 6 letters"
equal 14 "$(maps said.txt 7 | wc -l)" "rows of the maps to the source: 2 layers, 6 letters and </s>"
equal "<s> t e n a l p" "$(maps said.txt 6 | head -7 | awk '{ print $1 }' | paste -sd ' ')" "what the decoder reads"
# Row <s> sees itself alone, in all heads; nothing is drawn above the diagonal.
equal 4 "$(maps said.txt 6 | grep -c '^    <s>  ██ *██$' | awk '{ print 2 * $1 }')" "heads in which <s> sees itself alone"
# One head looks at the letter it writes: the mirrored one.
best=$(sed -nE 's/^The head that copies is cross 2\.[12]: ([0-9]+)%.*/\1/p' said.txt)
((best >= 60)) || fail "the best head has only $best% of its weight on the mirrored letter"
equal 12 "$(grep -cE '^    (encoder|decoder|cross) +[12]\.[12] +[0-9.]+ ' said.txt)" "heads in the table"

if [ -n "${ATTEND_LONG:-}" ]; then
    "$attend" demo transformer --threads 2 planet >again.txt
    equal "$(timeless said.txt)" "$(timeless again.txt)" "transformer on two threads"
    "$attend" demo transformer --heads 4 --layers 1 abcdefgh >other.txt
    ((80 >= $(wc -L <other.txt))) || fail "four heads are wider than 80 columns"
    grep -q 'head 1\.4' other.txt || fail "the fourth head is not drawn"
fi
finish
