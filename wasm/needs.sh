#!/usr/bin/env bash
# needs.sh FOLDER: the libraries that attend is built on, compiled for WebAssembly, in FOLDER/sysroot. Their sources are Debian's,
# fetched by an apt with a state of its own in FOLDER, so that the sources of this machine's apt stay as they are.
set -euo pipefail
mkdir -p "$1"
folder=$(cd "$1" && pwd)
sysroot=$folder/sysroot
export NODE_PATH=/usr/share/nodejs # where Debian keeps the modules of emscripten's tools
[ -e "$sysroot/complete" ] && exit 0

if [ ! -e "$folder/sources/complete" ]; then
    state=$folder/apt
    rm -rf "$state" "$folder/sources"
    mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/sources" "$folder/sources"
    touch "$state/status"
    suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
    mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -m 1 '/debian$')
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$state/sources/source.list"
    cat >"$state/apt.conf" <<END
APT::Sandbox::User "root";
Dir::State "$state";
Dir::State::status "$state/status";
Dir::Cache "$state/cache";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$state/sources";
END
    export APT_CONFIG=$state/apt.conf
    apt-get update -qq
    (cd "$folder/sources" && apt-get source -qq --download-only jansson utf8proc xxhash >/dev/null)
    unset APT_CONFIG
    for archive in "$folder"/sources/*.orig.tar.*; do
        tar -xf "$archive" -C "$folder/sources"
    done
    touch "$folder/sources/complete"
fi

# library NAME MODULE VERSION HEADER... -- OPTION... FILE...
library()
{
    local name=$1 module=$2 headers=() objects=() options=() file
    shift 2
    while [ "$1" != -- ]; do headers+=("$1"); shift; done
    shift
    for file; do
        case $file in
        -*) options+=("$file") ;;
        *)
            emcc -O2 "${options[@]}" -c "$file" -o "$folder/$(basename "$file" .c).o"
            objects+=("$folder/$(basename "$file" .c).o")
            ;;
        esac
    done
    emar rcs "$sysroot/lib/lib$name.a" "${objects[@]}"
    cp "${headers[@]}" "$sysroot/include"
    printf 'Name: %s\nDescription: for WebAssembly\nVersion: 1\nLibs: -L%s/lib -l%s\nCflags: -I%s/include\n' \
        "$name" "$sysroot" "$name" "$sysroot" >"$sysroot/lib/pkgconfig/$module.pc"
}
rm -rf "$sysroot"
mkdir -p "$sysroot/include" "$sysroot/lib/pkgconfig"
cd "$folder"/sources/jansson-*/src
sed -e 's/@json_inline@/inline/' -e 's/@json_have_localeconv@/0/' -e 's/@json_have_[a-z_]*@/1/' jansson_config.h.in >jansson_config.h
touch jansson_private_config.h
library jansson jansson jansson.h jansson_config.h -- -I. -DHAVE_STDINT_H -DHAVE_UNISTD_H *.c
cd "$folder"/sources/utf8proc-*
library utf8proc libutf8proc utf8proc.h -- -DUTF8PROC_STATIC utf8proc.c
cd "$folder"/sources/xxHash-*
library xxhash libxxhash xxhash.h xxh3.h -- xxhash.c
cp -r /usr/include/Random123 "$sysroot/include" # headers only, which refuse processors that they do not know
sed -i 's/!defined(__riscv)/& \&\& !defined(__wasm__)/' "$sysroot/include/Random123/features/gccfeatures.h"
touch "$sysroot/complete"
