#!/usr/bin/env bash
# threads.sh: eight threads call all of attend.h at the same time (threads.c), built with ThreadSanitizer: no report, and the
# results that each call has alone.
set -u
cd "$(dirname "$0")"
. ./support.bash
program=$PWD/threads.c
enter
echo 'int main(void) { return 0; }' >empty.c
if ! cc -fsanitize=thread empty.c -o empty 2>/dev/null || ! { ./empty || setarch -R ./empty; } 2>/dev/null; then
    echo "SKIPPED: this machine has no ThreadSanitizer"
    exit 77
fi
# Its shadow memory needs addresses that some kernels give to others.
fixed=$(./empty 2>/dev/null || echo "setarch -R")
build tsan -DAT_TSAN=ON
for name in $(grep -oE '^AT_API .*\bat_[a-z0-9_]+\(' "$top/include/attend.h" | grep -oE 'at_[a-z0-9_]+\(' | tr -d '('); do
    grep -q "\b$name(" "$program" || found "threads.c does not call $name"
done
cc -std=gnu17 -O1 -g -fsanitize=thread -I "$top/include" "$program" -o threads -L "$build" -lattend -Wl,-rpath,"$build" -lpthread || exit 1
rounds=$(count 2 30)
TSAN_OPTIONS="exitcode=66 halt_on_error=0" $fixed ./threads "$rounds" >said 2>reports || found "threads exits with $?: $(grep FOUND said)"
reports=$(grep -c "WARNING: ThreadSanitizer" reports)
[ "$reports" = 0 ] || found "$reports reports of ThreadSanitizer, the first: $(sed -n '/WARNING/,/^$/p' reports | head -n 40)"
echo "$(tail -n 1 said), $rounds rounds: $reports reports, $finds finds"
[ $finds = 0 ]
