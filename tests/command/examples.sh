#!/usr/bin/env bash
# The example compiles as C and as C++ with nothing but attend.h, runs, and prints the worked example's numbers.
set -eu
. "$(dirname "$0")/../library.sh"

cat >"$scratch/expected" <<'END'
1.000000 2.957691 2.011295
1.000000 1.540148 2.722573
1.000000 2.864164 2.000000
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
