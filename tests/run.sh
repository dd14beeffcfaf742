#!/usr/bin/env bash
# run.sh BUILD [CTEST-ARGUMENT...]: runs the tests of a build directory and ends with the line "N passed, N failed", and
# ", N skipped" if tests or checks inside of tests were skipped, which it names; fails if any test did.
set -u
build=$1
shift
log=$build/tests.log
# Without a limit of its own ctest ends a test after 25 minutes, which is less than an emulator or a busy machine may need.
ctest --test-dir "$build" --output-on-failure --timeout 14400 -j2 "$@" 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
# A whole program skipped is a test that did not pass; a check skipped inside of a program is counted beside.
grep -ahE '^SKIPPED: |^\[ +SKIPPED +\] [a-z_0-9]+$' "$build/Testing/Temporary/LastTest.log" | sort -u >"$log.skipped"
cat "$log.skipped"
awk -v skips="$(wc -l <"$log.skipped")" '
    /tests passed,/ {
        failed = $4
        total = $NF
    }
    /\*\*\*Skipped/ {
        whole++
    }
    END {
        printf "%d passed, %d failed", total - failed - whole, failed
        if (skips > 0)
            printf ", %d skipped", skips
        print ""
        exit total == 0
    }' "$log" || status=1
exit "$status"
