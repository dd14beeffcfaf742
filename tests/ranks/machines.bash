# "Machines" on one computer: network namespaces on one bridge, each with a name and an address of its own. Needs root, ip and tc.
# After machines_up, `machines COUNT PROGRAM...` runs mpirun with so many processes, spread over them by TCP.
machines_name=attend$$

# machines_up NUMBER [RATE]: with links of that rate in both directions, such as 100mbit; none: as fast as it gets.
machines_up() {
    local i rate=${2:-}
    machines_down
    machines_number=$1
    ip netns add "$machines_name-switch" && ip -n "$machines_name-switch" link add bridge type bridge &&
        ip -n "$machines_name-switch" link set bridge up || return 1
    : >"$machines_dir/hosts"
    for i in $(seq "$1"); do
        ip netns add "$machines_name-$i" &&
            ip -n "$machines_name-$i" link add wire type veth peer name "wire$i" netns "$machines_name-switch" &&
            ip -n "$machines_name-switch" link set "wire$i" master bridge up &&
            ip -n "$machines_name-$i" address add "10.77.0.$i/24" dev wire &&
            ip -n "$machines_name-$i" link set wire up && ip -n "$machines_name-$i" link set lo up || return 1
        if [ -n "$rate" ]; then # both ends: what the machine sends, and what the switch sends to it
            tc -n "$machines_name-$i" qdisc add dev wire root tbf rate "$rate" burst 256kb latency 50ms &&
                tc -n "$machines_name-switch" qdisc add dev "wire$i" root tbf rate "$rate" burst 256kb latency 50ms || return 1
        fi
        echo "10.77.0.$i slots=16" >>"$machines_dir/hosts"
    done
    # What mpirun starts the other machines' daemons by: AGENT ADDRESS COMMAND
    printf '#!/bin/sh\nhost=%s-${1##*.}; shift\nexec ip netns exec "$host" unshare -u sh -c "hostname $host; $*"\n' \
        "$machines_name" >"$machines_dir/agent"
    chmod +x "$machines_dir/agent"
}

machines_down() {
    local i
    for i in $(seq "${machines_number:-0}") switch; do
        ip netns delete "$machines_name-$i" 2>/dev/null || true
    done
    machines_number=0
}

# machines_mpirun ARGUMENTS...: mpirun on the first machine, processes on all of them in turn.
machines_mpirun() {
    ip netns exec "$machines_name-1" unshare -u sh -c 'hostname "$0"; exec "$@"' "$machines_name-1" \
        mpirun --oversubscribe --hostfile "$machines_dir/hosts" --map-by node --bind-to none \
        --mca plm_rsh_agent "$machines_dir/agent" --mca oob_tcp_if_include 10.77.0.0/24 \
        --mca btl_tcp_if_include 10.77.0.0/24 "$@"
}

# machines_possible: whether they can be made here; else machines_why says why not.
machines_possible() {
    machines_why=
    if [ "$(id -u)" != 0 ] || ! command -v ip >/dev/null || ! command -v tc >/dev/null; then
        machines_why="network namespaces need root, ip and tc (iproute2)"
    elif ! machines_up 1 100mbit 2>/dev/null; then
        machines_why="network namespaces, veth or tbf are not available"
    fi
    machines_down
    [ -z "$machines_why" ]
}
