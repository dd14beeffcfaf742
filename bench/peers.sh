#!/bin/sh
# Installs the rivals that `attend bench` compares with, by package name. Neither the build nor the tests need any of
# them. The benchmark leaves out and names whichever is missing.
#   bench/peers.sh [DIRECTORY]     DIRECTORY: where to install the JavaScript package; default build/peers
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
directory=${1:-$here/build/peers}
failed=0

# Debian packages npm separately; other distributions include it in nodejs.
packages="python3-torch python3-numpy libopenblas0-openmp libblis4-openmp libdnnl2 mmdebstrap"
command -v node >/dev/null 2>&1 || packages="$packages nodejs"
command -v npm >/dev/null 2>&1 || packages="$packages npm"

missing=""
for package in $packages; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
if [ -n "$missing" ]; then
    as_root=""
    [ "$(id -u)" = 0 ] || as_root=sudo
    $as_root apt-get update -qq
    for package in $missing; do
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            -o DPkg::Lock::Timeout=300 "$package" >/dev/null ||
            { echo "peers: package $package could not be installed; its rows will be missing" >&2; failed=1; }
    done
fi

# The version is pinned, so that figures from two machines are about the same rival. Its install script fetches parts
# for graphics cards only, hence --ignore-scripts.
if [ ! -d "$directory/node_modules/onnxruntime-node" ]; then
    mkdir -p "$directory"
    npm install --prefix "$directory" --ignore-scripts --no-audit --no-fund --silent onnxruntime-node@1.30.0 ||
        { echo "peers: onnxruntime-node could not be installed; its rows will be missing" >&2; failed=1; }
fi

# CTranslate2 needs a newer C library than Debian 12 has, so it gets a root folder of its own, the one of `make judge`.
folder=$here/build/judge
mkdir -p "$folder"
bash -c '. "$1/tests/judge/root.bash" && judge_root "$2"' - "$here" "$folder" ||
    { echo "peers: ctranslate2 could not be installed; its rows will be missing" >&2; failed=1; }
exit $failed
