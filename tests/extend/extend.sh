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
option.patch     | 3 | train --help all       | --rate-floor RATE
option.patch     | 3 | help --man train       | rate
model.patch      | 2 | list models            | bag
reader.patch     | 2 | help                   | attend
'
# The programs that check every entry of the catalogue, every model and every setting; the slow ones first.
programs='attend_double_test_models attend_double_test_attention_grad attend_static_test_exact attend_double_test_ops
    attend_double_test_packed attend_static_test_settings'

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
    grep -E 'error:|warning:' -A4 "$copy/build.log" | head -40
    fail "the copy does not build"
}

while IFS='|' read -r patch files command shown; do
    command=$(trimmed "$command")
    [ -n "$command" ] || continue
    # shellcheck disable=SC2086
    "$copy/build/attend" $command >"$copy/shown" 2>&1 || fail "attend $command"
    grep -qF -- "$(trimmed "$shown")" "$copy/shown" || fail "attend $command does not show $shown of $patch"
done <<<"$additions"
# shellcheck disable=SC2016,SC2086
printf '%s\n' $programs | xargs -P2 -I{} sh -c '"$1/build/tests/$2" >"$1/$2.log" 2>&1 || touch "$1/$2.failed"' sh "$copy" {}
for program in $programs; do
    [ ! -e "$copy/$program.failed" ] || {
        grep -E 'ERROR|FAILED' "$copy/$program.log" | head
        fail "$program with all patches"
    }
done

# A model takes them as it takes any other, in training and in a search that decodes word by word.
printf 'a b c\nb c d\nc d e\na c e\n' >"$copy/lines"
for model in transformer bahdanau bag; do
    options='--score manhattan --normaliser squared --heads 2'
    [ $model != bag ] || options=
    # shellcheck disable=SC2086
    "$copy/build/attend" train --model $model --source "$copy/lines" --target "$copy/lines" $options --hidden 16 \
        --batch-size 4 --updates 5 --quiet --output "$copy/$model"
    "$copy/build/attend" translate --model "$copy/$model" <"$copy/lines" >"$copy/translated"
    [ "$(wc -l <"$copy/translated")" -eq 4 ] || fail "$model translates 4 lines to $(wc -l <"$copy/translated")"
done
# A model takes the options it names and no others.
! "$copy/build/attend" train --model bag --source "$copy/lines" --target "$copy/lines" --score dot --output "$copy/bag" \
    2>"$copy/shown" || fail "the model bag takes --score"
grep -q "model 'bag' does not use --score" "$copy/shown" || fail "the refusal of --score: $(cat "$copy/shown")"
# A file of another program: this model answers b to everything.
{
    printf 'TOYMODEL 2 3\na b c\n'
    echo '0 0 0 0  0 0  0 0 0 0  0 0' # U and b of encoder and decoder
    echo '0 0 0 0 0 0 0 0 0 0 0 0 0 0' # E of the source, for <pad> <unk> <s> </s> a b c
    echo '0 0 0 0 1 0 0 0 0 0 0 1 0 0' # E of the target: <s> and b
    echo '0 0 0 0 0 0 0 9 0 0 9 0 0 0' # W of the output: </s> after b, b after <s>
    echo '0 0 0 0 0 0 0' # b of the output
} >"$copy/toy"
"$copy/build/attend" info "$copy/toy" | grep -q '^parameters *61 in 8 arrays' || fail "attend info of a file of the reader"
[ "$(printf 'a\nc a\n' | "$copy/build/attend" translate --model "$copy/toy")" = $'b\nb' ] ||
    fail "attend translate with a file of the reader"
head -c 60 "$copy/toy" >"$copy/cut"
! "$copy/build/attend" info "$copy/cut" 2>"$copy/shown" || fail "attend info reads a file that is cut off"
grep -q "'$copy/cut': its settings and vocabularies need 61 parameters" "$copy/shown" || fail "the refusal of a file that is cut off: $(cat "$copy/shown")"
echo TOYMODELS >"$copy/other"
! "$copy/build/attend" info "$copy/other" 2>"$copy/shown" || fail "attend info reads a file of no known format"
grep -q 'toy (text that begins with TOYMODEL)' "$copy/shown" || fail "the known formats: $(cat "$copy/shown")"
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
