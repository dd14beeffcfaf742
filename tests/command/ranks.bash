# What the tests of several processes share: after support.bash. Without mpirun, or an attend that was built with MPI, the test is
# skipped.
if ! command -v mpirun >/dev/null; then
    skipped "mpirun is not installed, so nothing was computed by several processes"
    exit 77
fi
if OMPI_COMM_WORLD_SIZE=2 "$attend" train --source /dev/null --target /dev/null --output x 2>&1 | grep -q 'built without MPI'; then
    skipped "attend was built without MPI, so nothing was computed by several processes"
    exit 77
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Open MPI keeps some memory until the process ends.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"

# pairs LINES WORDS: the files source and target, lines of up to so many letters and their capitals in the reverse order.
pairs() {
    awk -v lines="$1" -v words="$2" 'BEGIN { srand(7); for (i = 0; i < lines; i++) { n = 1 + int(rand() * words); s = t = ""
        for (w = 0; w < n; w++) { c = sprintf("%c", 97 + int(rand() * 8)); s = s (w ? " " : "") c; t = toupper(c) (w ? " " : "") t }
        print s >"source"; print t >"target" } }'
}

# together COUNT ARGUMENTS...: attend by so many processes.
together() {
    local count=$1
    shift
    mpirun --oversubscribe -np "$count" "$attend" "$@"
}

# ours FILE: the messages of attend in a file, without what mpirun adds.
ours() {
    grep '^attend: ' "$1" || true
}

# refused CODE SENTENCE ARGUMENTS...: mpirun with these arguments exits with the code, and attend says the sentence, once.
refused() {
    local code=$1 sentence=$2 got=0
    shift 2
    mpirun --oversubscribe "$@" >said 2>&1 </dev/null || got=$?
    equal "attend: $sentence" "$(ours said)" "mpirun $*"
    equal "$code" "$got" "the exit code of mpirun $*"
}

# gone PATTERN: waits until no process with such a command line is left.
gone() {
    for _ in $(seq 100); do
        pgrep -f -- "$1" >/dev/null || return 0
        sleep 0.1
    done
    fail "a process of a run that ended is left: $(pgrep -af -- "$1")"
}
