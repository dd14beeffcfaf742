# The man pages: one for each command, which names every option of its --help, an overview, and attend.h(3), which names every
# function; all are sound roff.
. "$(dirname "$0")/support.bash"

top=$(cd "$here/../.." && pwd)
# sound PAGE SECTION...: has the sections, and the formatters that are installed have nothing to say.
sound() {
    local page=$1 section
    shift
    for section; do
        grep -q "^\.SH $section\$" "$page" || fail "$page has no section $section"
    done
    if command -v groff >/dev/null; then
        equal "" "$(groff -man -Tutf8 -ww -K utf8 "$page" 2>&1 >/dev/null)" "groff on $page"
    else
        skipped "groff is not installed, so $page was not formatted"
    fi
    if command -v mandoc >/dev/null; then
        equal "" "$(mandoc -T lint -W error "$page")" "mandoc on $page"
    fi
}

"$attend" help --man >attend.1
sound attend.1 NAME SYNOPSIS DESCRIPTION COMMANDS 'OPTIONS OF EVERY COMMAND' FILES ENVIRONMENT 'EXIT STATUS' 'SEE ALSO'
commands=$("$attend" help | sed -n 's/^  \([a-z]*\) .*/\1/p')
[ "$(wc -w <<<"$commands")" -ge 13 ] || fail "the overview lists only $commands"
for command in $commands; do
    grep -qF "attend\\-$command" attend.1 || fail "attend.1 does not name attend $command"
    page=attend-$command.1
    "$attend" help --man "$command" >"$page"
    sound "$page" NAME SYNOPSIS DESCRIPTION OPTIONS ENVIRONMENT 'EXIT STATUS' 'SEE ALSO'
    for option in $("$attend" help "$command" all | grep -o '^  --[a-z-]*'); do
        grep -q -- "^\.B ${option//-/\\\\-}\( \|,\|\$\)" "$page" || fail "$page lacks $option"
    done
done
grep -q '^\.B OUTPUT.state$' attend-train.1 || fail "attend-train.1 does not name its files"
refuse 2 "no command 'trian'; did you mean 'train'?" help --man trian

awk -v version=1.2.3 -f "$top/cmake/header_man.awk" "$top/include/attend.h" >attend.h.3
sound attend.h.3 NAME SYNOPSIS DESCRIPTION 'SEE ALSO'
for name in $(sed -n 's/^AT_API .*[ *]\(at_[a-z0-9_]*\)(.*/\1/p' "$top/include/attend.h"); do
    grep -q "[ *]$name(" attend.h.3 || fail "attend.h(3) lacks $name"
done
equal "$(grep -c '^/\* ---- ' "$top/include/attend.h")" "$(($(grep -c '^\.SH' attend.h.3) - 4))" "sections of attend.h(3)"
if grep -q -e 'extern "C"' -e AT_API attend.h.3; then
    fail "attend.h(3) shows what is for the compiler alone"
fi
finish
