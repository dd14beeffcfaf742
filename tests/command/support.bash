# What the tests of the command share. A test is run as `bash TEST.sh path/to/attend`, works in an empty folder of its own,
# and fails at the first check that does not hold. UPDATE_GOLDENS=1 writes the goldens anew instead of comparing them.
set -euo pipefail
attend=$(realpath "$1")
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export LC_ALL=C.UTF-8 NO_COLOR=1
checks=0

fail() {
    printf 'FAILED: %s\n' "$1" >&2
    exit 1
}

# golden NAME ARGUMENTS...: the command's stdout is the file NAME, byte by byte, and its exit code 0.
golden() {
    local name=$1 said
    shift
    "$attend" "$@" >said.out 2>said.err || fail "attend $* exits with $?: $(cat said.err)"
    [ ! -s said.err ] || fail "attend $* says on stderr: $(cat said.err)"
    if [ -n "${UPDATE_GOLDENS:-}" ]; then
        cp said.out "$here/$name"
    fi
    diff -u "$here/$name" said.out >&2 || fail "attend $* does not say what $name holds"
    rm said.out said.err
    checks=$((checks + 1))
}

# refuse CODE SENTENCE ARGUMENTS...: that exit code, exactly that sentence on stderr, nothing on stdout, no file changed.
refuse() {
    local code=$1 sentence=$2 before after got=0 said
    shift 2
    before=$(find . -type f -exec cksum {} + ; find . | sort)
    said=$("$attend" "$@" 2>&1 >../stdout."$$") || got=$?
    after=$(find . -type f -exec cksum {} + ; find . | sort)
    [ "$said" = "attend: $sentence" ] || fail "attend $*
  should say  attend: $sentence
  but says    $said"
    [ "$got" = "$code" ] || fail "attend $* exits with $got instead of $code"
    [ ! -s ../stdout."$$" ] || fail "attend $* fails but prints $(cat ../stdout."$$")"
    rm ../stdout."$$"
    [ "$before" = "$after" ] || fail "attend $* fails but leaves files behind: $after"
    checks=$((checks + 1))
}

# learns: whether models are trained until they have learnt their task, which takes long under the sanitizers. There they train
# a little, and what they say is not checked; .ci/run runs the tests that ask for this on an optimised build, too.
learns() {
    ! readelf -d "$attend" 2>/dev/null | grep -q libasan
}

# skipped TEXT: a check that cannot be made here, and why; tests/run.sh counts these lines.
skipped() {
    echo "SKIPPED: $1"
}

# Is there a pseudo-terminal, and script(1) to run a command in it?
has_terminal() {
    script -qec true /dev/null </dev/null >/dev/null 2>&1
}

# run ARGUMENTS...: exit code 0 and not a word.
run() {
    local said
    said=$("$attend" "$@" 2>&1) || fail "attend $* exits with $?: $said"
    [ -z "$said" ] || fail "attend $* says $said"
    checks=$((checks + 1))
}

equal() {
    [ "$1" = "$2" ] || fail "$3: expected '$1', got '$2'"
    checks=$((checks + 1))
}

same_file() {
    cmp "$1" "$2" >&2 || fail "$1 and $2 differ"
    checks=$((checks + 1))
}

# The 32 bits of a whole number as a float, least byte first, as printf escapes.
float_bytes() {
    local n=$1 sign=0 exponent=0 bits=0
    if ((n < 0)); then sign=1 n=$((-n)); fi
    if ((n > 0)); then
        while ((n >> (exponent + 1))); do exponent=$((exponent + 1)); done
        bits=$(((exponent + 127) << 23 | (n << (23 - exponent)) & 0x7fffff))
    fi
    bits=$((sign << 31 | bits))
    printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((bits & 255)) $((bits >> 8 & 255)) $((bits >> 16 & 255)) $((bits >> 24))
}

# floats NUMBER...: whole numbers as little-endian float32 on stdout.
floats() {
    local number
    for number; do
        printf "$(float_bytes "$number")"
    done
}

# npy FILE SHAPE NUMBER...: an array of whole numbers, such as npy x.npy '2, 3' 1 2 3 4 5 6
npy() {
    local file=$1 shape=$2
    shift 2
    { # 10 bytes of magic and length, then 118 of header
        printf '\x93NUMPY\x01\x00\x76\x00'
        printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($shape), }"
        floats "$@"
    } >"$file"
}

# The shape of a .npy file as it stands in its header: "(2, 3)"
shape() {
    LC_ALL=C tr -d '\000' <"$1" | LC_ALL=C grep -a -o "'shape': ([^)]*)" | head -1 | sed "s/'shape': //"
}

# The values of a .npy file to four places, in a line.
values() {
    local start
    start=$((10 + $(od -An -tu2 -j8 -N2 "$1")))
    od -An -v -tf4 -w4 -j"$start" "$1" | LC_ALL=C awk '{ v = sprintf("%.4f", $1); if (v == "-0.0000") v = "0.0000"; printf "%s%s", (NR > 1 ? " " : ""), v } END { print "" }'
}

finish() {
    echo "$checks checks"
}
