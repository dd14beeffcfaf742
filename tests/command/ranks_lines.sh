# Commands that read lines by several processes: the same bytes as one process writes, in the order of the lines.
. "$(dirname "$0")/support.bash"
. "$here/ranks.bash"

pairs 400 9
printf 'a b\tB\n\nno \377 text\n%s\n' "$(printf 'a b c d %.0s' $(seq 300))" >>source # a tab, nothing, no UTF-8, a long line
printf 'B A\n\nX\nA\n' >>target
base="--source source --target target --batch-size 32 --threads 1 --quiet"
# shellcheck disable=SC2086
{
    "$attend" train $base --model transformer --hidden 16 --ffn 16 --layers 1 --heads 2 --updates 40 --output model
    "$attend" train $base --model luong --hidden 12 --updates 20 --output other
    "$attend" train --target target --batch-size 32 --threads 1 --quiet --model transformer-lm --hidden 16 --ffn 16 --layers 1 --heads 2 --updates 20 --output lm
}
printf 'a\tTERM\nb\t!B\n' >glossary

# same RANKS ARGUMENTS...: one process and so many with the same arguments say the same.
same() {
    local count=$1
    shift
    "$attend" "$@" --threads 1 <source >expected 2>expected.notes || fail "attend $* exits with $?"
    together "$count" "$@" --threads 1 <source >got 2>notes || fail "attend $* by $count processes: $(cat notes)"
    same_file expected got
    equal "$(sort expected.notes)" "$(sort notes)" "the notes of attend $*"
}
same 3 translate -m model --beam 3 --n-best 2 --alignment soft --scores --confidence --batch-size 8
same 2 translate -m other --alignment hard --coverage --prefix --batch-size 8
same 3 translate -m model --glossary glossary --beam 2 --max-source 50
same 2 translate -m lm --sample 1 --top-k 5 --seed 3 --n-best 2 --batch-size 8 --max-length 20
same 2 translate -m model --split --placeholders
same 2 translate -m model --alternatives 3 --batch-size 8
same 3 align -m model --source source --target target --scores --coverage --batch-size 8
same 2 align -m model --source source --target target --head best
same 3 score perplexity -m model --source source --reference target --json

# Files: of -i, of -o, of arrays; and an input without a line.
together 3 translate -m model --threads 1 --batch-size 8 -i source -o written --quiet || fail "translate into a file"
"$attend" translate -m model --threads 1 --quiet <source >expected
same_file expected written
for form in features.safetensors "mean.npy --mean"; do
    # shellcheck disable=SC2086
    "$attend" encode -m model --threads 1 --quiet -i source -o one.$form
    # shellcheck disable=SC2086
    together 3 encode -m model --threads 1 --batch-size 8 --quiet -i source -o three.$form || fail "encode"
    same_file "one.${form%% *}" "three.${form%% *}"
done
equal "" "$(together 2 translate -m model --threads 1 </dev/null)" "the translation of nothing"

# On a pipe, lines are translated as they come: the second is written after the first came back.
mkfifo in
together 2 translate -m model --threads 1 <in >piped &
exec 9>in
head -1 source >&9
for _ in $(seq 300); do
    [ ! -s piped ] || break
    sleep 0.1
done
[ -s piped ] || fail "a line is not translated before the input ends"
sed -n 2p source >&9
exec 9>&-
wait $! || fail "the translation of a pipe"
head -2 expected | cmp - piped || fail "the translation of a pipe differs"

# One message for all, and no file.
refused 1 "rank 1: cannot read 'nothing': No such file or directory" \
    -np 1 "$attend" translate -m model -i source : -np 1 "$attend" translate -m nothing -i source
refused 2 "rank 1: rank 0 works with --beam 1, and this rank with 2; all ranks need the same model and options" \
    -np 1 "$attend" translate -m model -i source -o x : -np 1 "$attend" translate -m model -i source --beam 2
mpirun --oversubscribe -np 1 "$attend" translate -m model -i source -o x : -np 1 "$attend" translate -m other -i source >said 2>&1 &&
    fail "ranks with two models"
ours said | grep -qxE 'attend: rank 1: rank 0 works with --model [0-9a-f]{16}, and this rank with [0-9a-f]{16}; all ranks need the same model and options' ||
    fail "ranks with two models: $(cat said)"
refused 1 "cannot read 'nothing': No such file or directory" -np 2 "$attend" translate -m model -i nothing -o x
refused 1 "cannot write '/dev/full': No space left on device" -np 2 "$attend" translate -m model -i source -o /dev/full --quiet
refused 1 "cannot write '/dev/full': No space left on device" -np 2 "$attend" align -m model --source source --target target -o /dev/full --quiet
refused 2 "no option '--no-such'; attend translate --help shows those there are" -np 3 "$attend" translate --no-such
refused 2 "attend info runs in one process, and mpirun or srun started 3 together; start it without them" -np 3 "$attend" info model
refused 2 "attend score (but for perplexity) runs in one process, and mpirun or srun started 2 together; start it without them" \
    -np 2 "$attend" score bleu --reference target -i target
[ ! -e x ] || fail "ranks that were refused leave a file"

# A rank that hangs, one that is killed: all end, and no file is there. The input never ends.
for signal in STOP KILL; do
    yes 'a b c d' | together 3 translate -m model --threads 1 --rank-timeout 3 -o x >said 2>&1 &
    for _ in $(seq 300); do
        [ "$(pgrep -fc -- "^$attend translate .*-o x")" -ge 3 ] && break
        sleep 0.1
    done
    sleep 2
    kill -$signal "$(pgrep -f -- "^$attend translate .*-o x" | tail -n 1)"
    ! wait $! || fail "a translation that lost a rank ends well"
    [ $signal = KILL ] || ours said | grep -qxE 'attend: rank [0-2] did not answer for 3 seconds' || fail "a rank that hangs: $(cat said)"
    gone "^$attend translate .*-o x"
    [ ! -e x ] || fail "a translation that lost a rank leaves a file"
done
finish
