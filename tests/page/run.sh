#!/usr/bin/env bash
# run.sh ATTEND FOLDER: every tests/page/*.mjs with a real browser, its modules installed in FOLDER. Prints "N passed, N failed".
set -eu
here=$(cd "$(dirname "$0")" && pwd)
attend=$(realpath "$1")
mkdir -p "$2"
folder=$(cd "$2" && pwd)
if ! [ -e "$folder/node_modules/axe-core" ] || ! [ -e "$folder/node_modules/puppeteer-core" ]; then
    (cd "$folder" && echo '{"private": true}' >package.json && npm install --silent --no-audit --no-fund puppeteer-core@24 axe-core@4 >npm.log 2>&1) ||
        { cat "$folder/npm.log" >&2; exit 1; }
fi
failed=0
for test in "$here"/*.mjs; do
    node "$test" "$attend" "$folder" || failed=1
done
exit $failed
