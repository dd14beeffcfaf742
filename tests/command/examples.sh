#!/usr/bin/env bash
# The example compiles as C and as C++ with nothing but attend.h, runs, and prints the worked example's numbers.
set -eu
. "$(dirname "$0")/../library.sh"

cat >"$scratch/expected" <<'END'
1.0000 2.9577 2.0113
1.0000 1.5401 2.7226
1.0000 2.8642 2.0000
END
compile()
{
    "$@" -Wall -Wextra -pedantic -Werror $sanitizers "$top/examples/attend_once.c" -I"$top/include" -L"$build" \
        -Wl,-rpath,"$build" -lattend -o "$scratch/attend_once"
    "$scratch/attend_once" >"$scratch/output"
    diff "$scratch/expected" "$scratch/output" || fail "attend_once compiled by '$*' prints something else"
}
compile "${CC:-cc}" -std=c17
compile "${CXX:-c++}" -std=c++17 -x c++
