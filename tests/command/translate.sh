# attend translate, align, show and info on a small model that is trained here: as many lines out as in, the same bytes
# for any batch size and threads, answers as the lines come, and what is refused.
. "$(dirname "$0")/support.bash"

# Words turned round: "a b c" -> "c b a", of eight words.
awk 'BEGIN { srand(5); for (i = 0; i < 400; i++) { n = 2 + int(rand() * 3); s = t = ""
    for (w = 0; w < n; w++) { c = sprintf("%c", 97 + int(rand() * 8)); s = s (w ? " " : "") c; t = c (w ? " " : "") t }
    print s >"source"; print t >"target" } }'
"$attend" train --source source --target target --output model --embedding 16 --hidden 32 --attention 16 --maxout 16 \
    --batch-size 20 --learning-rate 0.005 --epochs 15 --quiet 2>said || fail "training says $(cat said)"

# ---- translate
head -50 source >in
"$attend" translate -m model <in >out
equal 50 "$(wc -l <out)" "lines out"
right=$(paste -d= out <(head -50 target) | awk -F= '$1 == $2' | wc -l)
[ "$right" -ge 45 ] || fail "only $right of 50 lines are right"
equal "$(head -1 out)" "$(head -1 in | tr -d '\n' | "$attend" translate --model model)" "a last line without a newline"
equal "$(head -1 out)" "$(printf '\xef\xbb\xbf%s\r\n' "$(head -1 in)" | "$attend" translate -m model)" "a mark and CR LF"
equal "" "$("$attend" translate -m model </dev/null)" "no line"

# The same bytes in any batch, on any threads; drawing too.
for options in "--beam 4 --n-best 3 --length-penalty 0.6 --alignment soft" "--sample 1.5 --n-best 2 --alignment hard" \
    "--sample 1.5 --n-best 2 --top-k 5 --top-p 0.8" \
    "--scores --replace-unknown"; do
    "$attend" translate -m model $options --batch-size 64 --threads 1 <in >judge
    for batch in 1 7; do
        "$attend" translate -m model $options --batch-size $batch --threads 2 <in >other
        same_file judge other
    done
done
"$attend" translate -m model --sample 5 --top-k 1 <in >first
"$attend" translate -m model <in >second
same_file first second
"$attend" translate -m model --sample 5 --seed 1 <in >first
"$attend" translate -m model --sample 5 --seed 2 <in >second
! cmp -s first second || fail "another seed draws the same"

# The forms.
number='-?[0-9]+\.[0-9]{4}'
printf 'a b c\n\nd e\n' >three
"$attend" translate -m model --scores --alignment hard <three >out
equal 3 "$(wc -l <out)" "lines with scores"
grep -qxE "[a-h ]+ \|\|\| ([0-9]-[0-9] ?)+ \|\|\| F0= $number \|\|\| $number" <(head -1 out) || fail "scores look like $(head -1 out)"
equal " |||  ||| F0= 0.0000 ||| 0.0000" "$(sed -n 2p out)" "an empty line with scores"
"$attend" translate -m model --beam 3 --n-best 3 <three >out
equal "3 1 3" "$(cut -d' ' -f1 out | uniq -c | awk '{printf "%s%d", (NR > 1 ? " " : ""), $1}')" "how many best of each line"
equal "0 1 2" "$(cut -d' ' -f1 out | uniq | paste -sd' ')" "numbers of the lines"
! grep -vE "^[0-9]+ \|\|\| [a-h ]*(<unk>)?[a-h ]* \|\|\| F0= $number \|\|\| $number$" out | grep -v '<unk>' || fail "n-best looks like $(cat out)"
"$attend" translate -m model --alignment soft <three >out
fields=$(head -1 out | sed 's/.*||| //' | tr ' ' '\n' | awk -F, '{print NF}' | sort -u)
equal 3 "$fields" "source weights of each target unit"

# The confidence is the geometric mean of the probabilities: of the units and the end.
"$attend" translate -m model --scores --confidence --batch-size 64 --threads 1 <in >judge
"$attend" translate -m model --scores --confidence --batch-size 3 --threads 2 <in >other
same_file judge other
equal "" "$(awk -F' [|][|][|] ' '{ n = split($1, w, " ") + 1; split($2, f, " "); if (($4 - exp(f[2] / n)) ^ 2 > 1e-7 || $4 > 1) print }' judge)" "lines with another confidence"
equal " ||| 1.0000" "$(echo | "$attend" translate -m model --confidence)" "the confidence of an empty line"
equal "3 of 3" "$("$attend" translate -m model --beam 3 --n-best 3 --confidence <<<'a b c' | grep -cE ' \|\|\| [01]\.[0-9]{4}$') of 3" "confidences of the best"

# A translation that is begun goes on from there, whatever the search; without a tab there is no beginning.
printf 'a b c\tb zz\na b c\n\td e\n\n' >begun
"$attend" translate -m model --prefix <begun >out
equal 4 "$(wc -l <out)" "lines that are begun"
equal "b zz" "$(head -1 out | cut -d' ' -f1,2)" "how a line is begun"
equal "$(echo 'a b c' | "$attend" translate -m model)" "$(sed -n 2p out)" "a line that is not begun"
equal "d e" "$(sed -n 3p out)" "a line that is nothing but begun"
for options in "--beam 4 --n-best 3 --scores" "--sample 2 --n-best 2 --alignment soft --replace-unknown" "--alignment hard"; do
    "$attend" translate -m model --prefix $options --batch-size 64 --threads 1 <begun >judge
    "$attend" translate -m model --prefix $options --batch-size 1 --threads 2 <begun >other
    same_file judge other
    ! sed -n '/^0 |||/s/^0 ||| //p' judge | grep -v '^b zz' || fail "translate --prefix $options begins otherwise"
done

# What else can follow: the first is what the search goes on with, each goes on as if it had been given, and the probabilities of all units
# sum to 1.
"$attend" translate -m model --prefix --alternatives 4 --batch-size 64 --threads 1 <begun >judge
"$attend" translate -m model --prefix --alternatives 4 --batch-size 1 --threads 2 <begun >other
same_file judge other
equal "0 0 0 0 1 1 1 1 2 3" "$(cut -d' ' -f1 judge | paste -sd' ')" "lines of alternatives"
equal "2 ||| d e ||| </s> ||| P= 1.000000/3 |||  ||| </s> ||| P= 1.000000" "$(tail -2 judge | paste -sd/)" "alternatives without a source"
equal "$(sed -n 1,2p out | paste -sd/)" "$(awk -F' [|][|][|] ' '$1 < 2 && !seen[$1]++ { print $2 }' judge | paste -sd/)" "the likeliest alternatives"
awk -F' [|][|][|] ' '$1 < 2 && $3 != "</s>" { print "a b c\t" ($1 ? "" : "b zz ") $3 }' judge | "$attend" translate -m model --prefix >other
same_file other <(awk -F' [|][|][|] ' '$1 < 2 && $3 != "</s>" { print $2 }' judge)
same_file <(sed -n 1p judge) <(head -1 begun | "$attend" translate -m model --prefix --alternatives 1)
equal "1.0000 1" "$("$attend" translate -m model --alternatives 1000 <<<'a b c' | awk '{ p = $NF; sum += p; if (NR > 1 && p > last) bad = 1; last = p } END { printf "%.4f %d", sum, !bad }')" "the sum of all probabilities, in order"
equal "F0= ||| 1" "$("$attend" translate -m model --alternatives 1 --scores <<<'a b c' | awk '{ print $(NF - 3), $(NF - 1), exp($NF) - $(NF - 5) < 1e-4 }')" "alternatives with scores"
refuse 2 "--alternatives goes on greedily from each of the likeliest units, so it cannot be combined with --beam" translate -m model --alternatives 2 --beam 2
refuse 2 "--alternatives goes on greedily from each of the likeliest units, so it cannot be combined with --placeholders" translate -m model --alternatives 2 --placeholders

# Lines are answered as they come: the second is written only after the first was answered.
mkfifo to
exec 3<>to
"$attend" translate -m model <to >from 3>&- &
translating=$!
echo 'a b c' >&3
for wait in $(seq 100); do [ -s from ] && break; sleep 0.1; done
[ -s from ] || fail "a line on a pipe is not answered before the next"
echo 'd e' >&3
exec 3>&-
wait $translating
equal 2 "$(wc -l <from)" "lines answered on a pipe"

# Any bytes, among them NULs, no UTF-8 and lines without end: one line for each.
head -c 200000 /dev/urandom >bytes
echo >>bytes
"$attend" translate -m model --max-length-factor 0.1 <bytes >out 2>said
equal "$(wc -l <bytes)" "$(wc -l <out)" "lines of random bytes"
grep -q '^attend: .* lines, the first of them line [0-9]*, each has bytes that are not UTF-8' said || fail "random bytes say $(cat said)"
equal "" "$("$attend" translate -m model --quiet --max-length-factor 0.1 <bytes 2>&1 >out)" "--quiet"
# No output is shorter than asked for, unless the longest is; and neither batch nor threads matter.
head -20 source >s
for options in '' '--beam 3' '--sample 1'; do
    "$attend" translate -m model --min-length-factor 1.5 $options --batch-size 20 --threads 1 <s >judge
    "$attend" translate -m model --min-length-factor 1.5 $options --batch-size 3 --threads 2 <s >other
    same_file judge other
    equal "" "$(paste -d= s judge | awk -F= '{ n = split($1, a, " "); if (split($2, b, " ") < 1.5 * n) print }')" "lines too short, $options"
done
equal "" "$("$attend" translate -m model --min-length-factor 3 --max-length 2 <s | awk 'NF > 2')" "lines too long"
printf 'a b z\n' | "$attend" translate -m model --replace-unknown >out
! grep -q '<unk>' out || fail "an unknown word is not replaced"

# ---- align
head -20 source >s
head -20 target >t
"$attend" align -m model --source s --target t >links
equal 20 "$(wc -l <links)" "lines of links"
awk '{ n = split($0, w, " "); l = ""; for (i = 0; i < n; i++) l = l (i ? " " : "") i "-" (n - 1 - i); print l }' s >reversed
right=$(paste -d= links reversed | awk -F= '$1 == $2' | wc -l)
[ "$right" -ge 15 ] || fail "only $right of 20 lines are linked as they were turned round: $(paste links reversed | head -3)"
"$attend" align -m model --source s --target t --level subword --batch-size 1 --scores | sed 's/ ||| .*//' >other
same_file links other
refuse 1 "'s' has 20 lines and 'in' has 50; they must be pairs" align -m model --source s --target in
refuse 1 "'s' has 20 lines and 'in' has 50; they must be pairs" score perplexity -m model --source s --reference in

# ---- show and info
"$attend" show -m model "a b c" --target "c b a" >out
equal "c b a" "$(head -1 out)" "what show translates"
equal "a b c" "$(sed -n 4p out | xargs)" "the source across"
equal "c b a </s>" "$(sed -n '5,8p' out | awk '{print $1}' | xargs)" "the target down"
"$attend" info model >out
for line in 'model *bahdanau' 'hidden *32' 'source *word, 8 units and 4 specials' 'parameters *[0-9]+ in [0-9]+ arrays, .*'; do
    grep -qxE "$line" out || fail "info lacks $line: $(cat out)"
done

# ---- Several models: twice the same says the same, and of two seeds neither has its way alone.
"$attend" translate -m model --scores --alignment soft <in >one
"$attend" translate -m model -m model --scores --alignment soft <in >out
same_file one out
"$attend" train --source source --target target --output second --overwrite --model transformer --layers 1 --hidden 16 --heads 2 --ffn 16 \
    --epochs 1 --quiet 2>said ||
    fail "training says $(cat said)"
"$attend" translate -m model --model second --scores <in >out
"$attend" translate -m second --model model --scores <in >again
same_file out again
! cmp -s one out || fail "a second model changes nothing"
"$attend" translate -m model -m second -m second --scores --beam 4 <in >out
"$attend" translate -m model -m second -m second --scores --beam 4 --batch-size 1 --threads 2 <in >again
same_file out again
"$attend" train --source source --target target --output letters --source-vocab char --hidden 8 --epochs 1 --quiet 2>said ||
    fail "training says $(cat said)"
refuse 1 "'letters' has another source vocabulary than the models before it; the models of an ensemble must share their vocabularies: \
train them on the same text with the same vocabulary settings" translate -m model -m second -m letters
refuse 1 "cannot read 'missing': No such file or directory" translate -m model -m missing
"$attend" train --model transformer-lm --target target --output alone --layers 1 --hidden 8 --heads 2 --ffn 8 --epochs 1 --quiet ||
    fail "a language model cannot be trained"
refuse 1 "'alone' is a 'transformer-lm', which cannot be in an ensemble with a 'bahdanau': only one of them reads a source" \
    translate -m model -m alone

# ---- Refusals.
refuse 2 "--top-k and --top-p choose what --sample samples from; give a temperature, such as --sample 1" \
    translate -m model --top-k 3
refuse 2 "--top-p takes a number above 0 to 1, not '0'" translate -m model --sample 1 --top-p 0
refuse 2 "attend translate needs a model: attend translate MODEL, or -m MODEL" translate
refuse 2 "--model needs a value: --model FILE" translate -m
refuse 1 "cannot read 'missing': No such file or directory" translate -m missing
refuse 2 "--alignment takes hard or soft, not 'firm'" translate -m model --alignment firm
refuse 2 "--n-best 3 needs a --beam of at least as many" translate -m model --n-best 3 --beam 2
refuse 2 "--sample samples instead of searching, so it cannot be combined with --beam" translate -m model --sample 1 --beam 2
refuse 2 "--sample takes a temperature above 0; leave it out to search" translate -m model --sample 0
refuse 2 "--length-penalty takes a number from -100 to 100, not 'much'" translate -m model --length-penalty much
refuse 2 "--min-length-factor takes a number from 0 to 1000, not '-1'" translate -m model --min-length-factor -1
refuse 2 "attend align needs --target FILE" align -m model --source s
refuse 2 "--level takes word or subword, not 'letter'" align -m model --source s --target t --level letter
refuse 2 "attend show needs a text, in quotes if it has blanks" show -m model
refuse 2 "attend info needs a model file: attend info MODEL" info
head -c 1000 model >cut
for command in "translate -m cut" "info cut" "show -m cut a"; do
    code=0
    "$attend" $command </dev/null >out 2>said || code=$?
    equal 1 "$code" "a truncated model"
    grep -q "^attend: 'cut' " said || fail "a truncated model says $(cat said)"
done
if [ -w /dev/full ]; then
    code=0
    "$attend" translate -m model <in >/dev/full 2>said || code=$?
    equal 1 "$code" "a full disk"
    equal "attend: cannot write to the standard output" "$(cat said)" "a full disk"
else
    skipped "there is no /dev/full, so translate to a full disk was not checked"
fi
"$attend" train --source source --target target --output plain --model rnn-plain --hidden 8 --epochs 1 --quiet 2>said ||
    fail "training says $(cat said)"
refuse 1 "model 'rnn-plain' has no attention, so it has no weights to show" show -m plain "a b"
finish
