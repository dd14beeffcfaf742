#!/usr/bin/env bash
# dist.sh FOLDER: writes FOLDER/attend-VERSION.tar.gz, the files of the last commit. The same commit gives the same bytes: names
# in order, its time as the time of every file, and no time in the compressed file.
set -euo pipefail
cd "$(dirname "$0")/.."
git rev-parse --git-dir >/dev/null 2>&1 || { echo "make dist: needs a git checkout" >&2; exit 1; }
[ -z "$(git status --porcelain)" ] || echo "make dist: files that are not committed are left out" >&2
version=$(sed -n 's/^#define AT_VERSION  *"\(.*\)"/\1/p' include/attend.h)
mkdir -p "$1"
archive=$1/attend-$version.tar.gz
git archive --format=tar --prefix="attend-$version/" HEAD | gzip -9n >"$archive.part"
mv "$archive.part" "$archive"
echo "$archive"
