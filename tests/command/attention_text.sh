# attend attention without other programs: matrices typed, in text files and on the standard streams, and --show.
. "$(dirname "$0")/support.bash"

# The worked example, softmax(XXᵀ)X, from one typed line.
X='1 3 2; 1 1 3; 1 2 1'
npy x.npy '3, 3' 1 3 2 1 1 3 1 2 1
"$attend" attention --query "$X" --score dot --show >said
diff -u - said >&2 <<'EXPECTED' || fail "the worked example looks different"
scores
       0         1         2
0  ██ 14.00  ▒▒ 10.00  ▒▒  9.00
1  ▒▒ 10.00  ▒▒ 11.00      6.00
2  ▒▒  9.00      6.00      6.00

weights
      0        1        2
0  ██ 0.98     0.02     0.01
1  ░░ 0.27  ▓▓ 0.73     0.00
2  ██ 0.91     0.05     0.05

output
1.00000 2.95769 2.01129
1.00000 1.54015 2.72257
1.00000 2.86416 2.00000
EXPECTED

# The same bits as from arrays, for every way to write a matrix.
run attention --query x.npy --score dot --out z.npy --weights w.npy
printf '# X\n1 3 2\n\n1\t1 3 # am\n  1 2 1  ' >x.txt
printf '1,3,2\r\n1,1,3\r\n1,2,1\r\n' >x.csv
printf '1\t3\t2\n1\t1\t3\n1\t2\t1\n' >x.tsv
printf '1e0, 30e-1 ,2\n+1,1.0,3\n1,.2e1,1\n' >other.csv
for matrix in "$X" "1,3,2;1,1,3;1,2,1" "1 3 2 ; 1 1 3 ; 1 2 1;" "$(cat x.tsv)" x.txt x.csv x.tsv other.csv; do
    run attention --query "$matrix" --score dot --out other.npy --weights other_w.npy
    same_file z.npy other.npy
    same_file w.npy other_w.npy
done
"$attend" attention --query - --score dot --out other.npy <x.csv
same_file z.npy other.npy
run attention --query "$X" --key x.csv --value x.npy --score dot --out other.npy
same_file z.npy other.npy

# Text out reads back to the same bits.
third="1 1; 0.3333333 2e-30; -30 7"
run attention --query "$third" --out third.npy
for name in - third.txt third.csv third.tsv; do
    "$attend" attention --query "$third" --out $name >text
    [ $name = - ] || cp $name text
    equal "$([ $name = - ] && echo 3 || echo 0)" "$("$attend" attention --query "$third" --out $name | wc -l)" "lines on stdout for $name"
    cp text back.csv
    run attention --query "1 0 0; 0 1 0; 0 0 1" --key "100 0 0; 0 100 0; 0 0 100" --value back.csv --normaliser hard --out back.npy
    same_file third.npy back.npy
done
equal 2 "$(head -1 third.csv | tr , '\n' | wc -l)" "commas in .csv"
"$attend" attention --query "$X" --score dot --out - | "$attend" attention --query - --score dot --out piped.npy
run attention --query z.npy --score dot --out straight.npy
same_file straight.npy piped.npy
"$attend" attention --query "1 0; 0 1" --heads 2 --weights - >said
equal "2 2 1" "$(awk 'BEGIN { RS = "" } { print NF / 2 }' said | tr '\n' ' ')1" "two matrices, one for each head"

# Parameters: a row is a vector where the parameter is one, and a matrix where it is not.
npy vector.npy '2,' 1 2
npy matrix.npy '2, 3' 1 2 3 2 3 1
run attention --query x.npy --score additive --param W=matrix.npy --param U=matrix.npy --param v=vector.npy --out z.npy
run attention --query x.npy --score additive --param "W=1 2 3; 2 3 1" --param U=matrix.npy --param "v=1 2" --out other.npy
same_file z.npy other.npy
run attention --query "1 2" --heads 2 --score additive --param "W=1" --param "U=2" --param "v=3" --out other.npy

# ---- --show
"$attend" attention --query "$X" --window causal --show >said
equal "0  ██ 8.08     -inf     -inf" "$(sed -n 3p said)" "keys outside the window"
equal "0  ██ 1.00     0.00     0.00" "$(sed -n 9p said)" "no weight outside the window"
npy batch.npy '2, 2, 2' 1 0 0 1 1 0 0 1
"$attend" attention --query batch.npy --heads 2 --show --out shown.npy >said
run attention --query batch.npy --heads 2 --out plain.npy
same_file plain.npy shown.npy
equal "scores, batch row 0, head 1;scores, batch row 0, head 2;scores, batch row 1, head 1;scores, batch row 1, head 2;" \
    "$(grep ^scores said | tr '\n' ';')" "titles"
equal "output, batch row 0;output, batch row 1;" "$(grep ^output said | tr '\n' ';')" "titles of the output"
COLUMNS=20 "$attend" attention --query "$X" --show >said
[ "$(sed "/output/,\$d" said | wc -L)" -le 20 ] || fail "maps are wider than 20 columns: $(cat said)"

# ---- Refusals name the row and what is wrong with it.
refuse 1 "--query: row 2 has 2 numbers and row 1 has 3; rows must be of one length" attention --query "1 3 2; 1 1; 1 2 1" --out -
refuse 1 "--query: row 2 has 3 numbers and row 1 has 2; rows must be of one length" attention --query "1 3; 1 1 2" --out -
refuse 1 "--key: row 3 has 1 number and row 1 has 2; rows must be of one length" attention --query "1 3" --key "1 3;1 3;4" --out -
refuse 1 "--query: 'x' in row 2 is not a number" attention --query "1 3; 1 x" --out -
refuse 1 "--query: '3-' in row 1 is not a number" attention --query "1 3-" --out -
refuse 1 "--query: '1e39' in row 1 is too large for float32" attention --query "1e39" --out -
refuse 1 "--query: row 1 has an empty field" attention --query "1,,2" --out -
refuse 1 "--query: row 2 has an empty field" attention --query "1,2;,2" --out -
refuse 1 "--query: row 1 has an empty field" attention --query "1,2,;1,2" --out -
refuse 1 "--query: there is no number in it" attention --query " ; " --out -
printf 'a,b\n1,2\n' >names.csv
refuse 1 "--query: 'names.csv': 'a' in line 1 is not a number" attention --query names.csv --out -
printf '1 2\n\n1\n' >ragged.txt
refuse 1 "--value: 'ragged.txt': line 3 has 1 number and line 1 has 2; rows must be of one length" attention --query "1 2" --value ragged.txt --out -
: >empty.tsv
refuse 1 "--query: 'empty.tsv': there is no number in it" attention --query empty.tsv --out -
printf '1;2\n' >semicolons.csv
refuse 1 "--query: 'semicolons.csv': '1;2' in line 1 is not a number" attention --query semicolons.csv --out -
cp x.npy binary.txt
refuse 1 "--query: 'binary.txt' is a .npy file, not text; its name should end in .npy" attention --query binary.txt --out -
refuse 1 "--query: cannot read 'none.csv': No such file or directory" attention --query none.csv --out -
refuse 1 "--query: cannot read 'none': No such file or directory" attention --query none --out -
refuse 2 "only one array can come from the standard input" attention --query - --key - --out -
refuse 2 "only one of --show, --out - and --weights - can go to the standard output" attention --query "1" --out - --weights -
refuse 2 "only one of --show, --out - and --weights - can go to the standard output" attention --query "1" --out - --show
refuse 2 "--show draws all rows; leave out --rows" attention --query "1; 2" --show --weights w.npy --rows 1
refuse 2 "nothing to write: give --show, --out, --weights, --summary or --grads" attention --query "1"
"$attend" attention --query - --out - <x.npy >said 2>&1 && fail "a .npy file is read as text"
equal "attend: --query: '-' is a .npy file, not text; name it /dev/stdin to read it" "$(cat said)" ".npy on stdin"
finish
