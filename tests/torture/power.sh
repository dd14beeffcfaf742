#!/usr/bin/env bash
# power.sh [NAME...]: cuts the power after every step of every command that writes files, and goes on from what is there then.
#
# record.c records what a command does to its files; replay.c makes, for every prefix of it, each state that a file system
# may show after the cut: names and bytes that were not synced are there, missing, zeros or torn. In every state each file
# is the old or the new one, whole; the command then succeeds, a training resumes to the bytes of an uninterrupted one, and
# no temporary file is left. States that differ in the bytes of temporary files only are tried once: record.c sees to it that
# no command reads those, neither the one that is cut nor the one that goes on. TORTURE=short takes some of the states.
set -u
cd "$(dirname "$0")"
. ./support.bash
. ../cases.bash
. ./faults.bash
[ "$(uname -m)" = x86_64 ] || { echo "SKIPPED: record.c knows the registers of x86-64 only"; exit 77; }
build release
folder=$PWD
enter
cc -O1 -o record "$folder/record.c" && cc -O1 -o replay "$folder/replay.c" || exit 1
mkdir empty
./record log empty true || { echo "SKIPPED: processes cannot be traced here (ptrace)"; exit 77; }
make_start
[ $# -gt 0 ] || set -- $(commands | sed 's/:.*//')
states=0 writers=0

# whole NAME STATE: each file is one that the command may leave, at any time; only temporary ones may be broken.
whole()
{
    local file
    while read -r file; do
        case $file in
        */.attend-*) continue ;;
        *.log.jsonl) continue ;; # shown to be good by what goes on from it
        esac
        cmp -s run/"$file" done/"$1"/"$file" || case $1:$file in
            compare:./runs/*/model* | train*:* | resume:*) "$attend" info --verify run/"$file" >said 2>&1 || found "$2: $file is broken: $(cat said)" ;;
            compare:./table.json | compare:./runs/*/result.json) grep -q '^}$' run/"$file" || found "$2: $file is not whole" ;;
            compare:./table.html) grep -q '^</html>$' run/"$file" || found "$2: $file is not whole" ;;
            compare:./table.*) [ "$(tail -c 1 run/"$file" | od -An -tx1)" = " 0a" ] || found "$2: $file is not whole" ;;
            compare:./runs/*) ;; # shown to be good by what goes on from it
            *) found "$2: $file is neither the old nor the new one" ;;
            esac
    done < <(diff -rq start run | changed run)
    for file in start/*; do
        [ -e run/"${file#start/}" ] || found "$2: ${file#start/} is lost"
    done
}

# attack NAME
attack()
{
    local cut names data rest step
    undisturbed "$1" ../record ../log .
    # A whole folder that gets its name at the end is not among what replay.c knows.
    if ! ./replay log >cut_states 2>said; then
        case $1 in
        convert-folder | convert-marian) echo "$1 makes a folder, and was not tried" ;;
        *) found "$1: $(cat said)" ;;
        esac
        return
    fi
    [ "$(wc -l <cut_states)" -gt 1 ] || return # it writes no file
    rm -rf run
    ./replay log all all present run && same_end "$1" || found "$1: the record is not complete: $difference"
    writers=$((writers + 1))
    step=$(count $((1 + $(wc -l <cut_states) / ${SHORT:-12})) 1)
    random 1 "$step"
    while read -r cut names data rest; do
        rm -rf run
        ./replay log "$cut" "$names" "$data" run || exit 1
        whole "$1" "$1, $data, $names changed names, $rest"
        through=()
        [ -z "$(find run -name '.attend-*')" ] || through=(../record ../log.again .)
        go_on "$1" "$1, $data, $names changed names, $rest"
        states=$((states + 1))
    done < <(awk -v from="$random" -v step="$step" 'NR % step == from % step' cut_states)
}

for name; do attack "$name"; done
echo "$states states after a cut of the power in $writers commands that write files: $finds finds"
[ $finds = 0 ]
