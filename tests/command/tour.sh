#!/usr/bin/env bash
# The README's tour, as written: every command of its console blocks runs in one shell, beginning in a folder like the top of
# the tree, and prints what the README shows. Numbers depend on the processor (its vector kernels round differently), so
# they are compared by their form, and shades are left out; the figures that tell whether the model has learnt have bounds
# of their own. "..." in the README stands for any lines. The data must be what its generator writes.
. "$(dirname "$0")/support.bash"
top=$here/../..

mkdir build made
cp -r "$top/examples" .
ln -s "$attend" build/attend
bash "$top/examples/tour/make.sh" made
for file in train.en train.de test.en test.de test.links; do
    same_file "$top/examples/tour/$file" "made/$file"
done

# The blocks as two files for each command, NN.command and NN.shown.
awk -v folder="$work/made" '
/^```console$/ { inside = 1; next }
/^```/ { inside = 0 }
!inside { next }
/^\$ / { file = sprintf("%s/%02d", folder, ++n); print substr($0, 3) >(file ".command"); printf "" >(file ".shown"); next }
{ print >(file ".shown") }' "$top/README.md"
count=$(ls "$work"/made/*.command | wc -l)
[ "$count" -ge 10 ] || fail "only $count commands in the README"

# form FILE: words as they are, numbers as N, no shades, one blank between; "..." stays.
form() {
    sed -E -e 's/[█▓▒░]//g' -e 's/-?[0-9]+(\.[0-9]+)?/N/g' -e 's/ +/ /g' -e 's/^ //' "$1"
}
# A model that has trained little says other words.
if ! learns; then
    sed -i 's/--updates 150/--updates 4/; s/--updates 600/--updates 8/' "$work"/made/*.command
    sed -i 's/^updates.*/updates = 4/' examples/tour/models.spec
fi
make() { [ -x build/attend ]; } # what `make` has done already
for command in "$work"/made/*.command; do
    [ "$(wc -m <"$command")" -le 87 ] || fail "too long for a line of the README: $(cat "$command")"
done

for command in "$work"/made/*.command; do
    name=${command%.command}
    . "$command" >"$name.said" 2>"$name.err" || fail "$(cat "$command") exits with $?: $(cat "$name.err")"
    [ ! -s "$name.err" ] || fail "$(cat "$command") prints on stderr: $(cat "$name.err")"
    form "$name.shown" >"$name.wanted"
    form "$name.said" >"$name.got"
    # A pattern for the whole output: "..." is any lines, the rest is literal.
    wanted=$(<"$name.wanted") got=$(<"$name.got")
    pattern=${wanted//.../$'\001'}
    pattern=$(printf '%s' "$pattern" | sed 's/[][*?\\]/\\&/g')
    # shellcheck disable=SC2053 # a pattern it is
    learns || ! grep -q 'attend show' "$command" || continue
    [[ $got == ${pattern//$'\001'/*} ]] || fail "$(cat "$command") prints
$(cat "$name.said")
and not, as the README shows,
$(cat "$name.shown")"
    checks=$((checks + 1))
done

# said COMMAND-PATTERN: the outputs of the commands that match, in order.
said() {
    local command
    for command in "$work"/made/*.command; do
        ! grep -q -e "$1" "$command" || cat "${command%.command}.said"
    done
}
between() {
    awk -v low="$1" -v high="$2" -v value="$3" 'BEGIN { exit !(value >= low && value <= high) }' || fail "$4 is $3, not between $1 and $2"
    checks=$((checks + 1))
}
if learns; then
    mapfile -t accuracy < <(said 'score accuracy' | awk '$1 == "accuracy" { print $2 }')
    between 2 90 "${accuracy[0]}" 'the accuracy after 150 updates'
    between 95 100 "${accuracy[1]}" 'the accuracy after 600 updates'
    between 0 20 "$(said 'score aer' | awk '{ print $2 }')" 'the alignment error rate'
    between 0 80 "$(said compare | awk '$1 == "one" { print $3; exit }')" 'the accuracy without attention'
    between 90 100 "$(said compare | awk '$1 == "bahdanau" { print $2; exit }')" 'the accuracy of bahdanau'
    # The nouns, the adjective and the infinitive attend most to their translations.
    show=$(grep -l 'attend show' "$work"/made/*.command)
    attended=$(sed 's/[█▓▒░]//g' "${show%.command}.said" | awk '
        NR == 4 { split($0, source, " ") }
        NR > 4 { best = 2; for (i = 3; i <= NF; i++) if ($i > $best) best = i; print $1, source[best - 1] }' | grep -E '^(müde|Kind|Hund|sehen) ')
    equal $'müde tired\nKind child\nHund dog\nsehen see' "$attended" 'where the words attend'
fi
# A second tour: the model that is there is replaced by the command of the README, and by no other.
first=$(grep -l 'train .*--overwrite' "$work"/made/*.command)
. "$first" >again.said 2>&1 || fail "a second tour: $(cat again.said)"
said=$("$attend" train --config tour.conf 2>&1) && fail "a model is replaced without --overwrite"
equal "attend: 'en-de.safetensors' exists, from a run of $(learns && echo 150 || echo 4) updates: --resume continues the run, --overwrite starts again and \
replaces it at the first save; or choose another --output" "$said" "a second tour without --overwrite"
finish
