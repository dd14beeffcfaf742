# For the scripts of this folder; they source it first.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
jobs=${JOBS:-$(nproc)}

# build NAME CMAKE-ARGUMENT...: builds the command and what the arguments ask for in build/torture/NAME; sets $build and $attend.
build()
{
    build=$top/build/torture/$1
    shift
    cmake -S "$top" -B "$build" -DCMAKE_TARGET_MESSAGES=OFF -DAT_BENCH=OFF "$@" >/dev/null && cmake --build "$build" -j "$jobs" >/dev/null || exit 1
    attend=$build/attend
}

# count SHORT FULL: prints the count that $TORTURE asks for.
count()
{
    if [ "$TORTURE" = full ]; then echo "$2"; else echo "$1"; fi
}
