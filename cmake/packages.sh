#!/usr/bin/env bash
# packages.sh PACKAGE...: installs those of the Debian packages that are missing, and prints nothing if all are there. Where
# there is no dpkg it does nothing: then CMake names what it cannot find.
set -u
command -v dpkg-query >/dev/null || exit 0
missing=()
for package; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} = 0 ] && exit 0
as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
echo "installing ${missing[*]}"
$as_root apt-get update -q && $as_root apt-get install -y -q --no-install-recommends "${missing[@]}"
