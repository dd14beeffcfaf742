# attend serve under the load of 256 connections for a few seconds, and beside 1,000 slow ones: tests/load/load.sh in its short form.
. "$(dirname "$0")/support.bash"
for tool in node curl; do command -v $tool >/dev/null || { skipped "attend serve under load: there is no $tool"; exit 77; }; done

awk 'BEGIN { srand(5); for (i = 0; i < 400; i++) { n = 2 + int(rand() * 3); s = t = ""
    for (w = 0; w < n; w++) { c = sprintf("%c", 97 + int(rand() * 8)); s = s (w ? " " : "") c; t = c (w ? " " : "") t }
    print s >"source"; print t >"target" } }'
"$attend" train --source source --target target --output model --model bahdanau --embedding 8 --hidden 16 --attention 8 --maxout 8 --batch-size 20 --learning-rate 0.01 --epochs 3 --quiet
load="$here/../load"
bash "$load/load.sh" "$attend" model source 3 >said 2>&1 || fail "under load: $(cat said)"
grep -q '^check: requests [1-9][0-9]* wrong 0 ' said || fail "under load: $(cat said)"
grep -q '^slow: 1000 connections' said || fail "with slow connections: $(cat said)"
checks=$((checks + 2))

# A wrong answer is noticed.
"$attend" serve -m de-en=model --port 0 2>log &
server=$!
trap 'kill $server 2>/dev/null || true; rm -rf "$work"' EXIT
for wait in $(seq 1200); do grep -q Ctrl-C log && break; sleep 0.05; done
"$attend" translate -m model <source | sed '7s/$/ x/' >expected
! node "$load/load.mjs" check "$(sed -n 's|.*\(http://[^ ]*[0-9]\): .*|\1|p' log)" source expected 8 1 >said || fail "a wrong answer is not noticed: $(cat said)"
grep -q '^WRONG: ' said || fail "the wrong answer is not shown: $(cat said)"
kill -TERM $server
wait $server
finish
