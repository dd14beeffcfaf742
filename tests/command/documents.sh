#!/usr/bin/env bash
# The documents: every link to a file or a heading of this tree resolves, and every command line that they show names options
# that exist.
. "$(dirname "$0")/support.bash"
top=$(realpath "$here/../..")
cd "$top"
mapfile -t documents < <(ls ./*.md doc/*.md bench/*.md examples/*.md)
[ ${#documents[@]} -ge 12 ] || fail "only ${#documents[@]} documents"

# anchors FILE: the headings as GitHub makes anchors of them.
anchors() {
    grep -E '^#+ ' "$1" | sed -E -e 's/^#+ +//' | tr '[:upper:]' '[:lower:]' | sed -E -e 's/[^[:alnum:] _-]//g' -e 's/ /-/g'
}

links=0
for document in "${documents[@]}"; do
    while IFS= read -r link; do
        case $link in http://* | https://* | mailto:*) continue ;; esac
        links=$((links + 1))
        path=${link%%#*}
        [ -n "$path" ] && target=$(dirname "$document")/$path || target=$document
        [ -e "$target" ] || fail "$document links to '$link', which does not exist"
        case $link in
        *'#'*) anchors "$target" | grep -qxF -e "${link#*#}" || fail "$document links to '$link': no such heading" ;;
        esac
    done < <(sed -E -e '/^```/,/^```/d' -e 's/`[^`]*`//g' "$document" | grep -oE '\]\([^) ]+\)' | sed -e 's/^](//' -e 's/)$//')
done
[ "$links" -ge 30 ] || fail "only $links links found"

# The picture of the layers shows those of src/layers.txt, and so does the list in doc/design.md.
for layer in $(grep -oE '^[a-z]+' src/layers.txt); do
    grep -q ">$layer<" doc/layers.svg || fail "doc/layers.svg does not show the layer $layer"
    grep -q "src/$layer/" doc/design.md || fail "doc/design.md does not list the layer $layer"
    checks=$((checks + 1))
done

# doc/extending.md counts the source files that its examples touch: "| a window | 2 | [window.patch](...)".
counted=0
while IFS='|' read -r _ what files example _; do
    patch=doc/$(sed -E 's/.*\(([^)]*)\).*/\1/' <<<"$example")
    touched=$(grep -cE '^\+\+\+ b/(src|include|cli|cmake)/' "$patch")
    [ "$touched" -eq "$files" ] || fail "doc/extending.md: $what touches $touched source files, not $files"
    counted=$((counted + 1))
done < <(grep -E '^\| .*\.patch\)' doc/extending.md)
for patch in tests/extend/*.patch; do
    grep -qF "../$patch" doc/extending.md || fail "doc/extending.md does not explain $patch"
done
checks=$((checks + counted))
# And the code it shows is that of the patches or of the sources.
sed -n 's/^+ *//p' tests/extend/*.patch >"$work/known"
awk '/^```c$/ { inside = 1; next } /^```/ { inside = 0 } inside && NF' doc/extending.md | sed 's/^ *//' >"$work/shown"
! grep -vxF -f "$work/known" "$work/shown" || fail 'doc/extending.md shows code that is in no patch'

# Command lines: in code blocks (indented or fenced) and between backquotes; a backslash at a line's end continues it.
command_lines() {
    sed -e ':again' -e '/\\$/{N;s/\\\n */ /;b again' -e '}' "$1" | awk '
        /^```/ { fenced = !fenced; next }
        fenced || /^    / { print; next }
        { while (match($0, /`[^`]+`/)) { print substr($0, RSTART + 1, RLENGTH - 2); $0 = substr($0, RSTART + RLENGTH) } }' |
        sed -E -e 's/^ *(\$ )?//' -e 's/^([A-Za-z_]+=[^ ]* )+//' -e 's/^[a-z]+ .*\| *(attend )/\1/' | grep -E '^(build/)?attend [a-z]' || true
}
declare -A options
options_of() { # COMMAND: its options, one a line
    "$attend" "$1" --help all | grep -oE '(^| )-(-[a-z][a-z0-9-]*|[a-z]( |$))' | tr -d ' ' | sort -u
}
commands=' '
for name in list demo attention train translate align show heads calibrate score encode average convert info compare curve bench vocabulary serve help; do
    "$attend" "$name" --help >/dev/null 2>&1 || continue
    commands+="$name "
    options[$name]=$(options_of "$name")
done
lines=0
for document in "${documents[@]}"; do
    while IFS= read -r line; do
        line=${line#build/}
        line=${line%% # *}
        read -ra words <<<"$(sed -E -e "s/\"[^\"]*\"|'[^']*'/X/g" -e 's/[<>|].*//' <<<"$line")"
        name=${words[1]:-}
        [[ $commands == *" $name "* ]] || fail "$document: no command '$name' in: $line"
        for word in "${words[@]:2}"; do
            case $word in
            --*) word=${word%%=*} ;;
            -?) ;;
            *) continue ;;
            esac
            grep -qxF -e "$word" <<<"${options[$name]}" || fail "$document: attend $name has no option $word: $line"
            checks=$((checks + 1))
        done
        lines=$((lines + 1))
    done < <(command_lines "$document")
done
[ "$lines" -ge 60 ] || fail "only $lines command lines found"
checks=$((checks + links + lines))
# The worked example of doc/commands.md is what the command prints.
"$attend" attention --query "1 3 2; 1 1 3; 1 2 1" --score dot --show | sed -n '/^weights/,$p' | sed 's/^./    &/' >"$work/example"
awk '/^    attend attention --query "1 3 2/ { found = 1; getline; next } found && /^\(The scores/ { exit } found' doc/commands.md | sed -e '$d' >"$work/shown"
diff "$work/shown" "$work/example" >&2 || fail "doc/commands.md shows another worked example"
checks=$((checks + 1))
finish
