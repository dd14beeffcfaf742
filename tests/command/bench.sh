#!/usr/bin/env bash
# The benchmark prints what it promises: one JSON array of rows with the fields of each kind, or a table; rivals that are
# not installed are named and left out; wrong arguments are refused. No figure is judged here.
set -eu
. "$(dirname "$0")/../library.sh"

if [ ! -x "$build/attend-bench" ]; then
    echo "SKIPPED: this build has no attend-bench"
    exit 77
fi

# The command starts attend-bench: the one in its own folder, else the one in PATH; without either it says how to get it.
mkdir "$scratch/alone" "$scratch/path"
cp "$build/attend" "$scratch/alone/attend"
printf '#!/bin/sh\nprintf "<%%s>" "$@"\nexit 7\n' >"$scratch/path/attend-bench"
chmod +x "$scratch/path/attend-bench"
code=0
PATH=/nowhere "$scratch/alone/attend" bench gemm --help 2>"$scratch/error" || code=$?
[ "$code" = 1 ] && [ "$(wc -l <"$scratch/error")" = 1 ] &&
    grep -q '^attend: attend bench is the program attend-bench, which is neither beside attend nor in PATH; `make install`' \
        "$scratch/error" || fail "without attend-bench: exit code $code, $(cat "$scratch/error")"
code=0
said=$(PATH=$scratch/path:$PATH "$scratch/alone/attend" bench gemm --case 'a b' -- --odd '') || code=$?
[ "$code $said" = '7 <gemm><--case><a b><--><--odd><>' ] || fail "attend-bench in PATH was started with $said, exit code $code"
[ "$("$scratch/alone/attend" help bench)" = "$("$build/attend-bench" --help)" ] || fail "attend help bench differs from attend-bench --help"
if nm "$build/attend" | grep -q -e ' [Tt] bench_run' -e ' [Tt] workers_start'; then
    fail "the benchmark is linked into the command"
fi
"$build/attend-bench" --help | cmp - <("$build/attend" bench --help) || fail "attend bench --help is not attend-bench --help"

refused()
{
    local expected=$1 code=0
    shift
    "$build/attend" bench "$@" >"$scratch/output" 2>"$scratch/error" || code=$?
    [ "$code" = 2 ] || fail "bench $* exits with $code, not 2"
    [ ! -s "$scratch/output" ] || fail "bench $* printed something before it was refused"
    grep -qF -- "attend: $expected" "$scratch/error" || fail "bench $* says '$(cat "$scratch/error")'"
}
refused "no bench 'gem'; did you mean 'gemm'?" gem
refused "no bench 'serve'; there are 'gemm', 'attention', 'conv', 'train', 'decode' and 'rnn-vs-attention'" serve
refused "--rounds takes a whole number from 1 to 99, not '0'" gemm --rounds 0
refused "--threads takes a whole number from 1 to 64, not 'two'" --threads two
refused "--case needs a value: --case TEXT" --case
refused "no option '--fast'" gemm --fast
refused "attend bench takes one name, so 'attention' is too much" gemm attention
"$build/attend" bench --help | grep -q -e --no-rivals || fail "bench --help does not name its options"
[ "$("$build/attend" bench --version)" = "$("$build/attend" --version)" ] || fail "bench --version does not print the version"

# Every row on a line of its own between the brackets, so that even grep can read it.
rows()
{
    "$build/attend" bench "$@" --quick --no-rivals --json >"$scratch/rows.json" 2>"$scratch/error" ||
        fail "bench $* failed: $(cat "$scratch/error")"
    [ "$(head -c 1 "$scratch/rows.json")" = "[" ] && [ "$(tail -n 1 "$scratch/rows.json")" = "]" ] ||
        fail "bench $* --json did not print an array"
    if command -v python3 >/dev/null; then
        python3 - "$scratch/rows.json" <<'END' || fail "bench $* --json printed wrong rows"
import json, sys
rows = json.load(open(sys.argv[1]))
assert rows
for row in rows:
    assert all(isinstance(row[field], str) and row[field] for field in ("bench", "case", "who")), row
    assert row["threads"] == 1, row
    figures = {k: v for k, v in row.items() if k not in ("bench", "case", "who", "threads", "variant")}
    assert figures and all(isinstance(v, float) for v in figures.values()), row
    assert all(v > 0 for k, v in figures.items() if k not in ("extra_rss_mb", "allocations")), row
END
    fi
}
has()
{
    grep -qE -- "$1" "$scratch/rows.json" || fail "no row matches $1"
}

rows gemm
has '"bench":"machine","case":"fma peak".*"gflops":'
has '"bench":"machine","case":"exp".*"billion_per_second":'
has '"bench":"machine","case":"read 16 KB".*"gb_per_second":'
has '"bench":"gemm","case":"64x64x64","who":"attend","threads":1,"ms":.*"gflops":.*"percent_of_peak":'
has '"case":"1x512x512 decode, packed"'
if grep -q -e openblas -e ratio_to_best_rival "$scratch/rows.json"; then
    fail "--no-rivals let a rival in"
fi

rows attention --case 'forward full B=32'
has '"bench":"attention","case":"forward full B=32 n=32 D=64","who":"attend".*"percent_of_peak":.*"extra_mb":'
has '"case":"shaw forward full B=32 n=32 D=64","who":"attend".*"ratio_to_plain":'
has '"case":"additive forward full B=32 n=32 D=64".*"percent_of_tanh_bound":'
rows attention --case 'forward+backward causal B=32'
has '"case":"forward\+backward causal B=32 n=32 D=64"'
rows attention --case 'decode keys=1024 B=1'
has '"case":"decode keys=1024 B=1","who":"attend".*"percent_of_bandwidth":'
rows conv --case 64x3
has '"bench":"conv","case":"64x3 of 16x64x64 B=1","who":"attend".*"percent_of_peak":'
has '"case":"backward 16x5s2,32x3,64x3s2,64x3 of 64x256x1 B=1","who":"attend".*"gflops":'
# A training step in the steady state allocates no memory.
rows train --case 32/64
for model in bahdanau rnn-encdec transformer; do
    has '"bench":"train","case":"'$model' 32/64 V=200 8x5\+5","who":"attend".*"percent_of_peak":.*"tokens_per_second":.*"allocations":0.0'
done
has '"case":"transformer 32/64 V=200 8x5\+5","who":"attend".*"peak_rss_mb":'
has '"case":"transformer shaw:2 32/64 V=200 8x5\+5","who":"attend".*"ratio_to_plain":.*"allocations":0.0'
has '"case":"formulas 32/64 V=40 4 of 16x32 to 5","who":"attend".*"percent_of_peak":.*"allocations":0.0'
rows decode --case 32/64
has '"bench":"decode","case":"bahdanau 32/64 V=200 20 tokens B=1","who":"attend".*"percent_of_bandwidth":.*"tokens_per_second":'
has '"case":"bahdanau 32/64 V=200 20 tokens B=8","who":"attend".*"percent_of_peak":.*"tokens_per_second":'
has '"case":"transformer 32/64 V=200 20 tokens B=1","who":"attend".*"percent_of_bandwidth":.*"tokens_per_second":'
has '"case":"transformer 32/64 V=200 20 tokens B=8","who":"attend".*"percent_of_peak":.*"tokens_per_second":'
has '"who":"attend","threads":1,"variant":"beam 4".*"ratio_to_greedy":'
if grep -q 'decoded .* tokens and not' "$scratch/error"; then
    fail "bench decode decoded another number of tokens than it claims"
fi
rows rnn-vs-attention --case n=16
has '"bench":"rnn-vs-attention","case":"n=16".*"variant":"recurrent".*"us_per_token":.*"sequential_steps":16'
has '"variant":"self-attention"'

# The table has the same rows; a missing rival is a message on stderr and not a failure.
ATTEND_PYTHON=/nowhere ATTEND_NODE=/nowhere "$build/attend" bench attention --quick --case 'forward causal B=32' \
    >"$scratch/table" 2>"$scratch/error" || fail "bench without its rivals failed"
grep -qE '^forward causal B=32 n=32 D=64 +attend +[0-9.]+ +[0-9.]+ +[0-9.]+' "$scratch/table" || fail "the table lacks its row"
for rival in torch onnxruntime; do
    grep -q "attend: bench: $rival is left out: " "$scratch/error" || fail "$rival is missing and not named"
done
