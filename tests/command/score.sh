# attend score: lines from stdin against references.
. "$(dirname "$0")/support.bash"

golden help_score.txt score --help

printf 'the cat sat\nab\n' >ref.txt
printf 'the bat sat on\nab\n' >hyp.txt
cp ref.txt dos.txt
sed -i 's/$/\r/' dos.txt

# said EXPECTED ARGUMENTS...: what the command prints for hyp.txt.
said() {
    local expected=$1 got
    shift
    got=$("$attend" score "$@" 2>&1 <hyp.txt) || fail "attend score $* exits with $?: $got"
    equal "$expected" "$got" "attend score $*"
}
said 'wer 50.00' wer --reference ref.txt
said 'accuracy 50.00
cer 30.77
wer 50.00' accuracy --reference ref.txt cer wer
said '{"wer":50,"cer":30.76923076923077,"accuracy":50,"lines":2}' wer cer accuracy --json --reference ref.txt
said 'wer 50.00' wer --reference dos.txt
printf 'reference = ref.txt\njson = yes\n' >score.conf
said '{"wer":50,"lines":2}' wer --config score.conf
printf 'the bat sat on\r\nab' >hyp.txt # other ends of lines, the same lines
said 'wer 50.00' wer --reference ref.txt
said 'accuracy 100.00' accuracy --reference hyp.txt
printf 'the bat sat on\nab\n' | "$attend" score wer --reference ref.txt >piped.txt
equal 'wer 50.00' "$(cat piped.txt)" "a pipe"

# Alignments: A = {00 11 22 31}, S = {00 11 23}, P = S and {22}: 1 - (2 + 3) / (4 + 3).
printf '0-0 1-1 2-3 2?2\n' >links.txt
printf '0-0 1-1 2-2 3-1\n' >hyp.txt
said 'aer 28.57' aer --reference links.txt
said '{"aer":28.571428571428569,"lines":1}' aer --reference links.txt --json

# What it refuses. stdin is the last hypotheses.
exec <hyp.txt
refuse 2 "attend score needs a metric, as in attend score wer --reference REF" score --reference ref.txt
refuse 2 "attend score needs --reference FILE, what the lines should have been" score wer
refuse 2 "no metric 'wre'; did you mean 'wer'?" score wre --reference ref.txt
refuse 2 "no metric 'bleu'; there are 'wer', 'cer', 'accuracy' and 'aer'" score wer bleu --reference ref.txt
refuse 2 "metric 'wer' is named twice" score wer cer wer --reference ref.txt
refuse 2 "no option '--refrence'; did you mean '--reference'?" score wer --refrence ref.txt
refuse 1 "--reference: cannot read 'none.txt': No such file or directory" score wer --reference none.txt
cp ref.txt ref.gz
refuse 1 "--reference: 'ref.gz' is packed by gzip, which is not read here; unpack it first with gunzip" score wer --reference ref.gz
refuse 1 "1 line cannot be scored against 2 references; there must be as many" score wer --reference ref.txt
exec </dev/null
refuse 1 "0 lines cannot be scored against 2 references; there must be as many" score wer --reference ref.txt
: >empty.txt
refuse 1 "there is no line to score" score wer --reference empty.txt
printf '0-0\n0=1\n' >bad.txt
exec <bad.txt
refuse 1 "line 2 of the hypotheses: '0=1' is no link; a link is like 0-1" score aer --reference bad.txt
exec <bad.txt
printf '\n\n' >blank.txt
refuse 1 "the references hold no word, so there is no error rate" score accuracy wer --reference blank.txt
finish
