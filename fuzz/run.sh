#!/usr/bin/env bash
# run.sh BUILD: runs every fuzzer of the build directory, JOBS (2) at a time: for FUZZ_SECONDS seconds each (20), or for
# FUZZ_RUNS inputs if that is set. Inputs are random; FUZZ_SEED=N, a number, repeats them, apart from those of fuzz_state,
# whose runs depend on the clock. fuzz_NAME starts from the files *.NAME of fuzz/seeds, tests/ref and examples, only small ones,
# because large ones make every run slow, and from the corpus that earlier runs found, fuzz/corpus/NAME.tar.gz.
# FUZZ_ONLY="NAME NAME" runs only those. Prints the findings and then "N passed, N failed".
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)/fuzz
if [ -n "${FUZZ_RUNS:-}" ]; then limit=-runs=$FUZZ_RUNS; else limit=-max_total_time=${FUZZ_SECONDS:-20}; fi
seed=${FUZZ_SEED:+-seed=$FUZZ_SEED}

export UBSAN_OPTIONS=print_stacktrace=1
# Less memory that waits before it is used again, and shorter stacks of who allocated it: more inputs in the same time.
export ASAN_OPTIONS=quarantine_size_mb=16:malloc_context_size=5
# Names and values that the sources have as texts, for libFuzzer to put into inputs.
grep -ohE '"[a-z0-9_:-]{1,30}"' "$top"/cli/*.c "$top"/cli/compare/*.c "$top"/src/{attention,models,score,serve,store,text,train}/*.c | sort -u >"$build/words"

# fuzz NAME: prints one line, and the report if something was found.
fuzz()
{
    local name=fuzz_$1 corpus=$build/corpus_$1 log=$build/$1.log
    [ -z "$seed" ] || rm -rf "$corpus"
    mkdir -p "$corpus"
    find "$top/fuzz/seeds" "$top/tests/ref" "$top/examples" -name "*.$1" -size -16k -exec cp {} "$corpus" \;
    [ ! -e "$top/fuzz/corpus/$1.tar.gz" ] || tar -xzf "$top/fuzz/corpus/$1.tar.gz" -C "$corpus"
    if "$build/$name" $limit $seed -max_len=16384 -timeout=60 -rss_limit_mb=2048 -dict="$build/words" -artifact_prefix="$build/$name-" \
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
for name in ${FUZZ_ONLY:-$(basename -s .c "$top"/fuzz/fuzz_*.c | sed 's/^fuzz_//')}; do
    [ ${#jobs[@]} -lt "${JOBS:-2}" ] || settle
    fuzz "$name" &
    jobs+=($!)
done
while [ ${#jobs[@]} -gt 0 ]; do
    settle
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
