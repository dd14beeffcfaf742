# The demo that looks at pictures: what it must say, that the seed decides all of it, and what is refused. ATTEND_LONG=1
# (make check-long) trains it to its end.
. "$(dirname "$0")/support.bash"
. "$here/demo.bash"

"$attend" demo scenes 8 --hidden 4 >scenes.txt
narrow scenes.txt
grep -qE '^    a (small|large) [a-z]+ [a-z]+' scenes.txt || fail "no caption: $(cat scenes.txt)"
grep -qE '^    new scenes +[0-9.]+% of 500 captions are right' scenes.txt || fail "no score: $(cat scenes.txt)"
grep -qE '^256 such scenes' scenes.txt || fail "other scenes than 8 updates need: $(cat scenes.txt)"
"$attend" demo scenes 8 --hidden 4 --threads 1 >again.txt
equal "$(timeless scenes.txt)" "$(timeless again.txt)" "scenes on one thread"
"$attend" demo scenes 8 --hidden 4 --seed 2 >other.txt
[ "$(timeless scenes.txt)" != "$(timeless other.txt)" ] || fail "another seed draws the same scenes"
# Other mechanisms: each is handed to the model, which has other parameters then or learns otherwise.
parameters() { grep -oE '[0-9]+ parameters' "$1"; }
"$attend" demo scenes 8 --hidden 4 --gate false >open.txt
"$attend" demo scenes 8 --hidden 4 --coverage 2 --doubly-stochastic 1000 >covered.txt
"$attend" demo scenes 8 --hidden 4 --normaliser hard --hard-training exact >exact.txt
for file in open.txt covered.txt exact.txt; do narrow $file; done
equal "5" "$(($(parameters scenes.txt | cut -d ' ' -f 1) - $(parameters open.txt | cut -d ' ' -f 1)))" "parameters of the gate"
equal "$((2 * 25 + 2 * 64))" "$(($(parameters covered.txt | cut -d ' ' -f 1) - $(parameters scenes.txt | cut -d ' ' -f 1)))" "parameters of coverage"
equal 4 "$(cat scenes.txt open.txt covered.txt exact.txt | awk '/^ *update .* loss / { print $4 }' | sort -u | wc -l)" "losses of four mechanisms"
mkdir folder
TMPDIR=$PWD/folder "$attend" demo scenes 2 --hidden 4 --normaliser hard >hard.txt
equal "" "$(ls folder)" "what the demo leaves behind"
refuse 2 "the updates of training are a number from 1 to 700000, not 'ring'" demo scenes ring
for bad in "--layers 2:model 'show-attend-tell' does not use --layers" "--hard-training both:--hard-training takes reinforce or exact, not 'both'" \
    "--score scalled:no score 'scalled'; did you mean 'scaled'?"; do
    refuse 2 "${bad#*:}" demo scenes 8 ${bad%%:*}
done
refuse 2 "--doubly-stochastic is for demo 'scenes', whose model looks at pictures" demo dates --doubly-stochastic 1
refuse 2 "demo 'scenes' shows model 'show-attend-tell' and no other, so --model cannot be 'luong'" demo scenes --model luong

if [ -n "${ATTEND_LONG:-}" ]; then
    "$attend" demo scenes >scenes.txt
    narrow scenes.txt
    awk '/captions are right/ { right[++n] = $(NF - 9) + 0; for (i = 1; i <= NF; i++) if ($i ~ /%$/) right[n] = $i + 0 }
        /times its share/ { times[n] = $1 + 0 }
        END { exit !(right[1] >= 98 && right[2] >= 90 && times[1] >= 5) }' scenes.txt ||
        fail "scenes says $(grep -A2 'captions are right' scenes.txt)"
fi
echo "$checks checks"
