#!/usr/bin/env bash
# allocation.sh [NAME...]: lets each allocation of each command fail (no_memory.c), alone and with all that follow.
#
# No command may crash, and one that fails says that it is out of memory; files are the old or the new ones, and a
# training that is resumed ends with the bytes of an undisturbed one. TORTURE=short takes a sample of the allocations.
set -u
cd "$(dirname "$0")"
. ./support.bash
. ../cases.bash
. ./faults.bash
build release
source=$PWD/no_memory.c
enter
cc -shared -fPIC -O1 -o no_memory.so "$source" -ldl || exit 1
make_start
[ $# -gt 0 ] || set -- $(commands | sed 's/:.*//')
failed=0 survived=0

# turns NAME ALLOCATIONS: prints which of them fail: all, or some that are equally far apart.
turns()
{
    local most step
    most=$(count ${SHORT:-3} 999999)
    [ "$1" != train-spm ] || most=$(count 5 400) # SentencePiece makes 130,000 for twenty lines
    step=$((($2 + most - 1) / most))
    random 1 $step
    seq $random $step "$2"
}

# attack NAME
attack()
{
    local n mode allocations modes="once rest" reason="out of memory"
    # The loader of libraries, libmicrohttpd and the C library's threads do not always say why they failed.
    [ "$1" != serve ] || reason="out of memory|needs libmicrohttpd|cannot start"
    # The threads of SentencePiece's trainer end the process if they get no memory at all, which attend.h says.
    [ "$1" != train-spm ] || modes=once
    undisturbed "$1" env NO_MEMORY_COUNT="$work"/counted LD_PRELOAD="$work"/no_memory.so
    allocations=$(cat counted)
    for mode in $modes; do
        for n in $(turns "$1" "$allocations"); do
            disturb "$1" env NO_MEMORY_AT="$n" $([ $mode = once ] || echo NO_MEMORY_REST=1) LD_PRELOAD="$work"/no_memory.so
            judge "$1" "allocation $n of $allocations ($mode)" "$reason"
            if [ $code = 0 ]; then survived=$((survived + 1)); else failed=$((failed + 1)); fi
        done
    done
}

for name; do attack "$name"; done
echo "$((failed + survived)) failing allocations in $# commands, $failed reported and $survived without effect: $finds finds"
[ $finds = 0 ]
