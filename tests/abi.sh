#!/usr/bin/env bash
# abi.sh BUILD [--write]: the ABI of attend.h and attend_server.h is that of tests/abi/libattend.abi, or has grown: within one 0.x minor version
# functions may be added, and nothing else may change. BUILD is a directory for a build with debug information, which abidw
# reads. With --write (make abi) the stored ABI is written anew, for a new minor version. attend_unstable.h is left out.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
stored=$top/tests/abi/libattend.abi
build=$1
if ! command -v abidw >/dev/null || [ "$(uname -m)" != x86_64 ]; then
    echo "SKIPPED: the ABI was not compared; this needs abidw of abigail-tools, on x86-64"
    exit 77
fi
# abidw knows public types by the path of attend.h in the debug information, which ccache may write in another form.
export CCACHE_DISABLE=1
cmake -S "$top" -B "$build" -DCMAKE_BUILD_TYPE=Debug -DAT_BENCH=OFF >/dev/null
cmake --build "$build" -j2 --target attend_shared >/dev/null
for name in $(sed -n 's/^AT_API .*[ *]\(at_[a-z0-9_]*\)(.*/\1/p' "$top/include/attend_unstable.h" 2>/dev/null); do
    printf '[suppress_function]\n  name = %s\n  drop = true\n' "$name"
done >"$build/unstable.suppr"
abidw --exported-interfaces-only --header-file "$top/include/attend.h" --header-file "$top/include/attend_server.h" --drop-private-types --suppressions "$build/unstable.suppr" \
    --no-corpus-path --no-comp-dir-path --no-show-locs --no-elf-needed --no-architecture --no-parameter-names \
    --no-write-default-sizes "$build/libattend.so" | sed "s|path='$top/|path='|" >"$build/libattend.abi"
for type in at_call at_server_settings; do
    if ! grep -q "<class-decl name='$type' size-in-bits" "$build/libattend.abi"; then
        echo "abi.sh: $type is missing in what abidw read" >&2
        exit 1
    fi
done
if [ "${2-}" = --write ]; then
    mkdir -p "$(dirname "$stored")"
    cp "$build/libattend.abi" "$stored"
    exit
fi
if ! abidiff --no-added-syms --suppressions "$build/unstable.suppr" "$stored" "$build/libattend.abi"; then
    echo "abi.sh: the ABI has changed: programs linked with this minor version would break; see doc/design.md" >&2
    exit 1
fi
