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

# turns NAME ALLOCATIONS: sets $from and $step: all of them fail, or some that are equally far apart.
turns()
{
    local most
    most=$(count ${SHORT:-40} 999999)
    [ "$1" != train-spm ] || most=$(count 5 400) # SentencePiece makes 130,000 for twenty lines
    step=$((($2 + most - 1) / most))
    random 1 $step
    from=$random
}

# attack NAME
attack()
{
    local mode allocations modes="once rest" reason="out of memory" from step before reported succeeded end
    # The loader of libraries, libmicrohttpd and the C library's threads do not always say why they failed.
    [ "$1" != serve ] || reason="out of memory|needs libmicrohttpd|cannot start"
    # The threads of SentencePiece's trainer end the process if they get no memory at all, which attend.h says.
    [ "$1" != train-spm ] || modes=once
    undisturbed "$1" env NO_MEMORY_COUNT="$work"/counted LD_PRELOAD="$work"/no_memory.so
    allocations=$(cat counted)
    : >accepted
    for mode in $modes; do
        turns "$1" "$allocations"
        # The first of each way to end is judged here, and those that end like it are only counted.
        while [ "$from" -le "$allocations" ]; do
            fresh
            (cd run && NO_MEMORY_TURNS="$from $step $allocations" NO_MEMORY_INPUT=$(input_of "$1") NO_MEMORY_REASON="^attend: .*($(reason_of "$1" "$reason"))" \
                exec env $([ $mode = once ] || echo NO_MEMORY_REST=1) $([ "$1" != compare ] || echo NO_MEMORY_LOOSE=1) LD_PRELOAD="$work"/no_memory.so "$attend" ${arguments[$1]}) &&
                read -r reported succeeded from code end <turn || { found "$1: the allocations from $from on cannot be tried"; return; }
            failed=$((failed + reported)) survived=$((survived + succeeded))
            [ "$from" != 0 ] || break
            before=$finds
            judge "$1" "allocation $from of $allocations ($mode)" "$reason"
            [ $finds != $before ] || echo "$end" >>accepted
            if [ "$code" = 0 ]; then survived=$((survived + 1)); else failed=$((failed + 1)); fi
            from=$((from + step))
        done
    done
}

for name; do attack "$name"; done
echo "$((failed + survived)) failing allocations in $# commands, $failed reported and $survived without effect: $finds finds"
[ $finds = 0 ]
