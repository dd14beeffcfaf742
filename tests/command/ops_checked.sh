#!/bin/bash
# Every operation in src/ is gradient-checked: its name stands as "op:NAME" in a test of tests/double (see gradcheck.h).
# With a directory as second argument the tree there is judged instead.
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
for name in "${names[@]}"; do
    if ! grep -qF "\"op:$name\"" "$tree"/tests/double/*.c; then
        echo "the operation $name has no gradient check: no \"op:$name\" in tests/double"
        status=1
    fi
done
exit $status
