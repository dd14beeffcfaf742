#!/usr/bin/env bash
# The tree keeps its own rules: includes point down the list of layers, the command knows the public headers only, the library never
# prints or leaves, files stay short enough to hold, and nothing is marked as unfinished.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top"
bad=0
complain()
{
    echo "$*" >&2
    bad=1
}

# Lowest first; a layer may include its own headers and those of the layers before it.
declare -A place=()
n=0
for layer in $(sed -n 's/^\([a-z]*\) .*/\1/p' src/layers.txt); do
    place[$layer]=$((n += 1))
    [ -d "src/$layer" ] || complain "src/layers.txt names $layer, and there is no src/$layer"
done
for directory in src/*/; do
    [ -n "${place[$(basename "$directory")]-}" ] || complain "$directory is not in src/layers.txt"
done

includes_of()
{
    sed -n 's/^ *# *include "\([^"]*\)".*/\1/p' "$1"
}
for file in src/*/*.[ch]; do
    layer=$(basename "$(dirname "$file")")
    for header in $(includes_of "$file"); do
        [[ $header == attend.h || $header == attend_unstable.h || $header == attend_server.h ]] && continue
        from=${header%%/*}
        if [ ! -e "src/$header" ]; then
            complain "$file includes $header: write it as LAYER/NAME.h, as it stands in src"
        elif [ "${place[$from]-0}" -gt "${place[$layer]-0}" ]; then
            complain "$file includes $header: an include may only point down the list of src/layers.txt"
        elif [[ $header == *_internal.h && $from != "$layer" ]]; then
            complain "$file includes $header, which is internal to src/$from"
        fi
    done
done

# A header that only its own layer includes is called x_internal.h; the one named after its layer is the layer's face.
for header in src/*/*.h; do
    layer=$(basename "$(dirname "$header")")
    name=$layer/$(basename "$header")
    [[ $name == *_internal.h || $name == "$layer/$layer.h" ]] && continue
    grep -lF "#include \"$name\"" src/*/*.[ch] src/*/*.cc | grep -v -e "^src/$layer/.*\.cc*\$" -e "^src/$layer/.*_internal.h\$" |
        grep -q . || complain "$header is included by $layer alone: call it ${name%.h}_internal.h"
done
for file in cli/*.[ch] cli/*/*.[ch]; do
    for header in $(includes_of "$file"); do
        [[ $header == attend.h || $header == attend_unstable.h || $header == attend_server.h ]] || [ -e "cli/$header" ] ||
            complain "$file includes $header: the command uses the public headers only"
    done
done

# The library never prints, exits or aborts; what formats into memory is fine.
leaving='(^|[^a-z_])(printf|fprintf|vprintf|vfprintf|puts|fputs|putchar|perror|exit|_exit|abort|assert) *\('
if grep -nE "$leaving" src/*/*.[ch] >&2; then
    complain "the library prints, exits or aborts in the lines above"
fi

for file in $(find include src cli tests bench examples -name '*.[ch]' -o -name '*.cc' -o -name '*.py' -o -name '*.js' -o -name '*.sh'); do
    lines=$(wc -l <"$file")
    [ "$lines" -le 700 ] || complain "$file has $lines lines; 700 is the limit"
done
# The words are written with a gap here, so that this line does not find itself.
marks='\b(TO''DO|FIX''ME|XX''X|HA''CK)\b'
if grep -rnE "$marks" include src cli tests bench examples doc cmake Makefile CMakeLists.txt README.md >&2; then
    complain "unfinished work is marked in the lines above"
fi
exit $bad
