# attend translate on lines of any bytes, NULs and broken UTF-8 among them: exactly as many lines out as in, all UTF-8. Ten
# thousand lines; ATTEND_LONG=1 (make check-long) makes it a million.
. "$(dirname "$0")/support.bash"
count=${ATTEND_LONG:+1000000}
count=${count:-10000}

printf 'a b\nb c a\nc\n\303\244 b\n' >few
for kind in word char; do
    "$attend" train --source few --target few --output $kind --source-vocab $kind --target-vocab $kind --embedding 8 --hidden 8 \
        --attention 8 --maxout 8 --updates 20 --quiet || fail "a model of ${kind}s cannot be trained"
done

# One byte in seventeen ends a line; half of the lines are read by words, half by letters.
lines() {
    LC_ALL=C tr '\020-\037' '\n' </dev/urandom | head -n $((count / 2)) || true
}
set +o pipefail # tr ends when head has enough
for kind in word char; do
    lines >in
    "$attend" translate -m $kind --max-length-factor 0.1 --replace-unknown --quiet <in >out || fail "lines of any bytes end in $?"
    equal $((count / 2)) "$(wc -l <in)" "lines that were made"
    equal "$(wc -l <in)" "$(wc -l <out)" "lines of any bytes, by ${kind}s"
    iconv -f UTF-8 -t UTF-8 out >same || fail "lines of any bytes do not give UTF-8"
    same_file out same
done
finish
