# attend demo step: the sentence, numbers that follow from each other, other steps, and what is refused.
. "$(dirname "$0")/support.bash"
. "$here/demo.bash"

known="i, you or we; see, want, know or take; the; red, green, black or blue; car, house, table, dog, boat or book"
refuse 2 "there are 4 words and must be at least 5" demo step i want the car
refuse 2 "'i want the car red' is not a sentence of this demo: $known" demo step i want the car red
refuse 2 "'7' is not a step from 1 to 6, which stands behind the slash" demo step 'i want the red car / 7'
refuse 2 "'' is not a step from 1 to 6, which stands behind the slash" demo step 'i want the red car /'
refuse 2 "demo 'step' has no model to choose, so it does not use --model" demo step --model luong

mkdir folder
TMPDIR=$PWD/folder "$attend" demo step >said.txt
equal "" "$(ls folder)" "files that the demo leaves behind"
narrow said.txt
says said.txt 'i want the red car -> je veux la voiture rouge' 'e_ij = v_aᵀ tanh(W_a s_{i-1} + U_a h_j)'
equal 4 "$(grep -cE '^    update +[0-9]+   loss [0-9.]+ ' said.txt)" "losses that the demo shows"
grep -q '^The step shown on the next pages is i = 3: it writes "la" after "veux"\.$' said.txt || fail "the step is $(cat said.txt)"
# vector NAME: the numbers of "NAME = (...)", which may take two lines.
vector() {
    awk -v name="    $1 = (" 'index($0, name) == 1 { on = 1 } on { print } on && /\)$/ { exit }' said.txt |
        tr -d '\n' | sed 's/.*(//; s/)//; s/,//g'
}
# The weights are the softmax of the scores, and the next state follows from the gates.
awk '/^6\. /{ on = 1 } /^7\. /{ on = 0 } on && NF == 4 && $3 ~ /^[0-9.]+$/ { e[++n] = $2; a[n] = $4; sum += exp($2) }
     END { for (j = 1; j <= n; j++) { d = exp(e[j]) / sum - a[j]; if (d > 0.002 || d < -0.002) exit 1 } exit n != 5 }' said.txt ||
    fail "the weights are not the softmax of the scores: $(cat said.txt)"
paste <(vector z | tr ' ' '\n') <(vector n | tr ' ' '\n') <(vector s_2 | tr ' ' '\n') <(vector s_3 | tr ' ' '\n') |
    awk '{ d = $1 * $3 + (1 - $1) * $2 - $4; if (d > 0.001 || d < -0.001) exit 1 } END { exit NR != 6 }' ||
    fail "the next state does not follow from its gates: $(cat said.txt)"
checks=$((checks + 2))
equal 6 "$(awk '/^9\. /{ on = 1 } on' said.txt | grep -cE '^ +[a-z</>]+ .*[01]\.[0-9]{2}')" "rows of the map of all steps"
"$attend" demo step 'we  see the green boat / 1' >other.txt
narrow other.txt
grep -q 'is i = 1: it writes "nous" after "<s>"' other.txt || fail "the first step is $(cat other.txt)"
finish
