# For the scripts of this folder; they source it first.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
jobs=${JOBS:-$(nproc)}
TORTURE=${TORTURE:-full}

# build NAME CMAKE-ARGUMENT...: builds the command and what the arguments ask for in build/torture/NAME; sets $build and $attend.
# For `build release` RELEASE may name an optimised build that is there already.
build()
{
    build=$top/build/torture/$1
    if [ "$1" = release ] && [ -n "${RELEASE:-}" ]; then
        # Alone, as attend-bench is not meant, and without what valgrind cannot read of clang's debug information.
        build=$top/build/torture/given
        attend=$build/attend
        mkdir -p "$build" && strip --strip-debug -o "$attend.$$" "$top/$RELEASE/attend" && mv "$attend.$$" "$attend" || exit 1
        return
    fi
    shift
    build_in "$build" "" -DAT_BENCH=OFF "$@"
    attend=$build/attend
}

# build_in FOLDER TARGETS CMAKE-ARGUMENT...: one script at a time, as several may need the same build.
build_in()
{
    local folder=$1 targets=$2
    shift 2
    mkdir -p "$folder"
    {
        flock 9
        cmake -S "$top" -B "$folder" -DCMAKE_TARGET_MESSAGES=OFF "$@" 9>&- >/dev/null &&
            cmake --build "$folder" -j "$jobs" ${targets:+--target $targets} 9>&- >/dev/null || exit 1
    } 9>"$folder/torture.lock"
}

# count SHORT FULL: prints the count that $TORTURE asks for.
count()
{
    if [ "$TORTURE" = full ]; then echo "$2"; else echo "$1"; fi
}

# enter: goes to an empty folder, which is removed at the end; in memory if there is such a file system, as disks sync slowly.
enter()
{
    local memory=/dev/shm
    [ -w "$memory" ] || memory=${TMPDIR:-/tmp}
    work=$(mktemp -d "$memory/attend-torture-XXXXXX")
    trap 'rm -rf "$work"' EXIT
    cd "$work" || exit 1
}

# The random choices of a script follow from SEED, which it prints with what it finds; the short form makes the same ones
# every time.
SEED=${SEED:-$([ "$TORTURE" = short ] && echo 1 || echo $RANDOM)}
RANDOM=$SEED

# found MESSAGE: counts and prints what should not be.
finds=0
found()
{
    finds=$((finds + 1))
    echo "FOUND (SEED=$SEED): $1" >&2
    [ "$finds" -lt "${FINDS:-20}" ] || { echo "$finds finds, so the script ends"; exit 1; }
}

# random LEAST MOST: sets $random to a number from LEAST to MOST.
random()
{
    random=$(($1 + (RANDOM * 32768 + RANDOM) % ($2 - $1 + 1)))
}

# sleep_at_most MILLISECONDS: waits for a random time.
sleep_at_most()
{
    random 0 "$1"
    sleep "$(printf '%d.%03d' $((random / 1000)) $((random % 1000)))"
}

# same_log ONE OTHER: whether two logs of training are the same apart from times, from what a start says about this run
# alone (limits, output, threads), and from the lines of resumptions.
times='s/"seconds":[^,]*,\("words_per_second":[^,]*,\)*//; s/,"time":"[^"]*"}$/}/; s/,"run":{[^}]*}//; /"event":"resume"/d'
same_log()
{
    cmp -s <(sed "$times" "$1") <(sed "$times" "$2")
}
