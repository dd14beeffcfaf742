#!/bin/bash
# Every operation in src/ is gradient-checked: its name stands as "op:NAME" in a test of tests/double (see gradcheck.h).
# An operation in the file of a score's or normaliser's record is checked with it: test_attention_grad.c iterates over
# the catalogue. With a directory as second argument the tree there is checked instead.
set -u
tree=${2:-$(dirname "$0")/../..}
declared='static const at_op [A-Za-z0-9_]+ = \{ *(\.name = )?"[A-Za-z0-9_]+"'
mapfile -t names < <(find "$tree/src" -name '*.c' -exec cat {} + | grep -oE "$declared" | grep -oE '"[^"]+"' | tr -d '"' | sort)
count=$(find "$tree/src" -name '*.c' -exec cat {} + | grep -cE '^static const at_op ')
status=0
if [ "${#names[@]}" -ne "$count" ] || [ "$count" -eq 0 ]; then
    echo "$count operations are declared and ${#names[@]} could be read: write them as static const at_op x_op = {\"x\", ...}"
    status=1
fi
twice=$(printf '%s\n' "${names[@]}" | uniq -d)
if [ -n "$twice" ]; then
    echo "two operations have the same name: $twice"
    status=1
fi
# Is the operation declared in a file that defines a record of the catalogue?
has_record() {
    local file
    file=$(grep -rlE "^static const at_op [A-Za-z0-9_]+ = \{ *(\.name = )?\"$1\"" "$tree/src/attention") || return 1
    grep -qE '^const at_(score|normaliser)_record ' "$file"
}
for name in "${names[@]}"; do
    has_record "$name" && continue
    if ! grep -qF "\"op:$name\"" "$tree"/tests/double/*.c; then
        echo "the operation $name has no gradient check: no \"op:$name\" in tests/double"
        status=1
    fi
done
exit $status
