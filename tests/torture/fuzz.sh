#!/usr/bin/env bash
# fuzz.sh: 1,000,000 inputs for every fuzzer. The short form runs the seeds and the corpora of the tree only, because
# `make fuzz` is a step of its own in .ci/run.
set -u
. "$(dirname "$0")/support.bash"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
command -v clang >/dev/null || { echo "SKIPPED: the fuzzers need clang"; exit 77; }
make -C "$top" fuzz FUZZ_RUNS="$(count 0 1000000)" | tee "$log"
status=${PIPESTATUS[0]}
awk '/nothing found in/ { fuzzers++; inputs += $(NF - 1) } /FAILED/ { finds++ } END { printf "%d fuzzers, %d inputs, %d finds\n", fuzzers + finds, inputs, finds }' "$log"
exit "$status"
