# attend calibrate: the table against translations counted here, the fit by its own equations, and the confidence of attend serve.
. "$(dirname "$0")/support.bash"

# Words turned round, some pairs with another word, so that no model is right always.
awk 'BEGIN { srand(5); for (i = 0; i < 500; i++) { n = 2 + int(rand() * 3); s = t = ""
    for (w = 0; w < n; w++) { c = sprintf("%c", 97 + int(rand() * 8)); s = s (w ? " " : "") c; t = (rand() < 0.1 ? "x" : c) (w ? " " : "") t }
    print s >"source"; print t >"target" } }'
small="--embedding 8 --hidden 16 --attention 8 --maxout 8 --batch-size 20 --learning-rate 0.01 --quiet"
"$attend" train --source source --target target --output m $small --epochs 6
head -300 source >s
head -300 target >t
tail -200 source >more.s
tail -200 target >more.t

"$attend" calibrate -m m --source s --target t -o calibrated --threads 1 >table
"$attend" calibrate m --source s --target t -o other --threads 2 --batch-size 7 >again
same_file table again
same_file calibrated other
"$attend" translate -m calibrated <s >said
"$attend" translate -m m <s >before
same_file before said

# counted FILE.s FILE.t OFFSET SLOPE [OPTION...]: for every pair the mean log-probability, the units, those in common, the confidence.
counted() {
    local source=$1 target=$2 offset=$3 slope=$4
    shift 4
    "$attend" translate -m m --n-best 1 "$@" <"$source" | awk -v target="$target" -v a="$offset" -v b="$slope" -F' [|][|][|] ' '{
        n = split($2, word, " "); getline line <target; k = split(line, other, " "); split("", left); common = 0
        for (i = 1; i <= k; i++) left[other[i]]++
        for (i = 1; i <= n; i++) if (left[word[i]]-- > 0) common++
        x = $4 / (n + 1); print x, n ? n : 1, common, 1 / (1 + exp(-(a + b * x))) }'
}
curve=$(sed -n 's/^confidence = .*(-(\(.*\) + \(.*\) x))).*/\1 \2/p' table)
counted s t $curve >pairs
equal "confidence       1 / (1 + exp(-(${curve% *} + ${curve#* } x)))" "$("$attend" info calibrated | grep confidence)" "the curve in the model"
equal 0 "$("$attend" info m | grep -c confidence || true)" "a model without a curve"
# The likelihood is at its maximum: its derivatives by offset and slope are 0, with the two units that keep it finite.
awk '{ x[NR] = $1; n[NR] = $2; r[NR] = $3; c[NR] = $4; N += $2; m += $2 * $1 }
    END { m /= N; for (i = 1; i <= NR; i++) v += n[i] * (x[i] - m) ^ 2; d = sqrt(v / N)
        for (i = 1; i <= NR; i++) { a += r[i] - n[i] * c[i]; b += (r[i] - n[i] * c[i]) * (x[i] - m) / d; h += n[i] * c[i] * (1 - c[i]) }
        split("'"$curve"'", p, " ")
        for (i = -1; i <= 1; i += 2) { e = 0.5 - 1 / (1 + exp(-(p[1] + p[2] * (m + i * d)))); a += e; b += i * e }
        if (N < 500 || a / h > 0.002 || a / h < -0.002 || b / h > 0.002 || b / h < -0.002) { print N, a / h, b / h; exit 1 } }' pairs || fail "the curve is not the likeliest: $curve"
# counts PAIRS TABLE: the table has what was counted.
counts() {
    awk '{ i = int(10 * $4); i = i > 9 ? 9 : i; P[i]++; U[i] += $2; C[i] += $2 * $4; R[i] += $3; p++; u += $2; c += $2 * $4; r += $3 }
        END { for (i = 0; i < 10; i++) { if (P[i]) printf "%.1f to %.1f %d %d %.3f %.3f\n", i / 10, (i + 1) / 10, P[i], U[i], C[i] / U[i], R[i] / U[i]
                  e += C[i] > R[i] ? C[i] - R[i] : R[i] - C[i] }
              printf "all %d %d %.3f %.3f\n", p, u, c / u, r / u; printf "expected calibration error %.3f\n", e / u }' "$1" >counted
    awk 'NR > 1 && NF && !/^confidence/ { if (/^expected/) printf "expected calibration error %.3f\n", $NF; else { $1 = $1; print } }' "$2" >printed
    awk 'NR == FNR { line[FNR] = $0; lines = FNR; next } { k = split(line[FNR], a, " "); bad = k != NF
        for (i = 1; i <= NF; i++) if (a[i] != $i && ((a[i] - $i) ^ 2 > 3e-6 || a[i] !~ /[.]/)) bad = 1
        if (bad) { print "counted " $0 ", printed " line[FNR]; exit 1 } } END { exit lines != FNR }' printed counted || fail "the table is $(cat "$2")"
    checks=$((checks + 1))
}
counts pairs table
awk '$1 == "all" && ($4 - $5) ^ 2 > 4e-6 { exit 1 }' table || fail "the mean confidence is not the share of what is right"
# Other pairs, and another search.
"$attend" calibrate -m calibrated --source more.s --target more.t --check >table
counted more.s more.t $curve >pairs
counts pairs table
"$attend" calibrate -m calibrated --source more.s --target more.t --check --beam 3 >table
counted more.s more.t $curve --beam 3 >pairs
counts pairs table

# Pairs without a unit are left out; references that have nothing in common leave the numbers finite.
{ cat s; echo; echo a; } >more
{ cat t; echo a; echo; } >others
"$attend" calibrate -m m --source more --target others 2>said | grep -v pairs >table
equal "attend: 2 pairs with an empty side, the first in line 301, left out" "$(cat said)" "pairs without a unit"
sed "s/.*/nothing/" s >none
"$attend" calibrate -m m --source s --target none -o none.model >/dev/null
"$attend" calibrate -m none.model --source s --target none --check | awk '$1 == "all" { found = $5 == "0.000" && $4 < 0.02 } END { exit !found }' || fail "nothing in common is not seen"
head -1 s >one.s
head -1 t >one.t
"$attend" calibrate -m m --source one.s --target one.t | grep -qE '^all +1 ' || fail "one pair cannot be calibrated"

# The confidence of an answer: of a line that of its translation, of a text the mean over its units; a batch has an array.
if "$attend" serve --check --port 0 -m de-en=calibrated --no-isolation 2>/dev/null && command -v curl >/dev/null; then
    : >log
    "$attend" serve --port 0 -m de-en=calibrated -m en-de=m --pivot en -m fr-en=other 2>log &
    server=$!
    trap 'kill -9 $server 2>/dev/null || true; rm -rf "$work"' EXIT
    for wait in $(seq 1200); do grep -q Ctrl-C log && break; sleep 0.05; done
    at=$(sed -n 's|.*\(http://[^ ]*[0-9]\): .*|\1|p' log)
    ask() { curl -sS --max-time 60 -H 'Content-Type: application/json' -d "$1" "$at/translate"; }
    counted s t $curve | sed -n 1,3p >pairs
    mapfile -t line < <(head -3 s)
    mapfile -t said < <(head -3 s | "$attend" translate -m m)
    hundredths() { tr -c '0-9.\n' '\n' | grep . | xargs printf '%.2f '; }
    equal "$(cut -d' ' -f4 pairs | hundredths)" "$(ask "{\"q\":[\"${line[0]}\",\"${line[1]}\",\"${line[2]}\"],\"source\":\"de\",\"target\":\"en\",\"confidence\":true}" |
        sed 's/.*"confidence":\([^]]*\)].*/\1/' | hundredths)" "the confidence of three texts"
    whole=$(awk '{ n += $2; c += $2 * $4 } END { printf "%.2f", c / n }' pairs)
    equal "$whole" "$(ask "{\"q\":\"${line[0]}\\n${line[1]}\\n\\n${line[2]}\",\"source\":\"de\",\"target\":\"en\",\"confidence\":true}" | sed 's/.*"confidence":\([0-9.]*\).*/\1/' | xargs printf %.2f)" "the confidence of three lines"
    equal "{\"translatedText\":\"${said[0]}\"}" "$(ask "{\"q\":\"${line[0]}\",\"source\":\"de\",\"target\":\"en\"}")" "an answer without confidence"
    for value in '"confidence":false' '"confidence":null' '"confidence":7' '"confidence":"no"'; do
        equal "{\"translatedText\":\"${said[0]}\"}" "$(ask "{\"q\":\"${line[0]}\",\"source\":\"de\",\"target\":\"en\",$value}")" "$value"
    done
    equal '{"confidence":1.0,"translatedText":"a b"}' "$(ask '{"q":"a b","source":"de","target":"de","confidence":true}')" "a language to itself"
    equal '{"confidence":1.0,"translatedText":" {x} "}' "$(ask '{"q":" {x} ","source":"de","target":"en","confidence":true}')" "nothing to translate"
    equal '{"confidence":null' "$(ask '{"q":"a b","source":"en","target":"de","confidence":true}' | cut -d, -f1)" "a model that is not calibrated"
    equal '{"confidence":null' "$(ask '{"q":"a b","source":"fr","target":"de","confidence":true}' | cut -d, -f1)" "two models"
    equal 1 "$(curl -sS -d q=a -d source=de -d target=en -d confidence=1 "$at/translate" | grep -cE '^.{14}[01][.][0-9]*,')" "the confidence that a form asks for"
    grep -qE '<p id="sure"><b>Confidence: <span id="percent">[0-9]+</span> %' <<<"$(curl -sS -d q=a -d source=de -d target=en "$at/translator/en")" || fail "the form of the page has no confidence"
    grep -q '<p id="sure" hidden>' <<<"$(curl -sS -d q=a -d source=en -d target=de "$at/translator/en")" || fail "the form of the page has a confidence that it does not know"
    kill -TERM $server
    wait $server || fail "attend serve ends with $?"
    trap 'rm -rf "$work"' EXIT
else
    skipped "the confidence of answers: this attend has no server, or there is no curl"
fi

# Who has the calibration: copies, not models with other parameters.
"$attend" average calibrated calibrated -o mean
refuse 1 "the model has no calibration yet that could be checked" calibrate -m mean --source s --target t --check
refuse 1 "the model has no calibration yet that could be checked" calibrate -m m --source s --target t --check
refuse 2 "attend calibrate needs a model: attend calibrate MODEL, or -m MODEL" calibrate --source s --target t
refuse 2 "attend calibrate needs --source FILE and --target FILE" calibrate m --source s
refuse 2 "--check fits nothing, so there is no model to write: leave out -o" calibrate m --source s --target t --check -o x
refuse 2 "-o './m' is the model that is read; choose another name" calibrate m --source s --target t -o ./m
refuse 1 "'s' has 300 lines and 'target' has 500; they must be pairs" calibrate m --source s --target target
refuse 1 "there is no pair with a unit on both sides" calibrate m --source <(echo) --target <(echo)
"$attend" train --target t --model transformer-lm --hidden 4 --ffn 4 --layers 1 --heads 1 --updates 1 --output lm --quiet
refuse 1 "model 'transformer-lm' is a language model: it does not translate" calibrate lm --source s --target t
finish
