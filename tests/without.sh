#!/usr/bin/env bash
# without.sh [TREE]: attend builds without zlib and libzstd, with no warning, and refuses what it then cannot read with a
# message that names the library. Only the command is built, without optimisation.
set -eu
tree=$(cd "${1:-$(dirname "$0")/..}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() {
    echo "FAILED: $*" >&2
    exit 1
}

command -v ccache >/dev/null && export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
cmake -S "$tree" -B build -DAT_ZLIB=OFF -DAT_ZSTD=OFF -DAT_BENCH=OFF -DAT_WERROR=ON -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_C_FLAGS_DEBUG=-O0 -DCMAKE_CXX_FLAGS_DEBUG=-O0 >log
cmake --build build -j2 --target attend >>log 2>&1 || {
    grep -E 'error:|warning:' -A4 log | head -40
    fail "attend does not build without zlib and libzstd"
}
! nm -D --undefined-only build/attend | grep -E ' (inflate|ZSTD_)' || fail "attend still calls zlib or libzstd"

# refuse NAME BYTES REASON
refuse() {
    printf '%b' "$2" >"$1"
    ! build/attend score bleu --reference "$1" </dev/null 2>said || fail "attend reads $1"
    [ "$(cat said)" = "attend: --reference: '$1' is $3; decompress it first" ] || fail "attend says of $1: $(cat said)"
}
refuse lines.gz '\x1f\x8b\x08\x00' "gzip data, and this attend was built without zlib"
refuse lines '\x28\xb5\x2f\xfd' "zstd data, and this attend was built without libzstd"
printf 'a b c d\n' >plain
echo 'a b c d' | build/attend score bleu --reference plain | grep -q '^BLEU.* = 100.0 ' || fail "attend score of plain text"
