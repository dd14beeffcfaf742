#!/usr/bin/env bash
# The programs of examples/: each compiles without a warning as C and as C++ with nothing but the public headers, and prints what it
# should. The code that doc/embedding.md shows is theirs.
set -eu
. "$(dirname "$0")/../library.sh"
cd "$scratch"
attend=$build/attend

compile()
{
    local example=$1
    shift
    "$@" -Wall -Wextra -pedantic -Werror $sanitizers "$top/examples/$example.c" -I"$top/include" -L"$build" \
        -Wl,-rpath,"$build" -lattend -o "$scratch/$example"
}
# prints EXAMPLE ARGUMENTS...: it prints the lines that come in, each a pattern of the whole line (grep -E).
prints()
{
    local example=$1 line
    shift
    cat >expected
    "./$example" "$@" >output 2>&1 || fail "$example exits with $?: $(cat output)"
    [ "$(wc -l <expected)" = "$(wc -l <output)" ] || fail "$example prints $(cat output)"
    while IFS= read -r line <&3 && IFS= read -r pattern <&4; do
        [[ $line =~ ^$pattern$ ]] || fail "$example prints '$line', not '$pattern'"
    done 3<output 4<expected
}
# refuses CODE PATTERN EXAMPLE ARGUMENTS...: that exit code, and one line on stderr that matches.
refuses()
{
    local code=$1 pattern=$2 example=$3 got=0
    shift 3
    "./$example" "$@" </dev/null >output 2>said || got=$?
    [[ $got == $code ]] && [ "$(wc -l <said)" = 1 ] && grep -qE "$pattern" said ||
        fail "$example $* exits with $got and prints $(cat said)"
}

printf 'a b\nb c\nc a b\n' >lines
"$attend" train --source lines --target lines --output model --embedding 4 --hidden 6 --attention 4 --maxout 4 --epochs 3 --quiet
"$attend" train --source lines --target lines --output layers --model transformer --hidden 8 --ffn 8 --layers 1 --heads 2 \
    --epochs 1 --quiet
"$attend" translate -m model --beam 4 --length-penalty 0.6 <lines >translated

try_all()
{
    local name
    for name in "$top"/examples/*.c; do
        compile "$(basename "$name" .c)" "$@"
    done
    prints attend_once <<'EXPECTED'
1.0000 2.9577 2.0113
1.0000 1.5401 2.7226
1.0000 2.8642 2.0000
EXPECTED
    ./threads model <lines >output || fail "threads exits with $?"
    "$attend" translate model <lines | cmp - output >&2 || fail "threads prints $(cat output)"
    refuses 1 "is too short|is not|truncated" threads lines
    prints arrays <<'EXPECTED'
the first six halves: rank 2, 2 x 3
0 0\.5 1 1\.5 2 2\.5
EXPECTED
    "$attend" attention --query arrays.npy --key arrays.npy --value arrays.safetensors:half --out out.npy
    prints weights <<'EXPECTED'
query 0: output 1\.00 0\.00, most weight on key 0, entropy 0\.00, dL/dv 1\.46
query 1: output 1\.00 0\.67, most weight on key 1, entropy 0\.63, dL/dv 1\.02
query 2: output 0\.23 1\.72, most weight on key 2, entropy 0\.66, dL/dv 0\.85
query 3: output 1\.59 1\.00, most weight on key 3, entropy 0\.97, dL/dv 0\.67
 +0 +1 +2 +3
query 1  ░░ 0\.33  ▓▓ 0\.67     0\.00     0\.00
query 3     0\.08  ░░ 0\.16     0\.08  ▓▓ 0\.67
EXPECTED
    prints errors <<'EXPECTED'
(file not accessible|failed): cannot read 'no/such/file.npy': No such file or directory
wrong setting or argument: no score 'scalled'; did you mean 'scaled'\?
sizes do not fit together: .*HEADS is 3.*8
EXPECTED
    ./catalogue >output
    for name in $("$attend" list | awk '/^[a-z]/ { print }' | grep -oE '^(sliding:W|local-p:D|rope|bahdanau)'); do
        grep -q " $name$" output || fail "catalogue lacks $name: $(cat output)"
    done
    prints score <<'EXPECTED'
chrF2\|nrefs:1\|case:mixed\|eff:yes\|nc:6\|nw:0\|space:no\|version:attend-[0-9.]+, larger is better
first 75\.0, second 41\.4, difference 33\.6
line 0: 66\.0 22\.2
line 1: 100\.0 61\.8
line 2: 100\.0 23\.8
line 3: 27\.5 100\.0
word error rate of the first 14\.29
EXPECTED
    rm -f own.*
    prints train lines lines own.model model=luong embedding=4 hidden=6 epochs=3 report-every=1 input-feeding <<'EXPECTED'
epoch 1, update 1: loss [0-9.]+ per token
epoch 2, update 2: loss [0-9.]+ per token
epoch 3, update 3: loss [0-9.]+ per token
3 updates of [0-9]+ parameters
EXPECTED
    refuses 2 "^train: no setting 'epochss'; did you mean 'epochs'\?$" train lines lines own.model epochss=3
    ./translate own.model <lines >/dev/null
    rm -f digits.*
    prints train_memory digits.model <<'EXPECTED'
four seven two
EXPECTED
    ./translate model <lines | grep -v '^  ' >output || true
    diff translated output || fail "translate compiled by '$*' prints something else"
    refuses '[1-8]' '^translate: ' translate lines
    refuses 1 '^serve: ' serve lines de en
    if command -v curl >/dev/null; then
        mkfifo going
        ./serve model de en <going >output 2>said &
        exec 6>going
        for wait in $(seq 100); do [ -s output ] || [ -s said ] && break; sleep 0.05; done
        said=$(curl -sS -d source=de -d target=en -d "q=$(head -1 lines)" "$(cat output)") || fail "serve prints $(cat output said)"
        exec 6>&-
        wait $! || fail "serve exits with $?"
        rm going
        [ "$said" = "{\"translatedText\":\"$(head -1 lines | "$attend" translate model --beam 4)\"}" ] || fail "serve answers $said"
    fi
    ./maps model "a b" >output || fail "maps prints $(cat output)"
    grep -qE '^cross 1\.1(  [^ ]+->(a|b) [01]\.[0-9]{2})*  </s>->(a|b) [01]\.[0-9]{2}$' output &&
        [ "$(wc -l <output)" = 2 ] || fail "maps of a recurrent model prints $(cat output)"
    ./maps layers "a b" >output || fail "maps prints $(cat output)"
    [ "$(tail -n +2 output | cut -d' ' -f1-2 | tr '\n' ,)" = "encoder 1.1,encoder 1.2,decoder 1.1,decoder 1.2,cross 1.1,cross 1.2," ] ||
        fail "maps of a transformer prints $(cat output)"
}
try_all "${CC:-cc}" -std=c17
try_all "${CXX:-c++}" -std=c++17 -x c++

# Every line of C that doc/embedding.md shows is a line of a program here.
if [ -f "$top/doc/embedding.md" ]; then
    sed 's/^ *//' "$top"/examples/*.c >program_lines
    awk '/^```c$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$top/doc/embedding.md" | sed 's/^ *//' | grep -v '^$' >shown_lines
    [ "$(wc -l <shown_lines)" -ge 20 ] || fail "doc/embedding.md shows only $(wc -l <shown_lines) lines of C"
    ! grep -vxF -f program_lines shown_lines || fail 'doc/embedding.md shows lines of C that are in no example'
fi
