# Where there is no terminal, the checks that need one are skipped, and say so.
. "$(dirname "$0")/support.bash"

mkdir bin
printf '#!/bin/sh\necho "script: failed to create pseudo-terminal" >&2\nexit 1\n' >bin/script
chmod +x bin/script
said=$(PATH=$PWD/bin:$PATH bash "$here/list.sh" "$attend" 2>&1) || fail "list.sh fails without a terminal: $said"
equal "SKIPPED: there is no terminal, or no script(1) to use it, so colour in a terminal was not checked" \
    "$(grep '^SKIPPED: .*terminal' <<<"$said")" "list.sh without a terminal"
finish
