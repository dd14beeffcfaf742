# attend demo rnn-vs-attention: its text but for the times, the work, and what is refused.
. "$(dirname "$0")/support.bash"
. "$here/demo.bash"

# unmeasured FILE: the demo without the ratios of times, which stand behind the work.
unmeasured() {
    sed -E '/^4\. /,/^5\. /s/^( +n = [0-9]+ +[0-9.]+)( +[0-9.]+){4}$/\1 .../' "$1"
}
"$attend" demo rnn-vs-attention >said.txt
narrow said.txt
golden=$here/demo_rnn_vs_attention.txt
[ -z "${UPDATE_GOLDENS:-}" ] || unmeasured said.txt >"$golden"
diff -u "$golden" <(unmeasured said.txt) >&2 || fail "the demo does not say what $golden holds"
equal 4 "$(grep -cE '^ +n = [0-9]+ +[0-9.]+ \.\.\.$' "$golden")" "lengths that are measured"
# 2 n d² against 4 n d² + 2 n² d for n = 64, d = 128, in millions
equal "2.10 4.19 1.05 5.24 2.50" "$(awk '$3 == 64 && NF == 8 { print $4, $5, $6, $7, $8; exit }' said.txt)" "the work of n = 64"
equal "10.00" "$(awk '$3 == 1024 && NF == 8 { print $8; exit }' said.txt)" "2 + n/d"
# What is left of x_1 falls with every step of the rnn, and stays about 1/n in attention.
awk '/^3\. /{ on = 1 } /^4\. /{ on = 0 } on && $1 == "n" { if (n && $5 + 0 > last) exit 1; last = $5 + 0; n++
     if ($8 * $3 < 0.6 || $8 * $3 > 1.6) exit 1 } END { exit n != 6 }' said.txt || fail "what arrives is $(cat said.txt)"
"$attend" demo rnn-vs-attention 16 >other.txt
narrow other.txt
grep -q 'd = 16 numbers' other.txt || fail "the width is not that of the input"
refuse 2 "the width is 18 and must be a multiple of 4 from 16 to 512" demo rnn-vs-attention 18
refuse 2 "the width is 16.5 and must be a multiple of 4 from 16 to 512" demo rnn-vs-attention 16.5
refuse 2 "the width is 8 and must be a multiple of 4 from 16 to 512" demo rnn-vs-attention 8
refuse 2 "1024 is too large; the demo takes numbers from -512 to 512" demo rnn-vs-attention 1024
refuse 2 "a row has more than 1 number, the most that the demo takes" demo rnn-vs-attention 16 32
finish
