# attend translate with --no-repeat-ngram, --coverage-penalty, --glossary, --placeholders and --split, and attend align
# --align-shift, on small models that are trained here: what they promise, and the same bytes for any batch and threads.
. "$(dirname "$0")/support.bash"

# Words turned round: "a b c" -> "C B A", of eight words.
awk 'BEGIN { srand(5); for (i = 0; i < 400; i++) { n = 2 + int(rand() * 3); s = t = ""
    for (w = 0; w < n; w++) { c = sprintf("%c", 97 + int(rand() * 8)); s = s (w ? " " : "") c; t = toupper(c) (w ? " " : "") t }
    print s >"source"; print t >"target" } }'
"$attend" train --source source --target target --output model --embedding 16 --hidden 32 --attention 16 --maxout 16 \
    --batch-size 20 --learning-rate 0.005 --epochs 15 --quiet 2>said || fail "training says $(cat said)"
"$attend" train --source source --target target --output second --model transformer --layers 2 --hidden 16 --heads 2 --ffn 32 \
    --epochs 3 --quiet 2>said || fail "training says $(cat said)"
head -40 source >in
printf 'a a a a\nb b b b b b\n\n{x} a b {y}\nsee https://example.com/q?a=1 or %%s\na b. c d. e\n12 a 7 b\n' >>in
printf '# terms\na b\tH H\nb\tB\nc\t!C\nd\tD A D\n\t!G\n' >terms

# ---- The same bytes in any batch and by any threads, of ensembles too.
for options in "--no-repeat-ngram 2 --beam 3" "--no-repeat-ngram 1 --sample 2 --n-best 3" "--coverage-penalty 0.5 --beam 4 --n-best 4 --scores" \
    "--glossary terms --beam 1 --scores" "--glossary terms --beam 6 --n-best 2 --no-repeat-ngram 3 -m second --alignment hard" \
    "--split --placeholders --beam 2 --confidence --scores" "--placeholders --glossary terms --n-best 2 --beam 3" "--split --glossary terms -m second"; do
    case $options in *--split*) "$attend" translate -m model --split </dev/null 2>said || { skipped "sentences: $(cat said)"; continue; } ;; esac
    "$attend" translate -m model $options --batch-size 64 --threads 1 --quiet <in >judge || fail "translate $options"
    for batch in 1 7; do
        "$attend" translate -m model $options --batch-size $batch --threads 2 --quiet <in >other
        same_file judge other
    done
    "$attend" translate -m model $options -i in -o other --quiet
    same_file judge other
done

# ---- No N-gram twice
"$attend" translate -m model --min-length-factor 2 <in >out
[ "$(awk '{ for (i = 1; i <= NF; i++) if (seen[NR, $i]++) { print; break } }' out | wc -l)" -gt 5 ] || fail "nothing repeats that could be prevented"
"$attend" translate -m model --min-length-factor 2 --no-repeat-ngram 2 --beam 3 --n-best 2 <in | sed 's/^[0-9]* ||| //; s/ |||.*//' >out
equal "" "$(awk '{ for (i = 2; i <= NF; i++) if (seen[NR, $(i - 1), $i]++) print }' out)" "lines with a pair of words twice"
"$attend" translate -m model --sample 3 --no-repeat-ngram 1 <in >out
equal "" "$(awk '{ for (i = 1; i <= NF; i++) if (seen[NR, $i]++) print }' out)" "samples with a word twice"
printf 'a b c\tX X B\n' | "$attend" translate -m model --prefix --no-repeat-ngram 1 >out
equal "X X B" "$(cut -d' ' -f1-3 out)" "a given start that repeats itself"

# ---- Coverage: it lowers what is ranked by, and there is nothing to choose in a beam of 1.
"$attend" translate -m model --beam 4 --coverage-penalty 1 --scores <source >out
equal "" "$(awk -F' [|][|][|] ' '{ split($2, f, " "); if ($3 > f[2]) print }' out | head -3)" "lines that coverage raises"
[ "$(awk -F' [|][|][|] ' '{ split($2, f, " "); if ($3 < f[2]) print }' out | wc -l)" -gt 100 ] || fail "coverage changes nothing"
"$attend" translate -m model --coverage-penalty 1 <in >out
"$attend" translate -m model <in >other
same_file out other
"$attend" train --source source --target target --output plain --model rnn-plain --hidden 8 --epochs 1 --quiet 2>said || fail "training says $(cat said)"
refuse 1 "model 'rnn-plain' has no attention, so it has no weights that a coverage penalty could add up" translate -m plain -i source --coverage-penalty 1

# ---- A glossary: what must be there is there, and what must not is not.
for beam in 1 4; do
    "$attend" translate -m model --glossary terms --beam $beam <in >out 2>said
    paste -d= in out | awk -F= '{ s = " " $1 " "; t = " " $2 " " }
        $1 == "" || s !~ / [a-h] / { next }
        (s ~ / a b / && t !~ / H H /) || (s ~ / b / && s !~ / a b / && t !~ / B /) || (s ~ / d / && t !~ / D A D /) || (s ~ / c / && t ~ / C /) || t ~ / G / { print }' >wrong
    equal "" "$(cat wrong)" "lines without their terms, beam $beam"
    equal "" "$(cat said)" "notes where all terms are there"
done
printf 'a\tzz\n' >unknown
"$attend" translate -m model --glossary unknown >out 2>said <<<'a b'
equal "attend: the translation of line 1 lacks the term 'zz'" "$(cat said)" "a term that cannot be"
equal 1 "$(wc -l <out)" "lines with such a term"
"$attend" translate -m model --glossary terms --max-length 1 >out 2>said <<<'a b'
equal "attend: the translation of line 1 lacks the term 'H H'" "$(cat said)" "a term that is too long"
"$attend" translate -m model --glossary unknown --quiet >out 2>said < <(yes a | head -20)
equal "" "$(cat said)" "--quiet"
"$attend" translate -m model --glossary unknown 2>&1 >out < <(yes a | head -20) | tail -1 >said
equal "attend: and so in 10 more cases" "$(cat said)" "many notes"
printf 'a b\n' >wrong
refuse 1 "line 1 of the glossary 'wrong' has no tab; a line is the source term, a tab and the target term, which a ! forbids" translate -m model --glossary wrong -i in
printf 'a\tb\na\tc\n' >wrong
refuse 1 "the glossary 'wrong' has two target terms for 'a', in lines 1 and 2; it takes one" translate -m model --glossary wrong -i in
refuse 1 "cannot read 'missing': No such file or directory" translate -m model --glossary missing -i in
refuse 2 "--glossary is for search, so it cannot be combined with --sample" translate -m model --glossary terms --sample 1

# Subwords: a term is cut into units as text is, ends with its word, and is forbidden in any units.
sed 's/[a-h]/&nana&na/g' source >long.source
sed 's/[A-H]/&nono&no/g' target >long.target
if "$attend" train --source long.source --target long.target --source-vocab spm:18 --target-vocab spm:18 --output pieces --model transformer \
    --layers 1 --hidden 16 --heads 2 --ffn 16 --epochs 1 --quiet 2>said; then
    printf 'ananaana\tFnonoFno Hnono\nbnanabna\t!BnonoBno\n\t!AnonoAno\n' >terms
    "$attend" translate -m pieces --glossary terms --beam 3 <long.source >out 2>said
    paste -d= long.source out | awk -F= '{ s = " " $1 " "; t = " " $2 " " }
        (s ~ / ananaana / && t !~ /[^A-Za-z]FnonoFno Hnono[^A-Za-z]/) || (s ~ / bnanabna / && t ~ /[^A-Za-z]BnonoBno[^A-Za-z]/) || t ~ /[^A-Za-z]AnonoAno[^A-Za-z]/ { print }' >wrong
    equal "" "$(head -3 wrong)" "lines of subwords without their terms"
    equal "" "$(cat said)" "notes of subwords"
    "$attend" translate -m pieces --glossary terms --beam 3 --batch-size 5 --threads 2 <long.source >other
    same_file out other
else
    skipped "no subwords: $(cat said)"
fi

# ---- Placeholders stay as they are, each once.
printf '{name} a b %%s\nwrite to me@example.com or https://example.com/a?b=c\n{only} %%d\na 12 b 345\n' >kept
"$attend" translate -m model --placeholders <kept >out
equal 4 "$(wc -l <out)" "lines with placeholders"
for text in '{name}' '%s' me@example.com 'https://example.com/a?b=c' 12 345; do
    equal 1 "$(grep -oF "$text" out | wc -l)" "how often $text is there"
done
equal '{only} %d' "$(sed -n 3p out)" "a line of placeholders"
! "$attend" translate -m model <kept | grep -qF '{name}' || fail "this model keeps placeholders anyway"
refuse 2 "--placeholders translates parts of lines, so it cannot be combined with --alignment" translate -m model --placeholders --alignment hard

# ---- Sentences: what each is alone, with what stands between them.
if "$attend" translate -m model --split </dev/null 2>said; then
    printf 'A b.  C d! \n' | sed 's/A/a/;s/C/Zc/' >paragraph
    printf 'One a.  Two b!\n\nThree c\n' >paragraph
    "$attend" translate -m model --split <paragraph >out
    equal 3 "$(wc -l <out)" "lines of sentences"
    printf 'One a.\nTwo b!\nThree c\n' | "$attend" translate -m model >alone
    equal "$(sed -n 1p alone)  $(sed -n 2p alone)" "$(sed -n 1p out)" "two sentences"
    equal "" "$(sed -n 2p out)" "an empty line between"
    equal "$(sed -n 3p alone)" "$(sed -n 3p out)" "one sentence"
    "$attend" translate -m model --split --scores --confidence <paragraph >out
    printf 'One a.\nTwo b!\n' | "$attend" translate -m model --scores >alone
    equal "$(awk '{ for (i = 1; i <= NF; i++) if ($i == "F0=") s += $(i + 1) } END { printf "%.3f", s }' alone)" \
        "$(awk 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "F0=") printf "%.3f", $(i + 1) }' out)" "the score of two sentences"
    "$attend" translate -m model --split --split-language en <<<'Dr. A b. C d.' >out
    equal 1 "$(wc -l <out)" "a line with abbreviations"
    # As lines come.
    mkfifo to
    exec 3<>to
    "$attend" translate -m model --split <to >from 3>&- &
    translating=$!
    echo 'One a. Two b.' >&3
    for wait in $(seq 100); do [ -s from ] && break; sleep 0.1; done
    [ -s from ] || fail "a line on a pipe is not answered before the next"
    exec 3>&-
    wait $translating
    head -c 20000 /dev/urandom >bytes
    echo >>bytes
    "$attend" translate -m model --split --placeholders --max-length-factor 0.1 --quiet <bytes >out
    equal "$(wc -l <bytes)" "$(wc -l <out)" "lines of random bytes"
else
    skipped "sentences: $(cat said)"
fi
refuse 2 "--split-language is for --split, which is not given" translate -m model --split-language de
refuse 2 "--split translates parts of lines, so it cannot be combined with --sample" translate -m model --split --sample 1

# ---- --align-shift: unit t has the weights of the step that reads it.
head -40 source >s
head -40 target >t
"$attend" align -m second --source s --target t --align-shift --coverage --batch-size 64 --threads 1 >judge
"$attend" align -m second --source s --target t --align-shift --coverage --batch-size 3 --threads 2 >other
same_file judge other
"$attend" align -m second --source s --target t --coverage >other
! cmp -s judge other || fail "--align-shift changes nothing"
awk '{ n = split($0, w, " "); l = ""; for (i = 0; i < n; i++) l = l (i ? " " : "") i "-" (n - 1 - i); print l }' s >gold
"$attend" align -m second --source s --target t --align-shift --head best --gold gold >out 2>said
grep -qE '^attend: head [12]\.[12], where a word is (read|predicted), has the lowest AER, [0-9.]+$' said || fail "--head best says $(cat said)"
least=101
for head in 1.1 1.2 2.1 2.2; do for shift in "" --align-shift; do
    "$attend" align -m second --source s --target t --head $head $shift >other
    rate=$("$attend" score aer --reference gold <other | awk '{ print $2 }')
    least=$(awk -v a="$least" -v b="$rate" 'BEGIN { print a < b ? a : b }')
done; done
equal "$least" "$(sed 's/.*AER, //' said)" "the lowest error rate of all heads, both ways"
finish
