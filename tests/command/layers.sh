#!/usr/bin/env bash
# The tree keeps its own rules: includes point down the list of layers, the command knows attend.h only, the library never
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
layers="base kernels tape attention layers models io text image run draw serve"
declare -A place=() home=([attend.h]=include)
n=0
for layer in $layers; do
    place[$layer]=$((n += 1))
    for header in src/"$layer"/*.h; do
        [ -e "$header" ] && home[$(basename "$header")]=$layer
    done
done
place[include]=0
for directory in src/*/; do
    [ -n "${place[$(basename "$directory")]-}" ] || complain "$directory is not in the list of layers"
done

includes_of()
{
    sed -n 's/^ *# *include "\([^"]*\)".*/\1/p' "$1"
}
for file in src/*/*.[ch]; do
    layer=$(basename "$(dirname "$file")")
    for header in $(includes_of "$file"); do
        from=${home[$header]-nowhere}
        if [ "$from" = nowhere ]; then
            complain "$file includes $header, which no layer has"
        elif [ "${place[$from]}" -gt "${place[$layer]}" ]; then
            complain "$file ($layer) includes $header ($from): an include may only point down"
        fi
    done
done
for file in cli/*.[ch]; do
    for header in $(includes_of "$file"); do
        # The benchmark shows the insides, so the command reaches it by its one header.
        [ "$header" = attend.h ] || [ -e "cli/$header" ] || [ "$header" = bench.h ] ||
            complain "$file includes $header: the command uses attend.h only"
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
