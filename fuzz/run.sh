#!/usr/bin/env bash
# run.sh BUILD SECONDS: runs every fuzzer of the build directory for SECONDS, two at a time. fuzz_NAME starts from the *.NAME
# files of fuzz/seeds and tests/ref, only small ones, because large ones make every run slow. Prints the findings and then
# "N passed, N failed".
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)/fuzz
seconds=$2

# fuzz NAME: prints one line, and the report if something was found.
fuzz()
{
    local name=$1 corpus=$build/corpus_$1 log=$build/$1.log
    mkdir -p "$corpus"
    find "$top/fuzz/seeds" "$top/tests/ref" -name "*.${name#fuzz_}" -size -16k -exec cp {} "$corpus" \;
    if "$build/$name" -max_total_time="$seconds" -max_len=16384 -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$build/$name-" \
        -print_final_stats=1 "$corpus" >"$log" 2>&1; then
        echo "$name: nothing found in $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs"
    else
        tail -n 60 "$log"
        echo "$name: FAILED; the input is $(ls -t "$build/$name"-* | head -n 1)"
        return 1
    fi
}

passed=0 failed=0 jobs=()
settle()
{
    if wait "${jobs[0]}"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    jobs=("${jobs[@]:1}")
}
for source in "$top"/fuzz/fuzz_*.c; do
    [ ${#jobs[@]} -lt 2 ] || settle
    fuzz "$(basename "$source" .c)" &
    jobs+=($!)
done
while [ ${#jobs[@]} -gt 0 ]; do
    settle
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
