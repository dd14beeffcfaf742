#!/usr/bin/env bash
# keep.sh BUILD: minimises the corpora that the fuzzers of the build directory have collected (FUZZ_ONLY="NAME NAME": only those), and stores them as
# fuzz/corpus/NAME.tar.gz: as few inputs as reach the same, the smallest first, up to 128 KB of them for each fuzzer.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)/fuzz
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$top/fuzz/corpus"
for name in ${FUZZ_ONLY:-$(cd "$build" && ls -d fuzz_* | sed "s/^fuzz_//")}; do
    fuzzer=$build/fuzz_$name
    [ -d "$build/corpus_$name" ] && [ -x "$fuzzer" ] || continue
    rm -rf "$scratch/corpus"
    mkdir "$scratch/corpus"
    "$fuzzer" -set_cover_merge=1 -max_len=16384 -rss_limit_mb=2048 "$scratch/corpus" "$build/corpus_$name" >"$scratch/log" 2>&1 || { tail "$scratch/log"; exit 1; }
    (cd "$scratch/corpus" && ls -Sr | xargs stat -c '%s %n' | awk '(size += $1) < 131072 { print $2 }') >"$scratch/names"
    tar -C "$scratch/corpus" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf - -T "$scratch/names" | gzip -9n >"$top/fuzz/corpus/$name.tar.gz"
    echo "$name: $(wc -l <"$scratch/names") inputs, $(stat -c %s "$top/fuzz/corpus/$name.tar.gz") bytes"
done
