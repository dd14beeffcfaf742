#!/usr/bin/env bash
# An installed tree is complete: a program finds it by pkg-config and by CMake, the version is the same everywhere, and the
# shared library exports the names of its headers and no others.
set -eu
. "$(dirname "$0")/../library.sh"

DESTDIR=$scratch/root cmake --install "$build" >/dev/null
prefix=$scratch/root$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$build/CMakeCache.txt")
library=$(find "$prefix" -name libattend.so)
[ -n "$library" ] || fail "no libattend.so was installed"
libraries=$(dirname "$library")
version=$("$prefix/bin/attend" --version)
version=${version#attend }
minor=${version%.*}
for file in "$prefix/bin/attend" "$prefix/include/attend.h" "$prefix/include/attend_unstable.h" "$prefix/include/attend_server.h" "$libraries/libattend.a" "$libraries/libattend.so.$minor" \
    "$prefix/lib/systemd/system/attend-serve.service" "$prefix/share/man/man1/attend-serve.1" "$prefix/share/man/man1/attend.1" "$prefix/share/man/man1/attend-train.1" "$prefix/share/man/man3/attend.h.3" \
    "$prefix/share/bash-completion/completions/attend" "$prefix/share/zsh/site-functions/_attend" "$prefix/share/doc/attend/README.md" "$prefix/share/doc/attend/doc/python.md" \
    "$prefix/share/doc/attend/examples/attend_once.c"; do
    [ -s "$file" ] || fail "$file is missing or empty"
done
if command -v systemd-analyze >/dev/null; then
    sed "s|^ExecStart=[^ ]*|ExecStart=$prefix/bin/attend|" "$prefix/lib/systemd/system/attend-serve.service" >"$scratch/attend-serve.service"
    said=$(systemd-analyze verify --man=no "$scratch/attend-serve.service" 2>&1) && [ -z "$said" ] || fail "systemd says of attend-serve.service: $said"
fi
readelf -d "$library" | grep -qF "soname: [libattend.so.$minor]" || fail "the soname is not libattend.so.$minor"
if [ -e "$build/attend-bench" ]; then
    [ "$("$prefix/bin/attend" bench --version)" = "attend $version" ] || fail "the installed attend does not start attend-bench"
fi

# The sanitizers leave marks of their own beside our names.
nm -D --defined-only "$library" | awk '{print $NF}' | grep -v -e '^__odr_asan' -e '^__asan' -e '^__ubsan' | sort >"$scratch/exported"
sed -n 's/^AT_API .*[ *]\(at_[a-z0-9_]*\)(.*/\1/p' "$prefix/include/"attend*.h | sort >"$scratch/declared"
diff "$scratch/declared" "$scratch/exported" >&2 || fail "the headers declare (<) and libattend.so exports (>) different names"

export PKG_CONFIG_PATH=$libraries/pkgconfig
[ "$(pkg-config --modversion attend)" = "$version" ] || fail "attend.pc has another version than $version"
cat >"$scratch/version.c" <<'END'
#include <attend.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
    int major, minor, patch;
    return strcmp(AT_VERSION, at_version()) != 0 || sscanf(AT_VERSION, "%d.%d.%d", &major, &minor, &patch) != 3 ||
           AT_VERSION_NUMBER != 10000 * major + 100 * minor + patch;
}
END
${CC:-cc} $sanitizers "$scratch/version.c" $(pkg-config --cflags --libs attend) -o "$scratch/version"
LD_LIBRARY_PATH=$libraries "$scratch/version" || fail "AT_VERSION, AT_VERSION_NUMBER and at_version() disagree"
example=$top/examples/attend_once.c
run()
{
    first=$(LD_LIBRARY_PATH=$libraries "$@")
    case $first in
    "1.0000 2.9577 2.0113"*) ;;
    *) fail "$* printed '$first'" ;;
    esac
}
${CC:-cc} $sanitizers "$example" $(pkg-config --cflags --libs attend) -o "$scratch/by_pkg_config"
run "$scratch/by_pkg_config"
${CC:-cc} $sanitizers "$example" $(pkg-config --cflags attend) "$libraries/libattend.a" \
    $(pkg-config --static --libs attend | sed 's/-lattend//') -o "$scratch/by_static"
run "$scratch/by_static"

mkdir "$scratch/user"
cat >"$scratch/user/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.20)
project(user C)
find_package(attend $minor REQUIRED)
foreach(library attend attend_static)
  add_executable(with_\${library} $example)
  target_link_libraries(with_\${library} PRIVATE attend::\${library})
endforeach()
END
cmake -S "$scratch/user" -B "$scratch/user/build" -DCMAKE_C_FLAGS="$sanitizers" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$scratch/user/build" >/dev/null
run "$scratch/user/build/with_attend"
run "$scratch/user/build/with_attend_static"
