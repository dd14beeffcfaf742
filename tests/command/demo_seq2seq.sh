# The demos that learn: what they must say, that the seed decides all of it, and that other mechanisms can be tried.
# ATTEND_LONG=1 (make check-long) adds dates to its end, which takes long under the sanitizers.
. "$(dirname "$0")/support.bash"

# says FILE LINE...: the lines stand in the file, each by itself.
says() {
    local file=$1 line
    shift
    for line; do
        grep -qxF -- "    $line" "$file" || fail "the demo does not say '$line' but $(cat "$file")"
        checks=$((checks + 1))
    done
}

# What a demo says but for the seconds it took.
timeless() {
    sed -E 's/[0-9]+\.[0-9]+ seconds/N seconds/; s/ +[0-9]+\.[0-9] s$//' "$1"
}

"$attend" demo beer >beer.txt
says beer.txt 'ich mochte ein bier P -> i want a beer E'
equal 5 "$(grep -cE '^    epoch +[0-9]+   loss [0-9.]+$' beer.txt)" "losses that beer shows"
equal 5 "$(grep -cE '^ +(i|want|a|beer|E) .*[01]\.[0-9]{2}' beer.txt)" "rows of the heat map of beer"
"$attend" demo beer --threads 1 >again.txt
equal "$(timeless beer.txt)" "$(timeless again.txt)" "beer on one thread"
"$attend" demo beer --score additive --normaliser sparsemax --hidden 32 >other.txt
says other.txt 'ich mochte ein bier P -> i want a beer E'
"$attend" demo beer --model rnn-plain --hidden 32 >plain.txt
grep -q 'no attention in this model' plain.txt || fail "a model without attention shows some"

said=$("$attend" demo antonyms --model rnn-plain --score dot 2>&1 >/dev/null) && fail "a score without attention is taken"
equal "attend: model 'rnn-plain' does not use --score" "$said" "antonyms with a score"
said=$("$attend" demo beer --window local-x 2>&1) && fail "a window that is none is taken"
equal "attend: no window 'local-x'; did you mean 'local-m' or 'local-p'?" "$said" "beer with a window that is none"

"$attend" demo antonyms >antonyms.txt
says antonyms.txt 'man -> women' 'mans -> women' 'king -> queen' 'black -> white' 'up -> down'
equal 5 "$(grep -cE '^    epoch +[0-9]+   loss 0\.00[0-9]+$' antonyms.txt)" "losses that antonyms shows"

if [ -n "${ATTEND_LONG:-}" ]; then
    mkdir folder
    TMPDIR=$PWD/folder "$attend" demo dates >dates.txt
    right=$(sed -nE 's/^([0-9]+) of 1000 such dates.*/\1/p' dates.txt)
    ((right >= 990)) || fail "only $right of 1000 dates are right"
    equal 10 "$(grep -cE '^ +[0-9-] .*[01]\.[0-9]{2}.*[01]\.[0-9]{2}' dates.txt)" "rows of the heat map of dates"
    equal "" "$(ls folder)" "files that dates leaves behind"
fi
code=0
said=$(TMPDIR=/nowhere "$attend" demo dates 2>&1 >/dev/null) || code=$?
equal "1 attend: cannot create a folder for the model in '/nowhere'; TMPDIR may name another one" \
    "$code $said" "dates without a folder"
finish
