# attend demo: the pages, the pauses, the demos that learn nothing, and what is refused before the first page.
. "$(dirname "$0")/support.bash"
. "$here/demo.bash"

narrow_golden demo_self_attention.txt self-attention
golden demo_self_attention.txt demo self-attention --threads 1
golden demo_self_attention.txt demo self-attention --threads 3 --seed 1 --all
refuse 2 "no demo 'self-atention'; did you mean 'self-attention'?" demo self-atention
refuse 2 "demo 'self-attention' has no model to choose, so it does not use --score" demo self-attention --score dot
refuse 2 "demo 'self-attention' takes no input, so '1 2 3' is too much" demo self-attention 1 2 3
refuse 2 "no option '-1'; an argument that begins with a dash comes after --" demo self-attention -1 2 3
refuse 2 "demo 'self-attention' takes no input, so '-1 2 3' is too much" demo self-attention -- -1 2 3

# The numbers that the worked example is known for stand in the golden itself.
for line in '0.97 0.02 0.01' '0.27 0.73 0.00' '0.90 0.05 0.05' '1 2.957691 2.011295' '1 1.540148 2.722573' \
    '1 2.864164 2.000000' '0.10 0.66 0.24' '0.49 0.49 0.02' '0.16 0.42 0.42'; do
    grep -qF -- "$line" "$here/demo_self_attention.txt" || fail "the demo does not show $line"
done

"$attend" demo self-attention --seed 2 >other.txt
cmp -s other.txt "$here/demo_self_attention.txt" && fail "another seed shows the same vectors"
diff <(sed '/^5\. /,/^7\. /d' other.txt) <(sed '/^5\. /,/^7\. /d' "$here/demo_self_attention.txt") >&2 ||
    fail "another seed changes more than the random vectors"

# On a terminal a demo pauses after each page but the last: Enter goes on, q and the end of the input stop it.
on_terminal() {
    TERM=dumb script -qec "'$attend' demo self-attention $1" /dev/null | tr -d '\r'
}
if command -v script >/dev/null; then
    prompt='(Enter: the next page, q: stop)'
    said=$(printf '\n%.0s' {1..20} | on_terminal '')
    equal 8 "$(grep -cF "$prompt" <<<"$said")" "pauses of nine pages"
    grep -q '^9\. ' <<<"$said" || fail "Enter does not lead to the last page"
    said=$(printf '\nq\n' | on_terminal '')
    grep -q '^2\. ' <<<"$said" || fail "Enter does not lead to the second page"
    grep -q '^3\. ' <<<"$said" && fail "q does not stop the demo"
    said=$(on_terminal '' </dev/null)
    grep -q '^2\. ' <<<"$said" && fail "the end of the input does not stop the demo"
    said=$(on_terminal --all </dev/null)
    equal "$(cat "$here/demo_self_attention.txt")" "$said" "--all on a terminal"
fi
finish
