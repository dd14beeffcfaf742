#!/usr/bin/env bash
# The programs and the shared library have what cmake/harden.cmake asks for, as `hardening-check` of Debian's devscripts
# would see it.
set -eu
. "$(dirname "$0")/../library.sh"
command -v readelf >/dev/null || { echo "SKIPPED: there is no readelf (binutils)"; exit 77; }
type=$(sed -n 's/^CMAKE_BUILD_TYPE:STRING=//p' "$build/CMakeCache.txt")
checks=0

# has WHAT FILE PATTERN READELF-OPTION...: readelf shows such a line.
has()
{
    local what=$1 file=$2 pattern=$3
    shift 3
    readelf -W "$@" "$build/$file" >"$scratch/shown" 2>/dev/null
    grep -qE "$pattern" "$scratch/shown" || fail "$file $what"
    checks=$((checks + 1))
}

files="attend libattend.so"
[ ! -e "$build/attend-bench" ] || files="$files attend-bench"
for file in $files; do
    has "is not at a random address: its type is not DYN" "$file" 'Type: +DYN' -h
    has "has no read-only relocations" "$file" 'GNU_RELRO' -l
    has "does not resolve its symbols at the start" "$file" 'BIND_NOW|Flags:.* NOW' -d
    has "has an executable stack" "$file" 'GNU_STACK .* RW ' -l
    [ -z "$sanitizers" ] || continue # they check the stack and the buffers in their own way
    has "has no stack protector" "$file" '__stack_chk_fail' --dyn-syms
    # Each page of a large frame is touched in turn.
    if [ "$(uname -m)" = x86_64 ] && grep -q '^AT_HAS_STACK_CLASH:INTERNAL=1' "$build/CMakeCache.txt"; then
        objdump -d --no-show-raw-insn "$build/$file" | grep -A1 -E 'sub +\$0x1000,%rsp' >"$scratch/shown" || true
        grep -qE '(or|mov)q +\$0x0,\(%rsp\)' "$scratch/shown" || fail "$file does not touch each page of a large frame"
        checks=$((checks + 1))
    fi
    [ "$type" = Debug ] || has "has no checked string functions" "$file" '__[a-z]+_chk' --dyn-syms
done
echo "$checks checks"
