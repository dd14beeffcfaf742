# The whole of doc/cluster.md's promises (make check-long): the same bytes for 1, 2, 3, 4, 5 and 8 ranks, of three kinds of
# models, after a rank was killed, by shared memory and by TCP between machines; and one message for every failure.
#   bash tests/ranks/matrix.sh path/to/attend [PART...]      parts: ranks, killed, failures, machines
. "$(dirname "$0")/../command/support.bash"
. "$here/ranks.bash"
. "$here/../ranks/machines.bash"
machines_dir=$work
trap 'machines_down; rm -rf "$work"' EXIT
shift
parts=${*:-ranks killed failures machines}

pairs 600 8
seq 1100 >numbers && head -c $((60 * 8 * 8)) numbers >pixels
{ printf '\x93NUMPY\x01\x00\x76\x00' && printf '%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (60, 8, 8), }" && cat pixels; } >pictures.npy
head -60 target >said_of_pictures
lines="--source source --target target --batch-size 8 --threads 1 --quiet --accumulate 8 --updates 200"
transformer="$lines --model transformer --hidden 16 --ffn 32 --layers 1 --heads 2 --dropout 0.1 --ema 0.99"
luong="$lines --model luong --hidden 16 --normaliser hard"
show="--source pictures.npy --target said_of_pictures --batch-size 2 --threads 1 --quiet --accumulate 8 --updates 200
    --model show-attend-tell --image-channels 1 --conv 4x3s2,6x3 --hidden 12 --embedding 8 --attention 8"
# Many messages at a time, which are sent while the backward pass runs.
large="--source source --target target --batch-size 64 --threads 1 --quiet --accumulate 8 --updates 6
    --model transformer --hidden 96 --ffn 384 --layers 2 --heads 4"

sum() {
    sha256sum <"$1" | cut -c1-16
}

# trained NAME: the model of a run of one process, for the others to be compared with.
trained() {
    # shellcheck disable=SC2086
    [ -e "$1.1" ] || "$attend" train ${!1} --output "$1.1" || fail "$1 by one process"
}

# same_as_one NAME FILE: the model and its state are those of one process.
same_as_one() {
    same_file "$1.1" "$2"
    same_file "$1.1.state" "$2.state"
}

ranks_part() {
    local name count
    for name in transformer luong show large; do
        trained $name
        for count in 2 3 4 5 8; do
            # shellcheck disable=SC2086
            together $count train ${!name} --output "$name.$count" >said 2>&1 || fail "$name by $count ranks: $(cat said)"
            same_as_one $name "$name.$count"
        done
        echo "$name: 1, 2, 3, 4, 5 and 8 ranks: $(sum "$name.1")"
    done
}

# wait_for FILE: until it is there.
wait_for() {
    for _ in $(seq 1200); do
        [ ! -s "$1" ] || return 0
        sleep 0.05
    done
    fail "there is no $1: $(cat said)"
}

# A rank of 4 is killed in the middle, the first and the last of them; the run goes on with 3 ranks, and with 5.
killed_part() {
    local victim count
    trained luong
    for victim in 0 3; do
        rm -f killed killed.state killed.log.jsonl
        # shellcheck disable=SC2086
        together 4 train $luong --save-every 5 --output killed >said 2>&1 &
        wait_for killed.state
        kill -KILL "$(pgrep -f -- "^$attend train .*--output killed" | sort -n | sed -n "$((victim + 1))p")"
        ! wait $! || fail "a run whose rank was killed ends well"
        gone "^$attend train .*--output killed"
        for count in 3 5; do
            cp killed "again.$count" && cp killed.state "again.$count.state" && cp killed.log.jsonl "again.$count.log.jsonl"
            # shellcheck disable=SC2086
            together $count train $luong --save-every 5 --output "again.$count" --resume >said 2>&1 || fail "resumed by $count ranks: $(cat said)"
            same_file luong.1 "again.$count"
        done
        echo "rank $victim of 4 killed, resumed by 3 and by 5 ranks: $(sum again.3), $(sum again.5)"
    done
}

failures_part() {
    local stopped
    trained luong
    # A rank that hangs; rank 0, too.
    for stopped in 1 0; do
        rm -f hung hung.*
        # shellcheck disable=SC2086
        together 3 train $luong --updates 1000000 --save-every 1000 --rank-timeout 4 --output hung >said 2>&1 &
        wait_for hung.log.jsonl
        sleep 2
        kill -STOP "$(pgrep -f -- "^$attend train .*--output hung" | sort -n | sed -n "$((stopped + 1))p")"
        ! wait $! || fail "a run with a rank that hangs ends well"
        gone "^$attend train .*--output hung"
        ours said | grep -qxE 'attend: rank [0-2] did not answer for 4 seconds' || fail "rank $stopped hangs: $(cat said)"
    done
    # No space for rank 0's files: the first save is there, and the run goes on from it.
    rm -f full full.*
    # shellcheck disable=SC2086
    together 2 train $luong --updates 20 --output full >said 2>&1 || fail "20 updates: $(cat said)"
    before=$(sum full.state)
    # shellcheck disable=SC2086
    ! mpirun --oversubscribe -np 1 bash -c 'ulimit -f 4; exec "$@"' limited "$attend" train $luong --output full --resume : \
        -np 1 "$attend" train $luong --output full --resume >said 2>&1 || fail "a run without space ends well"
    equal 1 "$(ours said | wc -l)" "the messages of a run without space"
    ours said | grep -q "^attend: cannot write 'full" || fail "no space: $(cat said)"
    equal "$before" "$(sum full.state)" "the state after a save without space"
    # shellcheck disable=SC2086
    together 3 train $luong --output full --resume >said 2>&1 || fail "after a save without space: $(cat said)"
    same_file luong.1 full
    # Ranks of two builds, whose only difference is the version that they say.
    sed 's/0\.1\.0/0.1.9/g' "$attend" >other && chmod +x other
    # shellcheck disable=SC2086
    refused 2 "rank 1: this is attend 0.1.9, and rank 0 runs 0.1.0; all need the same build" \
        -np 1 "$attend" train $luong --output x : -np 1 ./other train $luong --output x
    refused 2 "rank 1: this is attend 0.1.9, and rank 0 runs 0.1.0; all need the same build" \
        -np 1 "$attend" translate -m luong.1 -i source : -np 1 ./other translate -m luong.1 -i source
    # shellcheck disable=SC2086
    refused 2 "rank 1: it uses the kernels 'plain', and rank 0 '$(kernels)'; ATTEND_ISA=$(kernels) selects them where the processor has them" \
        -np 1 "$attend" train $luong --output x : -np 1 -x ATTEND_ISA=plain "$attend" train $luong --output x
    # Other data, another seed.
    head -500 source >s2 && head -500 target >t2
    # shellcheck disable=SC2086
    mpirun --oversubscribe -np 1 "$attend" train $luong --output x : \
        -np 1 "$attend" train $luong --output x --source s2 --target t2 >said 2>&1 && fail "ranks with other data train"
    equal 1 "$(ours said | grep -c '^attend: rank 1: ')" "the messages of ranks with other data"
    # shellcheck disable=SC2086
    refused 2 "rank 1: rank 0 trains with --seed 1, and this rank with --seed 2; all ranks need the same settings and data" \
        -np 1 "$attend" train $luong --output x : -np 1 "$attend" train $luong --output x --seed 2
    [ ! -e x ] && [ ! -e x.state ] || fail "ranks that were refused leave files"
    echo "failures: each with one message, and nothing lost"
}

# kernels: the name of those in use, or of those that compute the same bits.
kernels() {
    "$attend" list --verbose 2>&1 >/dev/null | sed -n 's/avx512 /avx2 /; s/.*, \([a-z0-9]*\) kernels$/\1/p'
}

machines_part() {
    local name count how
    if ! machines_possible; then
        skipped "$machines_why, so nothing was computed by several machines"
        return
    fi
    machines_up 3
    for name in transformer large; do
        trained $name
        for count in 2 3 5 8; do
            # shellcheck disable=SC2086
            machines_mpirun -np $count "$attend" train ${!name} --output "machines.$name.$count" >said 2>&1 ||
                fail "$name by $count ranks on 3 machines: $(cat said)"
            same_as_one $name "machines.$name.$count"
        done
    done
    # By TCP alone, inside of a machine, too; and a link of 100 Mbit/s.
    for how in "" 100mbit; do
        machines_up 2 $how
        # shellcheck disable=SC2086
        machines_mpirun -np 4 -x OMPI_MCA_btl=tcp,self "$attend" train $large --output tcp --overwrite >said 2>&1 || fail "by TCP alone: $(cat said)"
        same_as_one large tcp
    done
    machines_up 3
    "$attend" translate -m transformer.1 --threads 1 --beam 4 -i source -o one.out
    machines_mpirun -np 5 "$attend" translate -m transformer.1 --threads 1 --beam 4 -i source -o machines.out >said 2>&1 ||
        fail "a translation by 3 machines: $(cat said)"
    same_file one.out machines.out
    # A process of another machine is killed.
    # shellcheck disable=SC2086
    machines_mpirun -np 3 "$attend" train $transformer --updates 1000000 --save-every 5 --output lost >said 2>&1 &
    wait_for lost.state
    kill -KILL "$(pgrep -f -- "^$attend train .*--output lost" | sort -n | tail -n 1)"
    ! wait $! || fail "a run on machines whose rank was killed ends well"
    gone "^$attend train .*--output lost"
    # shellcheck disable=SC2086
    machines_mpirun -np 2 "$attend" train $transformer --output lost --resume >said 2>&1 || fail "resumed on machines: $(cat said)"
    same_file transformer.1 lost
    echo "machines: 2, 3, 5 and 8 ranks on 3 of them: $(sum machines.transformer.8), $(sum machines.large.8)"
}

for part in $parts; do
    "${part}_part"
done
finish
