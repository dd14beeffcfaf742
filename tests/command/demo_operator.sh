# The demos of the operator: their text, numbers that can be checked by hand, other input, and input that is refused.
. "$(dirname "$0")/support.bash"
. "$here/demo.bash"

# near A B WHAT: two numbers that agree to the three decimals of a demo.
near() {
    awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a != "" && b != "" && d < 0.00051 && d > -0.00051) }' ||
        fail "$3: expected $1, got $2"
    checks=$((checks + 1))
}

# cell FILE ROW COLUMN: a number of a table by the name of its row, the first such row of the file.
cell() {
    awk -v name="$2" -v column="$3" '$1 "" == name "" { print $(column + 1); exit }' "$1"
}

# ---- scores ----
narrow_golden demo_scores.txt scores
says "$here/demo_scores.txt" 'e = 1·2 + 2·1 + 0·1 + (-1)·0 = 4' 'e = 4 / √4 = 2' 'q W = (2, 1, 0, -1)' \
    'e = 2·2 + 1·1 + 0·1 + (-1)·0 = 5'
# e = tanh(-0.5) + 2 tanh(2) - tanh(-1.5) and 2k: W q = (0,1,-1), U 2k = (-1,1,0), b = (0,0.5,-0.5)
tanh='function tanh(x) { return 1 - 2 / (exp(2 * x) + 1) }'
near "$(awk "$tanh"' BEGIN { print tanh(-0.5) + 2 * tanh(2) - tanh(-1.5) }')" "$(cell "$here/demo_scores.txt" additive 1)" "additive of k"
near "$(awk "$tanh"' BEGIN { print tanh(-1) + 2 * tanh(2.5) - tanh(-1.5) }')" "$(cell "$here/demo_scores.txt" additive 2)" "additive of 2k"
"$attend" demo scores '3 1.25, 7; -0.1 2 0.004' >other.txt
narrow other.txt
says other.txt 'e = 3·(-0.1) + 1.25·2 + 7·0.004 = 2.228'
"$attend" demo scores '12.3456 -98.7654 55.555 -44.444 33.333 -22.222; -12.3456 98.7654 55.555 44.444 -33.333 22.222' >other.txt
narrow other.txt
refuse 2 "there is 1 row and must be at least 2; a semicolon separates rows" demo scores 1 2 3
refuse 2 "row 2 has 1 numbers and the first has 2; all rows must have as many" demo scores '1 2; 3'
refuse 2 "there are more than 2 rows, the most that the demo takes" demo scores '1 2; 3 4; 5 6'
refuse 2 "a row has 1 number and must have at least 2" demo scores '1; 2'
refuse 2 "a row has more than 6 numbers, the most that the demo takes" demo scores '1 2 3 4 5 6 7; 1 2 3 4 5 6 7'
refuse 2 "'two' is not a number; the demo takes numbers, as in \"1 0.5 -2\"" demo scores '1 two; 3 4'
refuse 2 "'nan' is not a number; the demo takes numbers, as in \"1 0.5 -2\"" demo scores '1 nan; 3 4'
refuse 2 "1e9 is too large; the demo takes numbers from -99 to 99" demo scores '1 1e9; 3 4'

# ---- normalisers ----
narrow_golden demo_normalisers.txt normalisers
file=$here/demo_normalisers.txt
near "$(awk 'BEGIN { print exp(1.5) / (exp(2) + exp(1.5) + exp(0.5) + 1 + exp(-1)) }')" "$(sed -n '/^2\. /,$p' "$file" | cell - 2 4)" "softmax of 1.5"
says "$file" 'w = (0.75, 0.25, 0, 0, 0)' 'w = (0.6712, 0.324, 0.004795, 0, 0)'
# entmax15 by its definition: w = (e/2 - t)^2 above t, with the sum 1; the weights give t back
awk 'BEGIN { t = 1 - sqrt(0.6712); a = 0.75 - t; b = 0.25 - t
             exit !(t > 0.180 && t < 0.181 && (a * a - 0.324) ^ 2 < 1e-8 && (b * b - 0.004795) ^ 2 < 1e-8 && t > 0) }' ||
    fail "entmax15 does not follow its definition"
near "$(awk 'BEGIN { print 1 / (1 + exp(-0.5)) }')" "$(sed -n '/^6\. /,$p' "$file" | cell - 3 2)" "sigmoid of 0.5"
"$attend" demo normalisers --seed 2 >other.txt
diff <(sed '/^7\. /,/^8\. /d' other.txt) <(sed '/^7\. /,/^8\. /d' "$file") >&2 || fail "another seed changes more than the draws"
cmp -s other.txt "$file" && fail "another seed draws the same keys"
for row in '-- -50 50' '0,0,0' '1 1 1 1 1 1 1' '-- -1 -2' '1e-9 0'; do
    "$attend" demo normalisers $row >other.txt || fail "the row $row"
    narrow other.txt
done
refuse 2 "a row has 1 number and must have at least 2" demo normalisers 3
refuse 2 "a row has more than 7 numbers, the most that the demo takes" demo normalisers 1 2 3 4 5 6 7 8
refuse 2 "there is more than 1 row, the most that the demo takes" demo normalisers '1 2; 3 4'
refuse 2 "51 is too large; the demo takes numbers from -50 to 50" demo normalisers 1 51
refuse 2 "'e' is not a number; the demo takes numbers, as in \"1 0.5 -2\"" demo normalisers 1 e

# ---- projections ----
narrow_golden demo_projections.txt projections
file=$here/demo_projections.txt
says "$file" 'k_2 = 1·1 + 3·0 + 2·(-1) = -1' 'I        1     2     3    -1     3     1' 's = q·k / √2 = 0.707'
# z of the first word: softmax(1/√2, -3/√2, 2/√2) over the values (3,1), (4,-2), (2,1)
read -r z1 z2 < <(awk 'BEGIN { a = exp(1 / sqrt(2)); b = exp(-3 / sqrt(2)); c = exp(2 / sqrt(2)); s = a + b + c
                               print (3 * a + 4 * b + 2 * c) / s, (a - 2 * b + c) / s }')
near "$z1" "$(sed -n '/^4\. /,$p' "$file" | cell - I 1)" "the first number of z_I"
near "$z2" "$(sed -n '/^4\. /,$p' "$file" | cell - I 2)" "the second number of z_I"
"$attend" demo projections '1 0 2; 0 1 1; 2 1 0; 1 1 1; -3.25 20 -20; 0 0 0' >other.txt
narrow other.txt
refuse 2 "a row has 2 numbers and must have at least 3" demo projections '1 2; 3 4'
refuse 2 "a row has more than 3 numbers, the most that the demo takes" demo projections '1 2 3 4'
refuse 2 "there is 1 row and must be at least 2; a semicolon separates rows" demo projections 1 2 3
refuse 2 "there are more than 6 rows, the most that the demo takes" demo projections '1 2 3;1 2 3;1 2 3;1 2 3;1 2 3;1 2 3;1 2 3'

# ---- windows ----
narrow_golden demo_windows.txt windows
file=$here/demo_windows.txt
# p_t = 6 σ(4 tanh(h)): predicted 0.3 beside the needed position
near "$(awk "$tanh"' BEGIN { print 6 / (1 + exp(-4 * tanh(log((1 + log(4.7 / 1.3) / 4) / (1 - log(4.7 / 1.3) / 4)) / 2))) }')" \
    "$(sed -n '/^4\. /,$p' "$file" | cell - gelesen 5)" "p_t of gelesen"
# keys 3, 4 and 5 with the scores -4/3, -2/3 and 8/3, times the Gaussian at a distance of 0.3 with σ = 1
near "$(awk 'BEGIN { print exp(8 / 3) / (exp(-4 / 3) + exp(-2 / 3) + exp(8 / 3)) * exp(-0.3 ^ 2 / 2) }')" \
    "$(sed -n '/^5\. /,$p' "$file" | cell - gelesen 5)" "the weight of gelesen"
equal 0.000 "$(sed -n '/^6\. /,$p' "$file" | sed '1,/local-p$/d' | cell - gelesen 2)" "what local-m sees of gelesen"
for words in 'a b' 'a b c d e f g h / h g f e d c b a' 'a b / a b a b a b a b' '我 很 好 / 好 很 我' 'das buch lese ich/ich'; do
    "$attend" demo windows "$words" >other.txt || fail "the words $words"
    narrow other.txt
done
grep -q 'b (t = 7) needs position 1 but sees nothing' < <("$attend" demo windows 'a b / a b a b a b a b') || fail "an empty window"
refuse 2 "there is 1 word and must be at least 2" demo windows hello
refuse 2 "there are more than 8 words, the most that the demo takes" demo windows a b c d e f g h i
refuse 2 "the word 'donaudampfschiff' is too wide; a word takes 10 columns at most" demo windows ein donaudampfschiff
refuse 2 "'c' is not in the source; behind the slash stand words of the source, in the order in which they are written" demo windows a b / c
refuse 2 "there are 0 words and must be at least 1" demo windows a b /
refuse 2 "'\\x1b[1m' is not a word: it is not UTF-8, or has control characters" demo windows a $'\033[1m'
refuse 2 "'\\xff' is not a word: it is not UTF-8, or has control characters" demo windows a $'\xff'

# ---- positions ----
narrow_golden demo_positions.txt positions
file=$here/demo_positions.txt
# PE(3, 2) = sin(3 / 10000^(2/16)); PE(p)·PE(p+2) = Σ cos(2 / 10000^(2i/16))
near "$(awk 'BEGIN { print sin(3 / 10000 ^ (2 / 16)) }')" "$(sed -n '/^2\. /,$p' "$file" | sed -n 's/^ *p = 3 *//p' | awk '{ print $3 }')" "PE(3, 2)"
near "$(awk 'BEGIN { for (i = 0; i < 8; i++) sum += cos(2 / 10000 ^ (2 * i / 16)); print sum }')" \
    "$(sed -n 's/^ *k = 2 *//p' "$file" | awk 'NR == 1 { print $2 }')" "the product of two positions"
says "$file" 'slope = (0.5, 0.25, 0.125, 0.0625, 0.03125, 0.01562, 0.007812, 0.003906)' 'sees   -2 -1  0  1 2'
"$attend" demo positions --seed 2 >other.txt
diff <(sed '/^5\. /,/^6\. /d; /^10\. /,/^11\. /d' other.txt) <(sed '/^5\. /,/^6\. /d; /^10\. /,/^11\. /d' "$file") >&2 ||
    fail "another seed changes more than the learned positions"
cmp -s other.txt "$file" && fail "another seed draws the same table"
for words in 'a b' 'a a a a a a a a' '我 很 好' 'eins zwei drei vier fünf sechs sieben achtachtac'; do
    "$attend" demo positions "$words" >other.txt || fail "the words $words"
    narrow other.txt
done
refuse 2 "there is 1 word and must be at least 2" demo positions hello
refuse 2 "there are more than 8 words, the most that the demo takes" demo positions a b c d e f g h i

# ---- hard ----
narrow_golden demo_hard.txt hard
file=$here/demo_hard.txt
# soft, the first update: e_j += 0.5 (1 - σ(0.1)) 0.2 (a_j - 0.1), then w_3 of the softmax
near "$(awk 'BEGIN { split("-1 0.5 3 0 -2", a); g = 0.5 * (1 - 1 / (1 + exp(-0.1))) * 0.2
                     for (j = 1; j <= 5; j++) { p[j] = exp(g * (a[j] - 0.1)); sum += p[j] } print p[3] / sum }')" \
    "$(sed -n '/^2\. /,$p' "$file" | cell - 2 5)" "w_3 after one update of soft attention"
# hard, the second draw is place 2 with r = log σ(0.5) and b = log σ(0)
awk -v got="$(sed -n '/^4\. /,$p' "$file" | cell - 3 6)" \
    'BEGIN { d = 0.5 * (-log(1 + exp(-0.5)) + log(2)); p = exp(d * 0.8); w = p / (p + 4 * exp(-d * 0.2))
             exit !(got - w < 0.0051 && w - got < 0.0051) }' || fail "w_2 after its draw"
"$attend" demo hard --seed 2 >other.txt
cmp -s other.txt "$file" && fail "another seed draws the same places"
for row in '0 1 2' '1 1' '-- -10 10 -10 10 -10 10' '0 0 0 0'; do
    "$attend" demo hard $row >other.txt || fail "the row $row"
    narrow other.txt
done
refuse 2 "a row has 1 number and must have at least 2" demo hard 3
refuse 2 "a row has more than 6 numbers, the most that the demo takes" demo hard 1 2 3 4 5 6 7
refuse 2 "11 is too large; the demo takes numbers from -10 to 10" demo hard 1 11
finish
