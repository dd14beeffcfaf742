# attend demo self-attention: the whole text, the same whatever the threads, another table with another seed.
. "$(dirname "$0")/support.bash"

golden demo_self_attention.txt demo self-attention
golden demo_self_attention.txt demo self-attention --threads 1
golden demo_self_attention.txt demo self-attention --threads 3 --seed 1
refuse 2 "no demo 'self-atention'; did you mean 'self-attention'?" demo self-atention
refuse 2 "no demo 'flight'; there are 'self-attention', 'antonyms', 'beer' and 'dates'" demo flight
refuse 2 "demo 'self-attention' learns nothing, so it does not use --score" demo self-attention --score dot

# The numbers that the worked example is known for stand in the golden itself.
for line in '0.97 0.02 0.01' '0.27 0.73 0.00' '0.90 0.05 0.05' '1 2.957691 2.011295' '1 1.540148 2.722573' \
    '1 2.864164 2.000000' '0.10 0.66 0.24' '0.49 0.49 0.02' '0.16 0.42 0.42'; do
    grep -qF -- "$line" "$here/demo_self_attention.txt" || fail "the demo does not show $line"
done

"$attend" demo self-attention --seed 2 >other.txt
cmp -s other.txt "$here/demo_self_attention.txt" && fail "another seed shows the same vectors"
diff <(sed '/^5\. /,/^6\. /d' other.txt) <(sed '/^5\. /,/^6\. /d' "$here/demo_self_attention.txt") >&2 ||
    fail "another seed changes more than the random vectors"
finish
