#!/usr/bin/env bash
# The examples compile as C and as C++ with nothing but attend.h and run: one prints the worked example's numbers, the
# other translates with a model trained here as the command does.
set -eu
. "$(dirname "$0")/../library.sh"

cat >"$scratch/expected" <<'END'
1.0000 2.9577 2.0113
1.0000 1.5401 2.7226
1.0000 2.8642 2.0000
END
compile()
{
    local example=$1
    shift
    "$@" -Wall -Wextra -pedantic -Werror $sanitizers "$top/examples/$example.c" -I"$top/include" -L"$build" \
        -Wl,-rpath,"$build" -lattend -o "$scratch/$example"
}
once()
{
    compile attend_once "$@"
    "$scratch/attend_once" >"$scratch/output"
    diff "$scratch/expected" "$scratch/output" || fail "attend_once compiled by '$*' prints something else"
}
once "${CC:-cc}" -std=c17
once "${CXX:-c++}" -std=c++17 -x c++

printf 'a b\nb c\nc a b\n' >"$scratch/lines"
"$build/attend" train --source "$scratch/lines" --target "$scratch/lines" --output "$scratch/model" --embedding 4 --hidden 6 \
    --attention 4 --maxout 4 --epochs 3 --quiet
"$build/attend" translate -m "$scratch/model" --beam 4 --length-penalty 0.6 <"$scratch/lines" >"$scratch/expected"
translate()
{
    compile translate "$@"
    "$scratch/translate" "$scratch/model" <"$scratch/lines" | grep -v '^  ' >"$scratch/output" || true
    diff "$scratch/expected" "$scratch/output" || fail "translate compiled by '$*' prints something else"
    code=0
    "$scratch/translate" "$scratch/lines" </dev/null 2>"$scratch/said" || code=$?
    [ "$code" = 1 ] && grep -q '^translate: ' "$scratch/said" || fail "translate with no model says $(cat "$scratch/said")"
}
translate "${CC:-cc}" -std=c17
translate "${CXX:-c++}" -std=c++17 -x c++
