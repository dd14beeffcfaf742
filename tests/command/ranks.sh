# attend train by several processes, which mpirun starts: the same files for any number of ranks.
. "$(dirname "$0")/support.bash"
. "$here/ranks.bash"

pairs 150 4
head -20 source >vs
head -20 target >vt
head -100 source >other
base="--source source --target target --batch-size 8 --threads 1 --quiet"

# ranks COUNT ARGUMENTS...: attend train by so many processes, its messages on stdout.
ranks() {
    local count=$1
    shift
    together "$count" train "$@" 2>&1
}

# Dropout, a moving average, validations, an epoch whose last update has fewer slices; hard attention with its baseline.
transformer="--model transformer --hidden 16 --ffn 16 --layers 1 --heads 2 --dropout 0.2 --ema 0.9 --accumulate 8 --valid-source vs --valid-target vt --valid-every 3"
luong="--model luong --hidden 12 --normaliser hard --accumulate 5"
# Large enough for several messages, which are sent while the backward pass runs.
large="--model transformer --hidden 96 --ffn 256 --layers 1 --heads 2 --batch-size 100 --accumulate 3"
for name in transformer luong large; do
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
    refused 2 "there are 3 ranks and 2 slices of an update (--accumulate): every rank needs a slice, so start at most 2 ranks or set --accumulate to 3 or more" \
        -np 3 "$attend" train $base $luong --accumulate 2 --updates 2 --output x
    refused 2 "rank 1: rank 0 trains with --learning-rate 0.001, and this rank with --learning-rate 0.5; all ranks need the same settings and data" \
        -np 1 "$attend" train $base $luong --updates 2 --output x : -np 1 "$attend" train $base $luong --updates 2 --output x --learning-rate 0.5
    refused 2 "rank 1: no option '--no-such'; attend train --help shows those there are" \
        -np 1 "$attend" train $base $luong --updates 2 --output x : -np 1 "$attend" train $base $luong --updates 2 --output x --no-such
    ! mpirun --oversubscribe -np 1 "$attend" train $base $luong --updates 2 --output x : \
        -np 1 "$attend" train $base $luong --updates 2 --output x --source other >said 2>&1 || fail "ranks with other data"
    ours said | grep -q '^attend: rank 1: ' || fail "ranks with other data: $(cat said)"
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
ours said | grep -qxE 'attend: rank [0-2] did not answer for 3 seconds' || fail "a rank that hangs: $(cat said)"
gone "$attend train .*--output hanging"
done_updates=$("$attend" info --json hanging | sed -n 's/.*"update":\([0-9]*\).*/\1/p' | head -n 1)
if [ "${done_updates:-0}" -lt 60 ]; then
    # shellcheck disable=SC2086
    ranks 2 $base $luong --updates 60 --output hanging --resume >said || fail "resumed after a hanging rank: $(cat said)"
    same_file whole hanging
fi
finish
