#!/usr/bin/env bash
# extend.sh [TREE]: doc/extending.md says how many source files a new score, normaliser and so on touches, and that
# everything else follows. Here the patches beside this script add one of each to a copy of the tree. Each must touch
# that many files of src and apply; then the copy is built, the new names must be seen, and the tests that iterate over
# the catalogue must pass with them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=$(cd "${1:-$here/../..}" && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

# patch | files of src | command | what it must show
additions='
score.patch      | 2 | list                   | manhattan
score.patch      | 2 | attention --help       | manhattan
normaliser.patch | 2 | list                   | squared
normaliser.patch | 2 | attention --help       | squared
window.patch     | 2 | list windows           | ahead:W
position.patch   | 2 | list positions         | log-distance
op.patch         | 2 | help                   | attend
metric.patch     | 1 | score --help           | first-word
option.patch     | 3 | train --help           | --rate-floor RATE
option.patch     | 3 | help --man train       | rate
'
# The programs that check every entry of the catalogue and every setting.
programs='attend_double_test_ops attend_double_test_attention_grad attend_double_test_packed attend_static_test_exact attend_static_test_settings'

fail() {
    echo "FAILED: $*" >&2
    exit 1
}
trimmed() {
    xargs <<<"$1"
}

(cd "$tree" && tar -c --exclude=./.git --exclude=./build --exclude='./build-*' .) | tar -x -C "$copy"
applied=' '
while IFS='|' read -r patch files _; do
    patch=$(trimmed "$patch")
    if [ -z "$patch" ] || [[ $applied == *" $patch "* ]]; then
        continue
    fi
    applied+="$patch "
    touched=$(grep -c '^+++ b/src/' "$here/$patch" || true)
    [ "$touched" -eq "$files" ] || fail "$patch touches $touched files of src and not$files"
    patch -s -p1 -d "$copy" <"$here/$patch" || fail "$patch does not apply; its context has changed"
done <<<"$additions"

# Every operation is checked, too: those of a record's own file by the tests that iterate over the catalogue.
bash "$copy/tests/command/ops_checked.sh" "" "$copy" || fail "ops_checked.sh"

command -v ccache >/dev/null && export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
cmake -S "$copy" -B "$copy/build" -DAT_TESTS=ON -DAT_BENCH=OFF -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O1 \
    -DCMAKE_CXX_FLAGS_DEBUG=-O1 >"$copy/build.log"
# shellcheck disable=SC2086
cmake --build "$copy/build" -j2 --target attend $programs >>"$copy/build.log" 2>&1 || {
    grep -E 'error|warning:' -A4 "$copy/build.log" | head -40
    fail "the copy does not build"
}

while IFS='|' read -r patch files command shown; do
    command=$(trimmed "$command")
    [ -n "$command" ] || continue
    # shellcheck disable=SC2086
    "$copy/build/attend" $command >"$copy/shown" 2>&1 || fail "attend $command"
    grep -qF -- "$(trimmed "$shown")" "$copy/shown" || fail "attend $command does not show $shown of $patch"
done <<<"$additions"
for program in $programs; do
    "$copy/build/tests/$program" >"$copy/program.log" 2>&1 || {
        grep -E 'ERROR|FAILED' "$copy/program.log" | head
        fail "$program with all patches"
    }
done

# A model takes them as it takes any other, in training and in a search that decodes word by word.
printf 'a b c\nb c d\nc d e\na c e\n' >"$copy/lines"
for model in transformer bahdanau; do
    "$copy/build/attend" train --model "$model" --source "$copy/lines" --target "$copy/lines" --score manhattan \
        --normaliser squared --hidden 16 --heads 2 --batch-size 4 --updates 5 --quiet --output "$copy/$model"
    "$copy/build/attend" translate --model "$copy/$model" <"$copy/lines" >"$copy/translated"
    [ "$(wc -l <"$copy/translated")" -eq 4 ] || fail "$model translates 4 lines to $(wc -l <"$copy/translated")"
done
# An option is one of a --config file, is shared by a resumed run, and is named when it differs.
printf 'source = %s/lines\ntarget = %s/lines\noutput = %s/floor\nhidden = 8\nrate-floor = 0.01\n' \
    "$copy" "$copy" "$copy" >"$copy/floor.conf"
"$copy/build/attend" train --config "$copy/floor.conf" --updates 2 --quiet || fail "rate-floor in a --config file"
"$copy/build/attend" train --config "$copy/floor.conf" --updates 4 --quiet --resume || fail "a run with --rate-floor resumes"
! "$copy/build/attend" train --config "$copy/floor.conf" --updates 6 --resume --rate-floor 0.02 2>"$copy/shown" ||
    fail "a run resumes with another --rate-floor"
grep -q -- '--rate-floor 0.01' "$copy/shown" || fail "the refusal does not name --rate-floor: $(cat "$copy/shown")"
printf '%s\n' '#include <attend.h>' '#include <string.h>' 'int main(void)' '{' \
    '    for (int i = 0; at_training_option_at(i); i++)' \
    '        if (strcmp(at_training_option_at(i)->name, "rate-floor") == 0)' '            return 0;' '    return 1;' '}' >"$copy/option.c"
cmake --build "$copy/build" -j2 --target attend_shared >>"$copy/build.log" 2>&1
"${CC:-cc}" "$copy/option.c" -I"$copy/include" -L"$copy/build" -Wl,-rpath,"$copy/build" -lattend -o "$copy/option" &&
    "$copy/option" || fail "at_training_option_at does not list rate-floor"
printf 'a b c\nx y\n' >"$copy/reference"
printf 'a c\ny x\n' | "$copy/build/attend" score first-word --reference "$copy/reference" | grep -qx 'first-word 50.00' ||
    fail "attend score first-word"
echo "$(wc -w <<<"$applied") additions, each in the files it may touch"
