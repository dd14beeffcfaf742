#!/usr/bin/env bash
# package.sh FOLDER: make dist twice gives the same bytes; the Debian packages are built of it without a network, lintian finds
# nothing in them, and installed into an empty folder the command, a program of the library and the Python package run.
# Exits with 77 where Debian's tools are missing. The packages stay in FOLDER.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
for tool in dpkg-buildpackage dh lintian git cc; do
    command -v $tool >/dev/null || { echo "SKIPPED: packages: there is no $tool"; exit 77; }
done
git -C "$top" rev-parse HEAD >/dev/null 2>&1 || { echo "SKIPPED: packages: this is no git checkout"; exit 77; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
passed=0
fail() { echo "package.sh: $*" >&2; echo "$passed passed, 1 failed"; exit 1; }
good() { passed=$((passed + 1)); echo "ok: $*"; }

rm -rf "$folder"/*
archive=$(bash "$top/cmake/dist.sh" "$folder" 2>/dev/null)
first=$(sha256sum <"$archive")
bash "$top/cmake/dist.sh" "$folder" >/dev/null 2>&1
[ "$(sha256sum <"$archive")" = "$first" ] || fail "make dist wrote other bytes the second time"
good "make dist writes the same bytes twice: ${first%% *}"

tar -xf "$archive" -C "$folder"
name=$(basename "$archive" .tar.gz)
# In a network namespace of its own, where the kernel allows one, the build cannot reach anything.
apart=
unshare -rn true 2>/dev/null && apart="unshare -rn"
[ -n "$apart" ] || command -v fakeroot >/dev/null || fail "neither unshare nor fakeroot works"
(cd "$folder/$name" && DEB_BUILD_OPTIONS="parallel=${JOBS:-$(nproc)}" $apart dpkg-buildpackage -us -uc -d) >"$folder/build.log" 2>&1 ||
    fail "dpkg-buildpackage failed: $(tail -n 15 "$folder/build.log")"
soname=$(sed -n 's/^#define AT_VERSION  *"\(.*\)\..*"/\1/p' "$top/include/attend.h")
for package in attend "libattend$soname" libattend-dev python3-attend attend-doc; do
    ls "$folder/$package"_*.deb >/dev/null || fail "no package $package"
done
good "dpkg-buildpackage builds $(ls "$folder"/*.deb | wc -l) packages${apart:+ without a network}"

said=$(lintian --allow-root --fail-on error,warning "$folder"/*.changes 2>&1) || fail "lintian: $said"
[ -z "$said" ] || fail "lintian: $said"
good "lintian finds nothing"

root=$folder/root
for package in "$folder"/*.deb; do
    case $package in *-dbgsym_*) continue ;; esac
    dpkg-deb -x "$package" "$root"
done
libraries=$(dirname "$(find "$root" -name "libattend.so.$soname")")
version=$("$root/usr/bin/attend" --version)
[ "$version" = "attend ${name#attend-}" ] || fail "the installed command is '$version'"
good "the installed command is $version"
cc -I"$root/usr/include" "$root/usr/share/doc/attend/examples/attend_once.c" -L"$libraries" -lattend -o "$folder/attend_once"
[ "$(LD_LIBRARY_PATH=$libraries "$folder/attend_once" | head -1)" = "1.0000 2.9577 2.0113" ] || fail "a program of the library prints something else"
good "a program of the installed library computes"
for file in usr/share/man/man1/attend-train.1.gz usr/share/man/man3/attend.h.3.gz usr/share/bash-completion/completions/attend \
    usr/share/zsh/vendor-completions/_attend lib/systemd/system/attend-serve.service usr/share/doc/attend/doc/python.md; do
    [ -s "$root/$file" ] || [ -s "$root/$file.gz" ] || fail "$file is not installed"
done
good "manual pages, completions, unit and documents are there"
if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
    said=$(cd / && LD_LIBRARY_PATH=$libraries PYTHONPATH=$root/usr/lib/python3/dist-packages /usr/bin/python3 -c \
        'import attend; print(attend.__file__, attend.attention([[1.0, 2.0]]).out)') || fail "the Python package does not work"
    [[ $said == "$root"*"[[1. 2.]]" ]] || fail "the Python package prints $said"
    good "the installed Python package computes"
else
    echo "SKIPPED: the Python package: there is no python3-numpy"
fi
echo "$passed passed, 0 failed"
