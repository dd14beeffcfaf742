# attend serve under the load of 256 connections for a few seconds, and beside 1,000 slow ones: tests/load/load.sh in its short form; in the
# long tests for an hour. Then malformed requests, ATTEND_MALFORMED of them (3000).
. "$(dirname "$0")/support.bash"
for tool in node curl; do command -v $tool >/dev/null || { skipped "attend serve under load: there is no $tool"; exit 77; }; done

awk 'BEGIN { srand(5); for (i = 0; i < 400; i++) { n = 2 + int(rand() * 3); s = t = ""
    for (w = 0; w < n; w++) { c = sprintf("%c", 97 + int(rand() * 8)); s = s (w ? " " : "") c; t = c (w ? " " : "") t }
    print s >"source"; print t >"target" } }'
"$attend" train --source source --target target --output model --model bahdanau --embedding 8 --hidden 16 --attention 8 --maxout 8 --batch-size 20 --learning-rate 0.01 --epochs 3 --quiet
load="$here/../load"
bash "$load/load.sh" "$attend" model source $([ -n "${ATTEND_LONG:-}" ] && echo 3600 || echo 3) >said 2>&1 || fail "under load: $(cat said)"
grep -q '^check: requests [1-9][0-9]* wrong 0 ' said || fail "under load: $(cat said)"
grep -q '^slow: 1000 connections' said || fail "with slow connections: $(cat said)"
checks=$((checks + 2))

# Malformed requests, then good ones that are answered as ever. A wrong answer is noticed.
"$attend" serve -m de-en=model --port 0 2>log &
server=$!
trap 'kill $server 2>/dev/null || true; rm -rf "$work"' EXIT
for wait in $(seq 1200); do grep -q Ctrl-C log && break; sleep 0.05; done
at=$(sed -n 's|.*\(http://[^ ]*[0-9]\): .*|\1|p' log)
"$attend" translate -m model <source >right
node "$load/load.mjs" broken "$at" "$(sed -n 1p source)" "$(sed -n 1p right)" "${ATTEND_MALFORMED:-3000}" 60 >said || fail "after malformed requests: $(cat said log)"
grep -q '"400":[1-9]' said || fail "malformed requests are not refused: $(cat said)"
! node "$load/load.mjs" broken "$at" "$(sed -n 1p source)" other 10 1 >said || fail "a wrong answer after malformed requests is not noticed: $(cat said)"
checks=$((checks + 3))
sed '7s/$/ x/' right >expected
! node "$load/load.mjs" check "$at" source expected 8 1 >said || fail "a wrong answer is not noticed: $(cat said)"
grep -q '^WRONG: ' said || fail "the wrong answer is not shown: $(cat said)"
kill -TERM $server
wait $server
finish
