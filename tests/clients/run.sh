#!/usr/bin/env bash
# run.sh ATTEND FOLDER: programs written for LibreTranslate, by others, against attend serve with a small trained model: six clients
# from npm, and the provider of Debian's dialect, installed into FOLDER. Without network they are skipped, and it says so.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
attend=$(realpath "$1")
mkdir -p "$2"
folder=$(cd "$2" && pwd)
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill $server 2>/dev/null || true; rm -rf "$work"' EXIT

awk 'BEGIN { srand(5); for (i = 0; i < 400; i++) { n = 2 + int(rand() * 3); s = t = ""
    for (w = 0; w < n; w++) { c = sprintf("%c", 97 + int(rand() * 8)); s = s (w ? " " : "") c; t = toupper(c) (w ? " " : "") t }
    print s >"'"$work"'/source"; print t >"'"$work"'/target" } }'
small="--model bahdanau --embedding 8 --hidden 16 --attention 8 --maxout 8 --batch-size 20 --learning-rate 0.01 --epochs 12 --quiet"
"$attend" train --source "$work/source" --target "$work/target" --output "$work/de-en" $small
"$attend" train --source "$work/target" --target "$work/source" --output "$work/en-de" $small
"$attend" serve -m de-en="$work/de-en" -m en-de="$work/en-de" --beam 3 --port 0 2>"$work/log" &
server=$!
for wait in $(seq 600); do grep -q Ctrl-C "$work/log" && break; sleep 0.05; done
at=$(sed -n 's|.*\(http://[^ ]*[0-9]\): .*|\1|p' "$work/log")
line="a b c d" said=$("$attend" translate -m "$work/de-en" --beam 3 <<<"a b c d")
failed=0

clients="libretranslate-ts@0.5.12 translate@3.1.0 libretranslate-extended@1.1.25 libretranslate@1.0.1 @translate-tools/core@2.1.0 n8n-nodes-libretranslate@0.0.3 dotenv@16"
if ! command -v npm >/dev/null; then
    echo "SKIPPED: clients from npm: there is no npm"
elif [ -e "$folder/clients" ] || (cd "$folder" && echo '{"private": true}' >package.json &&
    timeout 120 npm install --silent --no-audit --no-fund --legacy-peer-deps --ignore-scripts $clients >npm.log 2>&1 && touch clients); then
    node "$here/clients.mjs" "$at" "$folder" "$line" "$said" || failed=1
else
    echo "SKIPPED: clients from npm: the registry cannot be reached ($(tail -1 "$folder/npm.log"))"
fi

if ! /usr/bin/python3 -c 'import gi; gi.require_version("Soup", "3.0")' 2>/dev/null; then
    echo "SKIPPED: dialect: there is no libsoup for Python (Debian packages python3-gi, gir1.2-soup-3.0)"
elif [ -e "$folder/dialect/usr/share/dialect" ] || (cd "$folder" && timeout 60 apt-get download -qq dialect >apt.log 2>&1 && dpkg-deb -x dialect_*.deb dialect); then
    if /usr/bin/python3 "$here/dialect.py" "${at##*:}" "$folder/dialect/usr/share/dialect" "$line" "$said"; then echo "dialect: 1 passed, 0 failed"; else failed=1; fi
else
    echo "SKIPPED: dialect: the package cannot be downloaded"
fi
exit $failed
