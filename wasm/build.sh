#!/usr/bin/env bash
# build.sh ATTEND FOLDER: builds the library for WebAssembly with Debian's emscripten, and the page of examples/wasm with a model
# that ATTEND, the command, trains on the data of the tour: FOLDER/page/index.html runs in a browser, without a server.
set -euo pipefail
cd "$(dirname "$0")/.."
attend=$(realpath "$1")
mkdir -p "$2/page"
folder=$(cd "$2" && pwd)
export NODE_PATH=/usr/share/nodejs # where Debian keeps the modules of emscripten's tools
bash wasm/needs.sh "$folder/needs"
off=$(sed -n 's/^[?+]\([A-Z]*\) .*/-DAT_\1=OFF/p' cmake/needs.txt)
env -u CMAKE_C_COMPILER_LAUNCHER -u CMAKE_CXX_COMPILER_LAUNCHER cmake -S . -B "$folder/build" -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/wasm.cmake" \
    -DAT_SYSROOT="$folder/needs/sysroot" -DAT_SPM=OFF $off -DCMAKE_TARGET_MESSAGES=OFF >/dev/null
cmake --build "$folder/build" -j "${JOBS:-$(nproc)}"
if [ ! -e "$folder/en-de.safetensors" ]; then
    (cd examples/tour && "$attend" train --config tour.conf --updates 600 --output "$folder/en-de.part" --overwrite --quiet)
    mv "$folder/en-de.part" "$folder/en-de.safetensors"
fi
cp examples/wasm/index.html "$folder/build/wasm/attend.js" "$folder/page"
cp "$folder/build/wasm/attend-loader.wasm" "$folder/page/attend.wasm"
echo "window.MODEL = '$(base64 -w 0 "$folder/en-de.safetensors")';" >"$folder/page/model.js"
