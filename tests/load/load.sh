#!/usr/bin/env bash
# load.sh ATTEND MODEL LINES SECONDS: attend serve under load on this machine, with a model from de to en and source lines of its own.
#   1. 256 connections for SECONDS: every answer has the bytes of attend translate; p50 and p99.
#   2. The throughput of 256 connections (wrk, if it is there) beside that of attend translate on the same lines, in turn, three times; and the
#      processor time of both for a line, which other work on the machine changes less.
#   3. 1,000 slow connections, and a healthy one from another address.
#   4. The memory of the server, after the first third and at the end.
# Exits with 1 if an answer is wrong, a connection is closed that was used, the healthy connection waits for more than 5 seconds, or memory grows, in a minute or more, by more
# than a tenth and 8 MB.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
attend=$(realpath "$1") model=$(realpath "$2") lines=$(realpath "$3") seconds=$4
work=$(mktemp -d)
server= slow=
trap 'for one in $server $slow; do kill $one 2>/dev/null || true; done; rm -rf "$work"' EXIT
failed=0
complain() { echo "FAILED: $*"; failed=1; }
start() {
    : >"$work/log"
    "$attend" serve -m de-en="$model" --port 0 "$@" 2>"$work/log" &
    server=$!
    for wait in $(seq 1200); do grep -q Ctrl-C "$work/log" && break; sleep 0.05; done
    at=$(sed -n 's|.*\(http://[^ ]*[0-9]\): .*|\1|p' "$work/log")
}
end() { kill -TERM $server; wait $server || complain "the server ends with $?"; server=; }
memory() { awk '/^VmRSS/ { print $2 }' /proc/$server/status; }
now() { date +%s.%N; }
used() { awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print 1000 * ($12 + $13) / hz }' /proc/$server/stat; } # ms of processor time
TIMEFORMAT='%U %S'

"$attend" translate -m "$model" <"$lines" >"$work/expected"
start --connections 300 --per-address 300 --queue 100000
sleep_part=$(awk -v s="$seconds" 'BEGIN { print s / 3 }')
(sleep "$sleep_part"; memory >"$work/first") &
node "$here/load.mjs" check "$at" "$lines" "$work/expected" 256 "$seconds" >"$work/check" || complain "answers are wrong"
sed 's/^/check: /' "$work/check"
again=$(sed -n 's/.* again //p' "$work/check") idle=$(curl -sS "$at/metrics" | sed -n 's/^attend_idle_connections_total //p')
[ "$again" -le "$idle" ] || complain "$again requests were sent again, but $idle connections were closed for not being used"
wait $!
first=$(cat "$work/first") last=$(memory)
echo "memory: $first kB after $sleep_part s, $last kB after $seconds s"
[ "$seconds" -lt 60 ] || [ $((last * 10)) -le $((first * 11 + 80000)) ] || complain "memory grows from $first to $last kB"

if [ "$seconds" -lt 10 ]; then
    echo "SKIPPED: throughput is measured from 10 seconds on"
elif command -v wrk >/dev/null; then
    python3 - "$lines" >"$work/ask.lua" <<'LUA'
import json, sys
bodies = [json.dumps({"q": line.rstrip("\n"), "source": "de", "target": "en"}) for line in open(sys.argv[1], encoding="utf-8")]
print("local bodies = {" + ",".join(json.dumps(body) for body in bodies) + "}")
print('local n = 0\nwrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"')
print('function request() n = n % #bodies + 1; return wrk.format(nil, "/translate", nil, bodies[n]) end')
LUA
    share=$(awk -v s="$seconds" 'BEGIN { s /= 3; print (s < 2 ? 2 : s > 20 ? 20 : int(s)) }')
    for round in 1 2 3; do
        count=$(wc -l <"$lines") begun=$(now)
        { time "$attend" translate -m "$model" <"$lines" >/dev/null; } 2>"$work/time"
        alone=$(awk -v a="$begun" -v b="$(now)" -v n="$count" 'BEGIN { printf "%.1f", n / (b - a) }')
        before=$(used)
        wrk -t1 -c256 -d"${share}s" --timeout 30s --latency -s "$work/ask.lua" "$at" >"$work/wrk"
        awk -v round=$round -v alone="$alone" -v ms="$(awk -v a="$before" -v b="$(used)" 'BEGIN { print b - a }')" \
            -v each="$(awk -v n="$count" '{ print 1000 * ($1 + $2) / n }' "$work/time")" '/requests in/ { n = $1 } /Requests\/sec/ { rate = $2 } /99%/ { p99 = $2 } /50%/ { p50 = $2 } /Non-2xx/ { bad = $NF }
            END { printf "wrk %d: %.1f lines/s, attend translate %.1f lines/s, ratio %.2f, p50 %s, p99 %s, refused %d; processor time %.3f and %.3f ms a line\n", round, rate, alone, rate / alone, p50, p99, bad, ms / n, each }' "$work/wrk"
    done
else
    echo "SKIPPED: wrk is not installed"
fi
end

start # with the default limits: 64 connections of an address
node "$here/load.mjs" slow "$at" 1000 $((seconds < 10 ? seconds + 4 : 14)) &
slow=$!
sleep 2
worst=0
for i in 1 2 3 4 5; do
    took=$(curl -sS --interface 127.0.0.2 --max-time 20 -o "$work/answer" -w '%{time_total}' -d "q=$(head -1 "$lines")" -d source=de -d target=en "$at/translate") || complain "a healthy connection fails"
    worst=$(awk -v a="$worst" -v b="$took" 'BEGIN { print (a > b ? a : b) }')
done
[ "$(cat "$work/answer")" = "{\"translatedText\":\"$(head -1 "$work/expected")\"}" ] || complain "a healthy connection gets $(cat "$work/answer")"
echo "slow: 1000 connections; 5 requests of a healthy one took $worst s at most"
awk -v a="$worst" 'BEGIN { exit !(a > 5) }' && complain "a healthy connection waited for $worst s"
wait $slow || true
slow=
end
exit $failed
