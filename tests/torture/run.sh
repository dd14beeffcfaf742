#!/usr/bin/env bash
# run.sh [NAME...]: attacks the command and the library, with every script of this folder or with the ones named.
#
# TORTURE=full (the default) runs the counts that SECURITY.md reports and takes hours; TORTURE=short takes about a minute
# for each script and is part of .ci/run. A script exits with 0, with 77 if something it needs is not there, or with
# anything else if it found something; the last line that it prints says what it counted. Ends with "N passed, N failed".
set -u
cd "$(dirname "$0")"
export TORTURE=${TORTURE:-full} LC_ALL=C.UTF-8 NO_COLOR=1
case $TORTURE in full | short) ;; *) echo "run.sh: TORTURE is full or short, not '$TORTURE'" >&2; exit 2 ;; esac
[ $# -gt 0 ] || set -- $(ls *.sh | sed 's/\.sh$//' | grep -vx run)

log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0 lines=()
for name; do
    begin=$SECONDS
    echo "-- $name ($TORTURE)"
    bash "$name.sh" 2>&1 | tee "$log"
    case ${PIPESTATUS[0]} in
    0) passed=$((passed + 1)) verdict=passed ;;
    77) skipped=$((skipped + 1)) verdict=SKIPPED ;;
    *) failed=$((failed + 1)) verdict=FAILED ;;
    esac
    lines+=("$(printf '%-8s %-12s %5d s  %s' "$verdict" "$name" $((SECONDS - begin)) "$(tail -n 1 "$log")")")
done
printf '%s\n' "${lines[@]}"
echo "$passed passed, $failed failed$([ "$skipped" = 0 ] || echo ", $skipped skipped")"
[ "$failed" = 0 ]
