#!/usr/bin/env bash
# aarch64.sh [CTEST-ARGUMENT...]: builds for 64-bit ARM in build/aarch64 and runs the unit tests, float and double, under
# qemu-aarch64. Installs Debian's cross compiler and qemu-user if they are missing. The arm64 libraries are unpacked into
# build/aarch64-sysroot, by an apt with a state of its own, so the packages of this machine stay as they are. Exits with
# 77 where there is no apt.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v apt-get >/dev/null || { echo "aarch64.sh: needs apt-get for the cross compiler and the arm64 libraries"; exit 77; }
sysroot=$PWD/build/aarch64-sysroot
state=$PWD/build/aarch64-apt

tools=
command -v aarch64-linux-gnu-g++ >/dev/null || tools="$tools gcc-aarch64-linux-gnu g++-aarch64-linux-gnu"
command -v qemu-aarch64 >/dev/null || tools="$tools qemu-user"
if [ -n "$tools" ]; then
    as_root=
    [ "$(id -u)" = 0 ] || as_root=sudo
    $as_root apt-get update -qq
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        -o DPkg::Lock::Timeout=300 $tools
fi

# The libraries that the build names in cmake/needs.txt, what they need in turn, and the tests' own.
packages="$(awk '/^[?A-Z]/ { print $3 }' cmake/needs.txt | tr '\n' ' ')libcmocka-dev librandom123-dev"
if [ "$(cat "$sysroot/packages" 2>/dev/null)" != "$packages" ]; then
    rm -rf "$sysroot" "$state"
    mkdir -p "$sysroot" "$state/lists/partial" "$state/cache/archives/partial"
    touch "$state/status"
    cat >"$state/apt.conf" <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "root";
Dir::State "$state";
Dir::State::status "$state/status";
Dir::Cache "$state/cache";
END
    export APT_CONFIG=$state/apt.conf
    apt-get update -qq
    # The C library comes with the compiler, and two of them would not go together.
    wanted=$(apt-get install -s --no-install-recommends $packages | awk '$1 == "Inst" { print $2 }' |
        grep -vE '^(libc6|libc6-dev|libc-dev-bin|linux-libc-dev|libgcc-s1|gcc-.*-base|libstdc\+\+6)$')
    (cd "$state/cache/archives" && apt-get download -qq $wanted)
    for package in "$state"/cache/archives/*.deb; do
        dpkg -x "$package" "$sysroot"
    done
    unset APT_CONFIG
    echo "$packages" >"$sysroot/packages"
fi

cmake -S . -B build/aarch64 -DAT_TESTS=ON -DAT_BENCH=OFF -DCMAKE_TARGET_MESSAGES=OFF \
    -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/aarch64.cmake" -DAT_SYSROOT="$sysroot" >/dev/null
cmake --build build/aarch64 -j "${JOBS:-$(nproc)}"
bash tests/run.sh build/aarch64 -R '^attend_(static|double)_' "$@"
