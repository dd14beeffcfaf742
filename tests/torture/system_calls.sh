#!/usr/bin/env bash
# system_calls.sh [NAME...]: lets each system call of each command fail (fail_call.c): on files, for memory, for threads.
#
# A command says what failed, or goes on to the same result; files are the old or the new ones, no temporary file is
# left, and a training that is resumed ends with the bytes of an undisturbed one. TORTURE=short takes a sample of the calls.
set -u
cd "$(dirname "$0")"
. ./support.bash
. ../cases.bash
. ./faults.bash
[ "$(uname -m)" = x86_64 ] || { echo "SKIPPED: fail_call.c knows the registers of x86-64 only"; exit 77; }
build release
source=$PWD/fail_call.c
enter
cc -O1 -o fail_call "$source" || exit 1
make_start
[ $# -gt 0 ] || set -- $(commands | sed 's/:.*//')
./fail_call write counted 0 "$attend" list >/dev/null || { echo "SKIPPED: processes cannot be traced here (ptrace)"; exit 77; }
failed=0 survived=0

# CALLS FAULT: which calls fail, and how.
faults="write ENOSPC
write EIO
write EINTR
write short
read EIO
read EINTR
read short
open EMFILE
open EIO
fsync EIO
rename EIO
close EIO
link EIO
unlink EIO
truncate EIO
directory EIO
mode EIO
lock EIO
look EIO
seek EIO
memory ENOMEM
start EAGAIN"

# attack NAME CALLS FAULT...
attack()
{
    local name=$1 calls=$2 fault n most step
    shift 2
    undisturbed "$name" ../fail_call "$calls" ../counted 0
    most=$(cat counted)
    step=$(count $((most > 0 ? most : 1)) 1) # one of them, or all
    for fault; do
        random 1 "$step"
        for ((n = random; n <= most; n += step)); do
            disturb "$name" ../fail_call "$calls" "$fault" "$n"
            judge "$name" "$calls $n of $most fails with $fault" .
            if [ $code = 0 ]; then survived=$((survived + 1)); else failed=$((failed + 1)); fi
        done
    done
}

for name; do
    for calls in $(sed 's/ .*//' <<<"$faults" | uniq); do
        # The writes of `serve --check` are to an eventfd of libmicrohttpd, which ends the process if one fails.
        [ "$name $calls" != "serve write" ] || continue
        attack "$name" "$calls" $(sed -n "s/^$calls //p" <<<"$faults")
    done
done
echo "$((failed + survived)) failing system calls in $# commands, $failed reported and $survived without effect: $finds finds"
[ $finds = 0 ]
