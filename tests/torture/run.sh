#!/usr/bin/env bash
# run.sh [NAME...]: attacks the command and the library, with every script of this folder or with the ones named.
#
# TORTURE=full (the default) runs the counts that SECURITY.md reports and takes hours; TORTURE=short takes about a minute
# for each script and is part of .ci/run. A script exits with 0, with 77 if something it needs is not there, or with
# anything else if it found something; the last line that it prints says what it counted. As many scripts run at the same
# time as there are cores (JOBS); what one prints appears when it has ended. Ends with "N passed, N failed".
set -u
cd "$(dirname "$0")"
export TORTURE=${TORTURE:-full} LC_ALL=C.UTF-8 NO_COLOR=1
case $TORTURE in full | short) ;; *) echo "run.sh: TORTURE is full or short, not '$TORTURE'" >&2; exit 2 ;; esac
[ $# -gt 0 ] || set -- $(ls *.sh | sed 's/\.sh$//' | grep -vx run)
for name; do
    [ -e "$name.sh" ] || { echo "run.sh: there is no attack '$name'" >&2; exit 2; }
done

logs=$(mktemp -d)
# An interrupt ends the attacks that are running, too.
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM

# attack NAME: runs the script, and shows what it printed; its summary goes to NAME.line.
attack()
{
    local begin=$SECONDS verdict
    { echo "-- $1 ($TORTURE)" && bash "$1.sh"; } >"$logs/$1" 2>&1
    case $? in 0) verdict=passed ;; 77) verdict=SKIPPED ;; *) verdict=FAILED ;; esac
    printf '%-8s %-12s %5d s  %s\n' "$verdict" "$1" $((SECONDS - begin)) "$(tail -n 1 "$logs/$1")" >"$logs/$1.line"
    cat "$logs/$1"
}

running=0
for name; do
    [ $running -lt "${JOBS:-$(nproc)}" ] || { wait -n; running=$((running - 1)); }
    attack "$name" &
    running=$((running + 1))
done
wait
for name; do cat "$logs/$name.line"; done | tee "$logs/lines"
passed=$(grep -c '^passed' "$logs/lines") skipped=$(grep -c '^SKIPPED' "$logs/lines")
failed=$(($# - passed - skipped))
echo "$passed passed, $failed failed$([ "$skipped" = 0 ] || echo ", $skipped skipped")"
[ "$failed" = 0 ]
