# attend serve: LibreTranslate's interface with its messages, the limits, the bytes of attend translate under 32 connections,
# slow and broken connections, HTTPS, an end that answers what was asked, and models that are read again.
. "$(dirname "$0")/support.bash"
command -v curl >/dev/null || { skipped "attend serve: there is no curl"; exit 77; }

awk 'BEGIN { srand(5); for (i = 0; i < 400; i++) { n = 2 + int(rand() * 3); s = t = ""
    for (w = 0; w < n; w++) { c = sprintf("%c", 97 + int(rand() * 8)); s = s (w ? " " : "") c; t = c (w ? " " : "") t }
    print s >"source"; print t >"target" } }'
small="--embedding 8 --hidden 16 --attention 8 --maxout 8 --batch-size 20 --learning-rate 0.01 --quiet"
"$attend" train --source source --target target --output model $small --epochs 3
"$attend" train --source source --target source --output other $small --epochs 3
"$attend" train --target source --model transformer-lm --hidden 4 --ffn 4 --layers 1 --heads 1 --updates 1 --output lm --quiet

servers=()
trap 'kill -9 "${servers[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
# start ARGUMENTS...: a server on a free port; sets `server`, its process, and `at`, its address.
start() {
    : >serve.log # what the server before said is not read
    "$attend" serve --port 0 "$@" 2>serve.log &
    server=$!
    servers+=($server)
    for wait in $(seq 1200); do
        grep -q 'Ctrl-C' serve.log && break
        kill -0 $server 2>/dev/null || fail "attend serve $* ends: $(cat serve.log)"
        sleep 0.05
    done
    at=$(sed -n 's|.*\(https*://[^ ]*[0-9]\): .*|\1|p' serve.log)
    [ -n "$at" ] || fail "attend serve $* says $(cat serve.log)"
    port=${at##*:}
}
# end [CODE]: by the TERM signal.
end() {
    local got=0
    kill -TERM $server
    wait $server || got=$?
    equal "${1:-0}" $got "exit code of attend serve ($(cat serve.log))"
}
# asked STATUS BODY ARGUMENTS...: what curl gets. (grep -q ends at the first match, and a curl in a pipe before it would fail.)
asked() {
    local status=$1 body=$2 got
    shift 2
    got=$(curl -sS -k --max-time 60 -w ' %{http_code}' "$@") || fail "curl $*: exit code $?"
    equal "$body $status" "$got" "curl $*"
}
json() { # STATUS ANSWER BODY [PATH]
    asked "$1" "$2" -H 'Content-Type: application/json' -d "$3" "$at${4:-/translate}"
}
error() { # STATUS MESSAGE BODY [PATH]
    json "$1" "{\"error\":\"$2\"}" "$3" "${4:-/translate}"
}
metric() { curl -sS "$at/metrics" | sed -n "s/^attend_$1 //p"; }
# until NAME TEST...: waits until the metric is so, as in until waiting_lines -gt 0.
until_metric() {
    for wait in $(seq 1500); do
        [ "$(metric "$1")" "$2" "$3" ] && return
        sleep 0.02
    done
    fail "attend_$1 is never $2 $3"
}

# ---- The lesson, with no model
start
grep -q 'no model, the lesson alone' serve.log || fail "attend serve without a model says $(cat serve.log)"
question() { asked "$1" "$2" -d "$3" "$at/lesson/answer"; }
grep -q '<h2>A worked example</h2>' <<<"$(curl -sS "$at/lesson/en")" || fail "/lesson/en has no worked example"
grep -q '<html lang="zh">' <<<"$(curl -sS -H 'Accept-Language: zh-CN,zh' "$at/")" || fail "/ is not in the language that the browser asks for"
for file in lesson.css lesson.js plays.js en.json zh.json; do
    curl -sS "$at/lesson/$file" | cmp - "$here/../../src/lesson/page/$file" || fail "/lesson/$file is another file"
done
grep -qi "^content-security-policy: default-src 'none'; script-src 'self'" <<<"$(curl -sSi "$at/lesson")" || fail "/lesson has no policy"
asked 404 '{"error":"There is nothing at this address"}' "$at/lesson/other"
grep -q '"output":\[\[1,2.95769' <<<"$(curl -sS -d '{"ask":"attend","score":"dot","query":[[1,3,2],[1,1,3],[1,2,1]]}' "$at/lesson/answer")" || fail "I am good"
question 400 '{"error":"`heads` must be a whole number from 1 to 16"}' '{"ask":"attend","query":[1],"heads":0}'
for number in $(seq 20); do
    curl -sS -d '{"ask":"learn","task":"beer","model":"rnn-attention","update":'$((25 * number))'}' "$at/lesson/answer" -o answer.$number &
    asking[$number]=$!
done
wait "${asking[@]}"
equal 20 "$(cat answer.* | grep -o '"losses"' | wc -l)" "answers to 20 questions at a time"
asked 200 '[]' "$at/languages"
asked 200 '[]' -d q=a "$at/detect"
[[ $(curl -sS "$at/frontend/settings") == *'"target":{"code":"en","name":"English"}'* ]] || fail "/frontend/settings without a model"
for path in translate attention alternatives explorer; do
    asked 400 '{"error":"auto is not supported"}' -d q=a -d source=auto -d target=en "$at/$path"
    asked 400 '{"error":"de is not supported"}' -d q=a -d source=de -d target=en "$at/$path"
done
end

# ---- Runs of training
mkdir runs
cp model.log.jsonl runs/first.log.jsonl
grep -v '"event":"end"' model.log.jsonl | sed '1s/"run":{/"run":{"minutes":"10",/; 1s/"epochs":[^,]*,//; s/"seconds":[0-9.e-]*/"seconds":20/' >runs/minutes.log.jsonl
start --watch other.log.jsonl --watch runs
got=$(curl -sS "$at/watch/runs")
[[ $got == '[{"name":"other","update":60.0,"epoch":3.0,"share":1.0,"left":null,"ended":"epochs",'*'{"name":"first",'* ]] || fail "/watch/runs says $got"
grep -qE '"name":"minutes","update":60[.]0,"epoch":3[.]0,"share":[0-9.]*,"left":(580|560|540)[.]0,"ended":null' <<<"$got" || fail "a run of ten minutes: /watch/runs says $got"
grep -q '<tr><th scope="row">first</th><td>60</td>' <<<"$(curl -sS "$at/watch/en")" || fail "/watch has no table of runs"
asked 404 '{"error":"There is nothing at this address"}' "$at/watch/other"
asked 404 '{"error":"There is nothing at this address"}' "$at/translator/en"
end
refuse 2 "--watch needs a log of training, OUTPUT.log.jsonl, or a folder of such logs, not 'model'" serve --watch model
refuse 1 "cannot read 'nowhere/a.log.jsonl': No such file or directory" serve --watch nowhere/a.log.jsonl

# ---- Words of a script without blanks are its units
sed 's/ //g; s/a/我/g; s/b/很/g; s/c/好/g; s/d/你/g; s/e/大/g; s/f/小/g; s/g/人/g; s/h/天/g' target >chinese
"$attend" train --source source --target chinese --target-vocab char --output en-zh $small --epochs 3
start -m en-zh=en-zh
got=$(curl -sS -d 'q=a b' -d 'translation=很我' -d source=en -d target=zh "$at/attention")
[[ $got == *'"target":[["","很"],["","我"]]'* ]] || fail "/attention says $got"
got=$(curl -sS -d 'q=a b' -d start=很 -d alternatives=2 -d source=en -d target=zh "$at/alternatives")
grep -qE '"word":"[^"]","start":"很[^"]"' <<<"$got" || fail "/alternatives says $got"
end

# ---- What it does not start with
refuse 2 "--model: 'deen' is not a pair of languages such as de-en, or pt-BR:en; a file with = in its name is given as ./FILE" serve -m deen=model
refuse 2 "--model: de-en= needs the file of a model" serve -m de-en=
refuse 2 "'model' would translate from de to de; the languages of a model differ" serve -m de-de=model
refuse 2 "'model' and 'other' are both for de to en; a pair of languages has one model" serve -m de-en=model -m de-en=other
refuse 2 "the languages of 'model' are codes of letters and digits, such as de or pt-BR" serve -m d.e-en=model
refuse 2 "--require-key needs the keys: --api-keys" serve -m model --require-key
refuse 2 "HTTPS needs both --cert and --key" serve -m model --cert model
refuse 1 "'lm' is a language model; a server needs models that translate" serve -m lm
refuse 1 "cannot read 'nothing': No such file or directory" serve -m de-en=nothing
printf '# nothing\n\n' >keys
refuse 1 "'keys' has no API key; a key is a line of its own" serve -m model --api-keys keys

# ---- Of a long line the first units are read, as by attend translate
refuse 2 "--max-source takes a whole number from 1 to 268435456, not '0'" serve -m model --max-source 0
line='a b c d e f g h'
start -m de-en=model --max-source 3
asked 200 "{\"translatedText\":\"$("$attend" translate -m model --max-source 3 --quiet <<<"$line")\"}" -d "q=$line" -d source=de -d target=en "$at/translate"
got=$(curl -sS -d "q=$line" -d 'translation=c b a' -d source=de -d target=en "$at/attention")
grep -q '"weights"' <<<"$got" && ! grep -qE '\[[3-7],[0-9]' <<<"$got" || fail "/attention looks at words that are not read: $got"
end
[ "$("$attend" translate -m model --max-source 3 --quiet <<<"$line")" != "$("$attend" translate -m model <<<"$line")" ] || fail "the rest of the line changes nothing"

# ---- Pictures, in the requests; what could name a file is refused
cp "$here/../../fuzz/seeds/rgb.png" rgb.png
for i in 1 2 3 4; do echo rgb.png; done >pictures
printf 'red ball\nred ball\nred ball\nred ball\n' >captions
sees="--model show-attend-tell --source pictures --target captions --conv 4x3s2 --embedding 4 --hidden 4 --attention 4 --batch-size 2 --quiet"
if "$attend" train $sees --image-size 8x8 --updates 3 --output sees 2>said; then
    "$attend" train $sees --updates 1 --output keeps
    refuse 1 "'keeps' reads pictures of any size; a server needs a model that was trained with --image-size HEIGHTxWIDTH" serve -m image-en=keeps
    picture="data:image/png;base64,$(base64 -w0 rgb.png)"
    start -m image-de=sees -m de-en=model --pivot de --char-limit 100000
    asked 200 "{\"translatedText\":\"$(echo rgb.png | "$attend" translate sees)\"}" --data-urlencode "q=$picture" -d source=image -d target=de "$at/translate"
    json 200 "{\"translatedText\":[\"$(echo rgb.png | "$attend" translate sees)\",\"\"]}" "{\"q\":[\"$picture\",\"\"],\"source\":\"image\",\"target\":\"de\"}"
    asked 200 "{\"translatedText\":\"$(echo rgb.png | "$attend" translate sees | "$attend" translate model)\"}" --data-urlencode "q=$picture" -d source=image -d target=en "$at/translate"
    no='{"error":"Invalid request: q must be a picture, data:image/png;base64, or data:image/jpeg;base64, and its bytes in base64"}'
    for bad in rgb.png /etc/passwd "$picture | rgb.png" "$picture[0]" "data:image/png;base64," $'data:image/png;base64,AAAA\nrgb.png'; do
        asked 400 "$no" --data-urlencode "q=$bad" -d source=image -d target=de "$at/translate"
    done
    asked 400 '{"error":"html format is not supported"}' --data-urlencode "q=$picture" -d source=image -d target=de -d format=html "$at/translate"
    asked 500 "{\"error\":\"Cannot translate text: line 1: 'data:image/png' is a truncated PNG picture\"}" \
        --data-urlencode "q=data:image/png;base64,$(head -c 45 rgb.png | base64 -w0)" -d source=image -d target=de "$at/translate"
    asked 200 '[{"confidence":100.0,"language":"de"}]' -d q=a "$at/detect"
    asked 400 '{"error":"Invalid request: this model reads pictures, and this is for texts"}' -d q=data:image/png\;base64,AAAA -d translation=a -d source=image -d target=de "$at/attention"
    end
    start -m image-de=sees
    asked 400 '{"error":"auto is not supported"}' -d q=a -d source=auto -d target=de "$at/translate"
    asked 200 '[]' -d q=a "$at/detect"
    end
else
    grep -q 'built without' said || fail "training on pictures says $(cat said)"
    skipped "attend serve with pictures: built without libpng"
fi

# ---- Every address
start -m de-en=model -m en-de=other --char-limit 40 --batch-limit 64
head -64 source >in
"$attend" translate -m model <in >out
first=$(head -1 in) said=$(head -1 out)
form=(-d "q=$first" -d source=de -d target=en "$at/translate")
asked 200 "{\"translatedText\":\"$said\"}" "${form[@]}"
asked 200 "{\"translatedText\":\"$said\"}" -d api_key=any "${form[@]}"
asked 200 "{\"translatedText\":\"$said\"}" -F "q=$first" -F source=de -F target=en -F format=text "$at/translate"
asked 200 "{\"translatedText\":\"$said\"}" -X POST "$at/translate?q=${first// /+}&source=de&target=en"
json 200 "{\"translatedText\":\"$said\"}" "{\"q\":\"$first\",\"source\":\"de\",\"target\":\"en\",\"format\":\"text\",\"api_key\":\"\",\"more\":[1]}"
json 200 "{\"translatedText\":[\"$said\",\"\"]}" "{\"q\":[\"$first\",\"\"],\"source\":\"de\",\"target\":\"en\",\"api_key\":null}"
json 200 '{"translatedText":"same — text"}' '{"q":"same — text","source":"en","target":"en"}'
# Lines of a text are translated each for itself, and keep their ends.
json 200 "{\"translatedText\":\"$said\\r\\n\\n$said\\n\"}" "{\"q\":\"$first\\r\\n\\n$first\\n\",\"source\":\"de\",\"target\":\"en\"}"
asked 200 "{\"translatedText\":\"$said\\n$said\"}" --data-urlencode "q=$first"$'\r\n'"$first"$'\r\n' -d source=de -d target=en "$at/translate"
# Of HTML the text between tags, and nothing else.
each() { echo "$1" | "$attend" translate -m model; }
json 200 "{\"translatedText\":\"<p id='a'>$(each 'a b')</p><p>$(each 'c d')</p>\"}" '{"q":"<p id='"'a'"'>a b</p><p>c&#32;d</p>","source":"de","target":"en","format":"html"}'
# The best of a beam, and what else it found.
best=$(head -1 in | "$attend" translate -m model --beam 3 --n-best 3 | sed 's/^0 ||| \(.*\) ||| F0.*/"\1"/' | paste -sd,)
json 200 "{\"alternatives\":[${best#*,}],\"translatedText\":${best%%,*}}" "{\"q\":\"$first\",\"source\":\"de\",\"target\":\"en\",\"alternatives\":2}"
json 200 "{\"alternatives\":[[${best#*,}]],\"translatedText\":[${best%%,*}]}" "{\"q\":[\"$first\"],\"source\":\"de\",\"target\":\"en\",\"alternatives\":\"2\"}"
asked 200 '[{"code":"de","name":"German","targets":["de","en"]},{"code":"en","name":"English","targets":["de","en"]}]' "$at/languages"
asked 200 '{"status":"ok"}' "$at/health"
asked 200 '{"charLimit":40,"frontendTimeout":500,"apiKeys":false,"keyRequired":false,"suggestions":false,"filesTranslation":false,"supportedFilesFormat":[],"language":{"source":{"code":"auto","name":"Auto Detect"},"target":{"code":"en","name":"English"}}}' "$at/frontend/settings"
grep -q '"title":"LibreTranslate"' <<<"$(curl -sS "$at/spec")" || fail "/spec has no title"
asked 403 '{"error":"Suggestions are disabled on this server."}' -d q=a "$at/suggest"
asked 403 '{"error":"Files translation are disabled on this server."}' -F file=@in "$at/translate_file"
asked 405 '{"error":"The method is not allowed for this address"}' "$at/translate"
asked 405 '{"error":"The method is not allowed for this address"}' -d q=a "$at/languages"
asked 404 '{"error":"There is nothing at this address"}' "$at/nothing"
asked 200 "" -X OPTIONS "$at/translate"
for header in 'Access-Control-Allow-Origin: \*' 'Access-Control-Allow-Headers: Authorization, Content-Type' \
    'Access-Control-Allow-Methods: GET, POST' 'Access-Control-Max-Age: 1728000' 'Content-Type: application/json'; do
    for path in /health /nothing; do
        grep -qx "$header" <<<"$(curl -sSi "$at$path" | tr -d '\r')" || fail "$path lacks $header"
        checks=$((checks + 1))
    done
done
# The translator's page and what it asks: words with their weights, what else could stand at a place, and the explorer.
grep -q '<option value="de">German</option>' <<<"$(curl -sS "$at/")" || fail "the page does not list the languages"
grep -q '<html lang="zh">' <<<"$(curl -sS -H 'Accept-Language: zh-CN,zh' "$at/")" || fail "the page is not in the language that the browser asks for"
for file in translator.css translator.js en.json zh.json; do
    curl -sS "$at/translator/$file" | cmp - "$here/../../src/serve/page/$file" || fail "/translator/$file is another file"
done
asked 404 '{"error":"There is nothing at this address"}' "$at/translator/other"
grep -q ">$said</div>" <<<"$(curl -sS "${form[@]:0:6}" "$at/")" || fail "the form of the page does not translate"
got=$(curl -sS -d 'q=a b' -d source=en -d target=en "$at/translator/en")
grep -q '>a b</div>' <<<"$got" || fail "the form of the page does not return a text in its own language: $got"
grep -q '<form id="explore"[^>]* hidden>' <<<"$got" || fail "the page offers to explain what no model did"
grep -q '<p id="status" role="status">zz is not supported</p>' <<<"$(curl -sS -d q=a -d source=zz -d target=en "$at/translator/en")" || fail "the page does not say what was wrong"
for q in 5 '[1]' '["a",{}]' null '[]' '""'; do # what is no text ended the server
    got=$(curl -sS -H 'Content-Type: application/json' -d "{\"q\":$q,\"source\":\"de\",\"target\":\"en\"}" "$at/translator/en")
    grep -q '<p id="status" role="status">Invalid request: ' <<<"$got" || fail "the page does not refuse $q: $got"
    checks=$((checks + 1))
done
got=$(curl -sS -d 'q=a b c' -d 'translation=c b a' -d source=de -d target=en "$at/attention")
[[ $got == '{"source":[["","a"],[" ","b"],[" ","c"]],"target":[["","c"],[" ","b"],[" ","a"]],"weights":[[[0,'* ]] || fail "/attention says $got"
start=$(printf 'a b c\tc\n' | "$attend" translate -m model --prefix)
got=$(curl -sS -d 'q=a b c' -d start=c -d alternatives=3 -d source=de -d target=en "$at/alternatives")
[[ $got == "{\"translatedText\":\"$start\",\"alternatives\":[{\"word\":\""*'"start":"c '* ]] || fail "/alternatives says $got, not $start"
equal 3 "$(grep -o '"probability"' <<<"$got" | wc -l)" "alternatives of a word"
grep -q '"source":"a \\u003cb","target":"c b"' <<<"$(curl -sS -d 'q=a <b' -d 'translation=c b' -d source=de -d target=en "$at/explorer")" || fail "/explorer does not have the line"
for path in attention explorer alternatives; do
    asked 400 '{"error":"Invalid request: request (41) exceeds text limit (40)"}' -d "q=$(printf 'a%.0s' $(seq 41))" -d start= -d translation=a -d source=de -d target=en "$at/$path"
done
asked 400 '{"error":"Invalid request: missing start parameter"}' -d q=a -d source=de -d target=en "$at/alternatives"
asked 400 '{"error":"Invalid request: missing translation parameter"}' -d q=a -d source=de -d target=en "$at/attention"
asked 400 '{"error":"Invalid request: alternatives parameter must be <= 10"}' -d q=a -d start= -d alternatives=11 -d source=de -d target=en "$at/alternatives"
# Both models have the same source words, so that neither language is likelier.
json 200 '[{"confidence":50.0,"language":"de"},{"confidence":50.0,"language":"en"}]' "{\"q\":\"$first\"}" /detect
json 200 "{\"detectedLanguage\":{\"confidence\":50.0,\"language\":\"de\"},\"translatedText\":\"$said\"}" "{\"q\":\"$first\",\"source\":\"auto\",\"target\":\"en\"}"

# ---- What is refused, and how
error 400 'Invalid request: missing q parameter' '{}'
error 400 'Invalid request: missing q parameter' '{"q":"","source":"de","target":"en"}'
error 400 'Invalid request: missing q parameter' '{"q":[],"source":"de","target":"en"}'
error 400 'Invalid request: missing q parameter' '{"q":null}' /detect
error 400 'Invalid request: missing source parameter' '{"q":"a","target":"en"}'
error 400 'Invalid request: missing target parameter' '{"q":"a","source":"de","target":""}'
error 400 'Invalid request: q parameter is not a text or an array of texts' '{"q":[1],"source":"de","target":"en"}'
error 400 'Invalid request: alternatives parameter is not a number' '{"q":"a","source":"de","target":"en","alternatives":"x"}'
error 400 'Invalid request: alternatives parameter must be <= 5' '{"q":"a","source":"de","target":"en","alternatives":6}'
error 400 'zz is not supported' '{"q":"a","source":"zz","target":"en"}'
error 400 'zz is not supported' '{"q":"a","source":"de","target":"zz"}'
error 400 'xml format is not supported' '{"q":"a","source":"de","target":"en","format":"xml"}'
error 400 'Invalid request: request (41) exceeds text limit (40)' "{\"q\":[\"a\",\"$(printf 'ä%.0s' $(seq 41))\"],\"source\":\"de\",\"target\":\"en\"}"
error 400 'Invalid request: request (65) exceeds text limit (64)' "{\"q\":[\"a\"$(printf ',"a"%.0s' $(seq 64))],\"source\":\"de\",\"target\":\"en\"}"
for body in '{' '[]' '"q"' '' '{"q":"a"} x' '{"q":"\ud800"}'; do
    error 400 'Invalid JSON format' "$body"
done
asked 400 '{"error":"Invalid request: missing q parameter"}' -H 'Content-Type: text/plain' -d q=a "$at/translate"
asked 400 '{"error":"Invalid request: the multipart form is truncated or damaged"}' -H 'Content-Type: multipart/form-data; boundary=x' -d '--x' "$at/translate"
head -c 1100000 /dev/zero | tr '\0' a >large
large='{"error":"Invalid request: request exceeds body limit (1048576 bytes)"}'
asked 413 "$large" -H 'Expect:' --data-binary @large "$at/translate"
asked 413 "$large" -H 'Expect:' -H 'Transfer-Encoding: chunked' --data-binary @large "$at/translate"
# raw BYTES: what the server answers to bytes that no client sends; the first line of it.
raw() {
    exec 5<>/dev/tcp/127.0.0.1/"$port"
    (trap '' PIPE; printf "$1" >&5) 2>/dev/null || true # the server may have answered and closed it before the end
    timeout 20 head -1 <&5 | tr -d '\r' || true
    exec 5>&-
}
equal "HTTP/1.1 400 Bad Request" "$(raw 'POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n')" "a negative length"
equal "HTTP/1.1 400 Bad Request" "$(raw 'POST /translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n')" "a broken chunk"
raw 'nonsense\r\n\r\n' >/dev/null
raw '\x00\xff\x16\x03\r\n\r\n' >/dev/null
raw 'GET / HTTP/9.9\r\n\r\n' >/dev/null
raw "GET /$(printf 'a%.0s' $(seq 40000)) HTTP/1.1\r\n\r\n" >/dev/null
asked 200 '{"status":"ok"}' "$at/health"

# ---- The same bytes, whoever else asks
batch=$(sed 's/.*/"&"/' in | paste -sd,)
before=$(metric searches_total)
json 200 "{\"translatedText\":[$(sed 's/.*/"&"/' out | paste -sd,)]}" "{\"q\":[$batch],\"source\":\"de\",\"target\":\"en\"}"
equal $((before + 1)) "$(metric searches_total)" "searches for 64 texts"
cat source source | sed -n 1,480p >many
"$attend" translate -m model <many | sed 's/.*/{"translatedText":"&"}/' >expected
export at
mkdir answers
nl -ba -w1 -s' ' many | xargs -P 32 -d '\n' -n 15 bash -c '
    for line; do
        number=${line%% *}
        curl -sS -d "q=${line#* }" -d source=de -d target=en "$at/translate" >answers/$number
        echo >>answers/$number
    done' _
for i in $(seq 480); do cat answers/$i; done >got
same_file expected got
[ "$(metric lines_total)" -ge $((480 + 64)) ] || fail "only $(metric lines_total) lines were counted"

# ---- Tags inside sentences, by a dictionary that turns the order of the words around: which word comes from which is certain
awk 'BEGIN { srand(7); split("red big old new car dog house tree", e); split("rot gross alt neu Auto Hund Haus Baum", d)
    for (i = 0; i < 1500; i++) { n = 2 + int(rand() * 4); s = t = ""
        for (w = 0; w < n; w++) { k = 1 + int(rand() * 8); s = s (w ? " " : "") e[k]; t = d[k] (w ? " " : "") t }
        print s >"english"; print t >"german" } }'
"$attend" train --source english --target german --output reverse --embedding 16 --hidden 32 --attention 16 --maxout 16 --batch-size 20 --learning-rate 0.01 --epochs 8 --quiet
equal "Haus Hund gross rot ||| 0-3 1-2 2-1 3-0" "$(echo 'red big dog house' | "$attend" translate -m reverse --alignment hard)" "the dictionary"
dictionary() { # ANSWER TEXT
    asked 200 "{\"translatedText\":\"${1//\"/\\\"}\"}" --data-urlencode "q=$2" -d source=en -d target=de -d format=html "$at/translate"
}
other_at=$at other_server=$server other_port=$port
start -m en-de=reverse --beam 2
dictionary '<p>Haus <b>Hund gross</b> rot</p>' '<p>red <b>big dog</b> house</p>'
dictionary '<a href="?a=1&b=2">Haus</a> <b><i class="x y">Hund</i> gross</b> <i>rot</i>' '<i>red</i> <b>big <i class="x y">dog</i></b> <a href="?a=1&b=2">house</a>'
dictionary '<ul><li>Hund <b>rot</b><li>Auto neu<br>alt</ul>' '<ul><li><b>red</b> dog<li>old<br>new car</ul>'
dictionary 'Hund <code>big tree</code> rot<pre>red dog</pre>' 'red <code>big tree</code> dog<pre>red dog</pre>'
dictionary '<p translate="no">red dog</p>Hund <span translate="no">red</span> rot' '<p translate="no">red dog</p>red <span translate="no">red</span> dog'
dictionary '<b>Hund rot' '<b>red dog'
# What is kept; and a number that the model would change.
kept() { asked 200 "{\"translatedText\":\"$1\"}" --data-urlencode "q=$2" -d source=en -d target=de "$at/translate"; }
kept 'Auto {name} rot' 'red {name} car'
kept 'Hund %1$s rot' 'red %1$s dog'
kept 'Auto 17 rot' 'red 17 car'
kept 'Hund https://x.y/z?a=b rot' 'red https://x.y/z?a=b dog'
kept '{a}: %s' '{a}: %s'
dictionary 'Hund <b>https://x.y/?a=1&amp;b=2 Auto</b> rot' 'red <b>car https://x.y/?a=1&amp;b=2</b> dog'
end
# From English to French by way of German.
awk '{ s = ""; for (i = NF; i > 0; i--) s = s (i < NF ? " " : "") toupper($i); print s }' german >french
"$attend" train --source german --target french --output upper --embedding 16 --hidden 32 --attention 16 --maxout 16 --batch-size 20 --learning-rate 0.01 --epochs 8 --quiet
start -m en-de=reverse -m de-fr=upper
asked 400 '{"error":"French (fr) is not available as a target language from English (en)"}' -d 'q=red dog' -d source=en -d target=fr "$at/translate"
end
start -m en-de=reverse -m de-fr=upper --pivot de --queue 3
asked 200 '[{"code":"de","name":"German","targets":["de","fr"]},{"code":"en","name":"English","targets":["de","en","fr"]},{"code":"fr","name":"French","targets":["fr"]}]' "$at/languages"
asked 200 '{"translatedText":"ROT <b>GROSS</b> {x} HUND"}' --data-urlencode 'q=red <b>big</b> {x} dog' -d source=en -d target=fr -d format=html "$at/translate"
json 200 '{"translatedText":["ROT HUND\nNEU AUTO","ALT HUND"]}' '{"q":["red dog\nnew car","old dog"],"source":"en","target":"fr"}'
asked 200 '{"translatedText":"Hund rot"}' -d 'q=red dog' -d source=en -d target=de "$at/translate"
asked 400 '{"error":"Invalid request: two models translate this pair, and attention is that of one"}' \
    -d 'q=red dog' -d translation=ROT -d source=en -d target=fr "$at/attention"
end
refuse 2 "no model translates from 'xx', the --pivot" serve -m en-de=reverse --pivot xx
start -m en-de=reverse --no-placeholders
asked 200 "{\"translatedText\":\"$(echo 'red 17 car' | "$attend" translate -m reverse)\"}" -d 'q=red 17 car' -d source=en -d target=de "$at/translate"
end
at=$other_at server=$other_server port=$other_port

# ---- Connections that say nothing, and half a request, hold up nobody
slow=()
for i in $(seq 40); do
    exec {descriptor}<>/dev/tcp/127.0.0.1/"$port"
    slow+=($descriptor)
    [ $((i % 2)) = 0 ] || printf 'POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nq=' >&$descriptor
done
until_metric connections -ge 40
asked 200 "{\"translatedText\":\"$said\"}" --max-time 5 "${form[@]}"
for descriptor in "${slow[@]}"; do exec {descriptor}>&-; done
end

# ---- Time limits
start -m de-en=model --timeout 1 --beam 2
exec 5<>/dev/tcp/127.0.0.1/"$port"
(for i in $(seq 40); do printf 'G' >&5 || exit 0; sleep 0.2; done) 2>/dev/null &
trickle=$!
before=$SECONDS
timeout 30 cat <&5 >/dev/null || true
exec 5>&-
[ $((SECONDS - before)) -le 8 ] || fail "a connection that trickles is open for $((SECONDS - before)) seconds"
kill $trickle 2>/dev/null || true
equal 1 "$(metric cut_connections_total)" "connections that were cut"
end

# ---- The queue, its limits, and an end that answers what was asked
# 900 lines of some 30 words, which take seconds with a beam of 100.
long=$(for i in $(seq 23); do cat source; done | awk '{ printf "%s%s", $0, NR % 10 ? " " : "\n" }' | sed -n 1,900p)
start -m de-en=model --char-limit 100000 --queue 1000 --beam 100 --timeout 120
asked 400 '{"error":"Invalid request: request (1200 lines) exceeds text limit (1000 lines)"}' --data-urlencode "q=$(cat source source source)" -d source=de -d target=en "$at/translate"
curl -sS --data-urlencode "q=$long" -d source=de -d target=en "$at/translate" >answer &
asking=$!
until_metric waiting_lines -gt 500
asked 429 '{"error":"Slowdown: too many texts are waiting to be translated"}' --data-urlencode "q=$(cat source source | sed -n 1,740p)" -d source=de -d target=en "$at/translate"
asked 200 "{\"translatedText\":\"$(head -1 in | "$attend" translate -m model --beam 100)\"}" "${form[@]:0:6}" "$at/translate"
until_metric waiting_lines -gt 0
end
wait $asking || fail "the last request was not answered"
equal "{\"translatedText\":\"$("$attend" translate -m model --beam 100 <<<"$long" | sed ':a;N;$!ba;s/\n/\\n/g')\"}" "$(cat answer)" "the answer of a server that ends"
! curl -s "$at/health" >/dev/null || fail "a server that has ended answers"
start -m de-en=model --char-limit 100000 --beam 100 --timeout 0.2
asked 503 '{"error":"The server is busy: there was no time to translate this; try again later"}' --data-urlencode "q=$long" -d source=de -d target=en "$at/translate"
kill -TERM $server
wait $server || true

# ---- Models that are read again, while requests come
cp model now
start -m de-en=now
one="{\"translatedText\":\"$(head -1 out)\"}" two="{\"translatedText\":\"$(head -1 in | "$attend" translate -m other)\"}"
[ "$one" != "$two" ] || fail "both models say the same"
(while [ ! -e enough ]; do curl -sS -d "q=$first" -d source=de -d target=en "$at/translate"; echo; done) >stream 2>&1 &
asking=$!
for round in 1 2 3 4 5 6; do
    if [ $((round % 2)) = 1 ]; then cp other next; else cp model next; fi
    mv next now
    kill -HUP $server
    until_metric reloads_total -eq $round
done
asked 200 "$one" "${form[@]:0:6}" "$at/translate"
touch enough
wait $asking
! grep -vxF -e "$one" -e "$two" stream || fail "while models were read, a request was answered with the lines above"
echo nonsense >now
kill -HUP $server
for wait in $(seq 600); do grep -q 'stay as they were' serve.log && break; sleep 0.05; done
grep -q "^attend: the models stay as they were: 'now' is " serve.log || fail "a broken model: $(cat serve.log)"
asked 200 "$one" "${form[@]:0:6}" "$at/translate"
end

# ---- Isolation: a link that leads out of the folder of the models is not followed, and a user is left behind
isolation=$(grep -o '[a-zL ]*isolated[^;]*' serve.log)
mkdir inside outside
cp model inside/now
cp other outside/model
start -m de-en=inside/now
case $isolation in *Landlock*)
    ln -sf ../outside/model inside/now
    kill -HUP $server
    for wait in $(seq 600); do grep -q 'stay as they were' serve.log && break; sleep 0.05; done
    grep -qx "attend: the models stay as they were: cannot read 'inside/now': Permission denied" serve.log || fail "a link to the outside: $(cat serve.log)"
    asked 200 "$one" "${form[@]:0:6}" "$at/translate"
    ;;
*) skipped "attend serve: this kernel has no Landlock" ;;
esac
end
start -m de-en=inside/now --no-isolation
grep -q '; not isolated;' serve.log || fail "--no-isolation: $(cat serve.log)"
[ "$isolation" = " not isolated" ] || grep -q '^Seccomp:.0$' /proc/$server/status || fail "--no-isolation has a filter"
end
if [ "$(id -u)" = 0 ] && id nobody >/dev/null 2>&1; then
    chmod 755 . && chmod 644 model
    start -m de-en=model --user nobody
    equal "$(id -u nobody)" "$(awk '/^Uid:/ { print $2 }' /proc/$server/status)" "whose server it is"
    asked 200 "$one" "${form[@]:0:6}" "$at/translate"
    end
else
    refuse 1 "cannot become the user '$(id -un)': Operation not permitted; only root can" serve -m model --user "$(id -un)" --port 0
fi
refuse 2 "there is no user 'nobody at all'" serve -m model --user 'nobody at all' --port 0

# ---- Sentences
if "$attend" serve -m model --sentences --check --port 0 2>said; then
    start -m de-en=model --sentences
    line() { echo "$1" | "$attend" translate -m model; }
    json 200 "{\"translatedText\":\"$(line 'a b?') $(line 'C d!')  $(line 'e f')\\n $(line 'g h')\"}" '{"q":"a b? C d!  e f\n g h","source":"de","target":"en"}'
    end
else
    grep -q "ICU\|libicuuc" said || fail "--sentences: $(cat said)"
    skipped "attend serve --sentences: $(cat said)"
fi

# ---- Keys
printf '# who may\nfirst-key\n  second-key  \n' >keys
start -m de-en=model --api-keys keys
body="\"q\":\"$first\",\"source\":\"de\",\"target\":\"en\""
json 200 "$one" "{$body}"
json 200 "$one" "{$body,\"api_key\":\"second-key\"}"
for key in first first-key2 '# who may' second; do
    error 403 'Invalid API key' "{$body,\"api_key\":\"$key\"}"
done
end
start -m de-en=model --api-keys keys --require-key
error 400 'Please contact the server operator to get an API key' "{$body}"
error 400 'Please contact the server operator to get an API key' "{\"q\":\"a\",\"api_key\":\"\"}" /detect
question 400 '{"error":"Please contact the server operator to get an API key"}' '{"ask":"positions","kind":"rope","length":1,"size":2}'
asked 403 '{"error":"Invalid API key"}' -d '{}' "$at/lesson/answer?api_key=first"
grep -q '"output"' <<<"$(curl -sS -d '{"ask":"attend","query":[[1,2]]}' "$at/lesson/answer?api_key=first-key")" || fail "a question with a key is not answered"
json 200 "$one" "{$body,\"api_key\":\"first-key\"}"
asked 200 '{"status":"ok"}' "$at/health"
end

# ---- HTTPS
if command -v openssl >/dev/null; then
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost 2>/dev/null
    start -m de-en=model --cert cert.pem --key key.pem
    [[ $at == https://* ]] || fail "the address is $at"
    asked 200 "$one" "${form[@]:0:6}" "$at/translate"
    ! curl -sk --tls-max 1.1 "$at/health" >/dev/null 2>&1 || fail "TLS 1.1 is taken"
    end
    refuse 1 "HTTPS cannot be started: 'cert.pem' and 'cert.pem' are not a certificate and its private key in PEM form" serve -m model --port 0 --cert cert.pem --key cert.pem
else
    skipped "attend serve with HTTPS: there is no openssl"
fi
finish
