# attend train by several processes, which mpirun starts: the same files for any number of ranks.
. "$(dirname "$0")/support.bash"

if ! command -v mpirun >/dev/null; then
    skipped "mpirun is not installed, so nothing was trained by several processes"
    exit 77
fi
if OMPI_COMM_WORLD_SIZE=2 "$attend" train --source /dev/null --target /dev/null --output x 2>&1 | grep -q 'built without MPI'; then
    skipped "attend was built without MPI, so nothing was trained by several processes"
    exit 77
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Open MPI keeps some memory until the process ends.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"

awk 'BEGIN { srand(7); for (i = 0; i < 150; i++) { n = 1 + int(rand() * 4); s = t = ""
    for (w = 0; w < n; w++) { c = sprintf("%c", 97 + int(rand() * 8)); s = s (w ? " " : "") c; t = toupper(c) (w ? " " : "") t }
    print s >"source"; print t >"target" } }'
head -20 source >vs
head -20 target >vt
head -100 source >other
base="--source source --target target --batch-size 8 --threads 1 --quiet"

# ranks COUNT ARGUMENTS...: attend train by so many processes; what mpirun adds to their messages is left out.
ranks() {
    local count=$1
    shift
    mpirun --oversubscribe -np "$count" "$attend" train "$@" 2>&1
}
only_ours() {
    grep '^attend: ' said || true
}

# Dropout, a moving average, validations, an epoch whose last update has fewer slices; hard attention with its baseline.
transformer="--model transformer --hidden 16 --ffn 16 --layers 1 --heads 2 --dropout 0.2 --ema 0.9 --accumulate 8 --valid-source vs --valid-target vt --valid-every 3"
luong="--model luong --hidden 12 --normaliser hard --accumulate 5"
for name in transformer luong; do
    # shellcheck disable=SC2086
    "$attend" train $base ${!name} --updates 8 --output "$name.1" || fail "$name by one process"
    for count in 2 3; do
        # shellcheck disable=SC2086
        ranks $count $base ${!name} --updates 8 --output "$name.$count" >said || fail "$name by $count processes: $(cat said)"
        same_file "$name.1" "$name.$count"
        same_file "$name.1.state" "$name.$count.state"
    done
done

# A run goes on with another number of ranks.
# shellcheck disable=SC2086
{
    ranks 3 $base $transformer --updates 4 --output resumed >said || fail "4 updates: $(cat said)"
    ranks 2 $base $transformer --updates 7 --output resumed --resume >said || fail "7 updates: $(cat said)"
    "$attend" train $base $transformer --updates 8 --output resumed --resume
}
same_file transformer.1 resumed
same_file transformer.1.state resumed.state

# One message, of rank 0, that names the rank and what is wrong; no file.
# shellcheck disable=SC2086
{
    ! ranks 3 $base $luong --accumulate 2 --updates 2 --output x >said || fail "3 ranks train 2 slices"
    equal "attend: there are 3 ranks and 2 slices of an update (--accumulate): every rank needs a slice, so start at most 2 ranks or set --accumulate to 3 or more" \
        "$(only_ours)" "3 ranks for 2 slices"
    ! mpirun --oversubscribe -np 1 "$attend" train $base $luong --updates 2 --output x : \
        -np 1 "$attend" train $base $luong --updates 2 --output x --learning-rate 0.5 >said 2>&1 || fail "ranks with two learning rates"
    equal "attend: rank 1: rank 0 trains with --learning-rate 0.001, and this rank with --learning-rate 0.5; all ranks need the same settings and data" \
        "$(only_ours)" "ranks with other settings"
    ! mpirun --oversubscribe -np 1 "$attend" train $base $luong --updates 2 --output x : \
        -np 1 "$attend" train $base $luong --updates 2 --output x --source other >said 2>&1 || fail "ranks with other data"
    only_ours | grep -q '^attend: rank 1: ' || fail "ranks with other data: $(cat said)"
}
[ ! -e x ] && [ ! -e x.state ] && [ ! -e x.log.jsonl ] || fail "ranks that were refused leave files: $(ls x*)"

# A rank that hangs ends the run; the last state goes on to the same bits.
# shellcheck disable=SC2086
"$attend" train $base $luong --updates 60 --output whole
# shellcheck disable=SC2086
ranks 3 $base $luong --updates 1000000 --save-every 1 --rank-timeout 3 --output hanging >said &
for _ in $(seq 300); do
    [ ! -s hanging.state ] || break
    sleep 0.1
done
sleep 0.3
kill -STOP "$(pgrep -f -- "$attend train .*--output hanging" | tail -n 1)"
! wait $! || fail "a run with a rank that hangs ends well"
only_ours | grep -qE '^attend: rank [0-2] did not answer for 3 seconds$|^$' || fail "a rank that hangs: $(cat said)"
for _ in $(seq 100); do
    pgrep -f -- "$attend train .*--output hanging" >/dev/null || break
    sleep 0.1
done
! pgrep -f -- "$attend train .*--output hanging" >/dev/null || fail "a process of a run that ended is left"
done_updates=$("$attend" info --json hanging | sed -n 's/.*"update":\([0-9]*\).*/\1/p' | head -n 1)
if [ "${done_updates:-0}" -lt 60 ]; then
    # shellcheck disable=SC2086
    ranks 2 $base $luong --updates 60 --output hanging --resume >said || fail "resumed after a hanging rank: $(cat said)"
    same_file whole hanging
fi
finish
