#!/usr/bin/env bash
# Runs the tests of a build directory and ends with the line "N passed, N failed"; fails if any test did.
set -u
log=$1/tests.log
ctest --test-dir "$1" --output-on-failure -j2 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
awk '/tests passed,/ {
         failed = $4
         total = $NF
     }
     END {
         if (total == 0)
             status = 1
         printf "%d passed, %d failed\n", total - failed, failed
         exit status
     }' "$log" || status=1
exit "$status"
