#!/usr/bin/env bash
# run.sh BUILD FOLDER: the library as a WebAssembly module, in FOLDER (wasm/build.sh). In node it computes the same bytes as the
# plain kernels of BUILD: outputs, weights and gradients of the operator with every normaliser, window and position, and
# translations with scores and all weights. In chromium the page of examples/wasm works from its folder, without a network.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
for tool in emcc node; do
    command -v $tool >/dev/null || { echo "SKIPPED: WebAssembly: there is no $tool"; exit 77; }
done
bash "$top/wasm/build.sh" "$build/attend" "$2"
folder=$(cd "$2" && pwd)
passed=0
fail() { echo "wasm/run.sh: $*" >&2; echo "$passed passed, 1 failed"; exit 1; }
good() { passed=$((passed + 1)); echo "ok: $*"; }

for score in dot scaled; do
    for normaliser in softmax sparsemax entmax15 sigmoid relu hard; do
        for window in global causal sliding:3 local-m:2; do
            for position in none rope alibi; do
                echo "attention $score $normaliser $window $position 2 9 9 24"
            done
        done
    done
done >"$folder/cases"
echo "attention scaled softmax causal none 4 70 70 64" >>"$folder/cases"
echo "attention scalled softmax causal none 4 70 70 64" >>"$folder/cases"
sed -n '1,40s/^/translate 4 /p' "$top/examples/tour/test.en" >>"$folder/cases"
sed -n '41,60s/^/translate 1 /p' "$top/examples/tour/test.en" >>"$folder/cases"
cc -O1 -I"$top/include" "$here/native.c" -L"$build" -Wl,-rpath,"$build" -lattend -o "$folder/native"
ATTEND_ISA=plain "$folder/native" "$folder/en-de.safetensors" <"$folder/cases" >"$folder/native.txt"
[ "$(grep -c 'das\|der\|die' "$folder/native.txt")" -ge 30 ] || fail "the model of the tour does not translate"
node "$here/module.mjs" "$folder/page/attend.js" "$folder/en-de.safetensors" <"$folder/cases" >"$folder/module.txt"
cmp "$folder/native.txt" "$folder/module.txt" || fail "the module computes other bytes than the plain kernels"
good "node: the same bytes as the plain kernels, $(wc -l <"$folder/cases") cases, $(wc -c <"$folder/module.txt") characters"

browser=$(command -v chromium || command -v chromium-browser || true)
if [ -z "$browser" ]; then
    echo "SKIPPED: the page in a browser: there is no chromium"
else
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$folder/profile" \
        --virtual-time-budget=20000 --dump-dom "file://$folder/page/index.html" >"$folder/page.html" 2>"$folder/browser.log" ||
        fail "chromium failed: $(tail -3 "$folder/browser.log")"
    grep -q 'data-ready="yes"' "$folder/page.html" || fail "the page does not become ready; see $folder/page.html"
    grep -qF '1.0000 2.9577 2.0113' "$folder/page.html" || fail "the page shows another self-attention"
    line="the tired child wants to see the dog"
    target=$(ATTEND_ISA=plain "$build/attend" translate -m "$folder/en-de.safetensors" --beam 4 <<<"$line")
    grep -qF ">$target</output>" "$folder/page.html" || fail "the page does not show '$target'"
    grep -qF '&lt;/s&gt;' "$folder/page.html" || fail "the page shows no weights"
    good "chromium: the page translates '$line' as '$target'"
fi
echo "$passed passed, 0 failed"
