# attend score: lines from stdin against references.
. "$(dirname "$0")/support.bash"

golden help_score.txt score --help

# The help and doc/metrics.md have one row for each metric, and agree on which scores are better.
"$attend" score --help | sed -n 's/^  \([a-z+]*\)  *.* \([↑↓]\)$/\1 \2/p' >metrics.txt
[ "$(wc -l <metrics.txt)" -ge 8 ] || fail "the help lists only: $(cat metrics.txt)"
while read -r metric direction; do
    row=$(grep -F "| \`$metric\` |" "$here/../../doc/metrics.md") || fail "doc/metrics.md has no row for $metric"
    [[ $row == *" $direction |" ]] || fail "doc/metrics.md does not say $direction for $metric: $row"
done <metrics.txt

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

# Bytes that are not UTF-8 count as U+FFFD, in words as in characters; only accuracy compares bytes.
printf 'a\xff b\n' >hyp.txt
printf 'a\xef\xbf\xbd b\n' >bytes.txt
said 'wer 0.00
cer 0.00
accuracy 0.00' wer cer accuracy --reference bytes.txt

# Alignments: A = {00 11 22 31}, S = {00 11 23}, P = S and {22}: 1 - (2 + 3) / (4 + 3).
printf '0-0 1-1 2-3 2?2\n' >links.txt
printf '0-0 1-1 2-2 3-1\n' >hyp.txt
said 'aer 28.57' aer --reference links.txt
said '{"aer":28.571428571428569,"lines":1}' aer --reference links.txt --json

# Metrics of translations, with the signature that tells how they were counted.
version=$("$attend" --version)
version=attend-${version##* }
printf 'The dog bit the man.\nIt was not unexpected.\nThe man bit him first.\n' >first.txt
printf 'The dog had bit the man.\nNo one was surprised.\nThe man had bitten the dog.\n' >second.txt
printf "The dog bit the man.\nIt wasn't surprising.\nThe man had just bitten him.\n" >hyp.txt
bleu="nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:$version"
details='82.4/50.0/45.5/37.5 (BP = 0.943 ratio = 0.944 hyp_len = 17 ref_len = 18)'
said "BLEU|$bleu = 48.5 $details
chrF2|nrefs:2|case:mixed|eff:yes|nc:6|nw:0|space:no|version:$version = 59.7
chrF2++|nrefs:2|case:mixed|eff:yes|nc:6|nw:2|space:no|version:$version = 59.2
TER|nrefs:2|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:$version = 40.0
wer 40.00" bleu chrf chrf++ ter wer --reference first.txt --reference second.txt
said "BLEU|nrefs:1|case:lc|eff:no|tok:char|smooth:exp|version:$version = 51.5628 72.4/54.5/46.2/38.8 (BP = 1.000 ratio = 1.094 hyp_len = 58 ref_len = 53)" \
    bleu --reference first.txt --lowercase --tokenise char --decimals 4
said '100.00	0.00
14.79	75.00
15.62	80.00' --sentence bleu ter --reference first.txt
said '{"bleu":100.00000000000004,"accuracy":100}
{"bleu":14.794015674776452,"accuracy":0}
{"bleu":15.619699684601283,"accuracy":0}' bleu accuracy --sentence --json --reference first.txt
said "{\"bleu\":48.530827009929865,\"signature\":\"$bleu\",\"bleu_details\":\"$details\",\"lines\":3}" \
    bleu --json --reference first.txt --reference second.txt
# --confidence with and without its number, which is no metric; references of the command line replace those of a file.
printf 'reference = ref.txt\nreference = ref.txt\nconfidence = 20\n' >score.conf
"$attend" score bleu --reference first.txt --confidence=20 --seed 3 <hyp.txt >a.txt
for way in '--confidence 20 bleu' 'bleu --confidence 20' 'bleu --config score.conf' '--threads 1 --confidence 20 bleu'; do
    said "$(cat a.txt)" --reference first.txt --seed 3 $way
done
grep -q "^BLEU|nrefs:1|bs:20|seed:3|case:mixed|.* = 45.1 (μ = [0-9.]* ± [0-9.]*) 70.6/" a.txt || fail "--confidence says $(cat a.txt)"
"$attend" score bleu --reference first.txt --confidence <hyp.txt | grep -q '|bs:1000|seed:1|' || fail "--confidence does not draw 1000 texts"
# Two systems.
"$attend" score bleu wer --reference first.txt --compare first.txt <hyp.txt >two.txt
grep -q '^BLEU of first.txt = 100.0 (μ = 100.0 ± 0.0) 100.0/100.0/100.0/100.0' two.txt || fail "--compare says $(cat two.txt)"
grep -q '^BLEU difference = -54.93 (μ = -[0-9.]*, 95% from -[0-9.]* to [-+][0-9.]*, p = 0.[0-9]*)$' two.txt || fail "--compare says $(cat two.txt)"
grep -q '^wer difference = +[0-9.]* (μ = +' two.txt || fail "--compare says $(cat two.txt)"
"$attend" score bleu --json --reference first.txt --compare first.txt <hyp.txt | grep -q '"bleu_confidence":{"mean":.*"bleu_compare":{"other":100.*,"difference":-54.*,"p":0.*"resamples":1000,"seed":1' ||
    fail "--compare --json lacks something"

# By the length of the references, or of the sources: words between white space, so many wide or up to bounds.
cat first.txt >long.txt
cat hyp.txt >hyp.kept
printf 'a b c d e f g h i j k\n\n' >>long.txt
printf 'a b c d e f g h i j k\n\n' >>hyp.txt
said 'wer 28.00
words of a reference   lines      wer
0-4                        2    75.00
5-8                        2    40.00
9-12                       1     0.00' wer --reference long.txt --by-length 4
said 'accuracy 60.00
wer 28.00
words of a reference   lines  accuracy      wer
0-3                        1    100.00        -
4-4                        1      0.00    75.00
5-                         3     66.67    19.05' accuracy --by-length 3,4 wer --reference long.txt
printf 'a b\na\na b c d\na b c\na\n' >by.txt
said 'wer 28.000
words of a source      lines      wer
0-2                        3   33.333
3-3                        1    0.000
4-                         1   80.000' wer --reference long.txt --by-length=2,3 --source by.txt --decimals 3
said "{\"wer\":28,\"by_length\":{\"words_of\":\"reference\",\"groups\":[{\"from\":0,\"to\":3,\"lines\":1,\"wer\":null},{\"from\":4,\"to\":10,\"lines\":3,\"wer\":50},{\"from\":11,\"to\":null,\"lines\":1,\"wer\":0}]},\"lines\":5}" \
    wer --reference long.txt --by-length 3,10 --json
"$attend" score bleu --reference long.txt --by-length --compare long.txt <hyp.txt >groups
equal 'words of a reference   lines     bleu  bleu of other' "$(sed -n 4p groups)" "the head of --by-length with --compare"
cp hyp.kept hyp.txt

# What it refuses. stdin is one line.
exec <links.txt
refuse 2 "attend score needs a metric, as in attend score bleu --reference REF" score --reference ref.txt
refuse 2 "attend score needs --reference FILE" score wer
refuse 2 "no metric 'wre'; did you mean 'wer'?" score wre --reference ref.txt
refuse 2 "no metric 'blue'; did you mean 'bleu'?" score wer blue --reference ref.txt
refuse 2 "no metric 'meteor'; there are 'accuracy', 'aer', 'bleu', 'cer', 'chrf', 'chrf++', 'ter' and 'wer'" score meteor --reference ref.txt
refuse 2 "no tokeniser '13'; did you mean '13a'?" score bleu --tokenise 13 --reference ref.txt
refuse 2 "no tokeniser 'mecab'; there are '13a', 'none', 'char' and 'zh'" score bleu --tokenise mecab --reference ref.txt
refuse 2 "--tokenise has no effect on the metrics given" score chrf --tokenise zh --reference ref.txt
refuse 2 "--compare is for the whole text and cannot be used with --sentence" score bleu --sentence --compare ref.txt --reference ref.txt
refuse 2 "--confidence is for the whole text and cannot be used with --sentence" score bleu --sentence --confidence --reference ref.txt
refuse 2 "--by-length is for the whole text and cannot be used with --sentence" score bleu --sentence --by-length --reference ref.txt
refuse 2 "--by-length takes a whole number from 1 to 1000000000, not '0'" score bleu --by-length 0,3 --reference ref.txt
refuse 2 "--source is for perplexity and --by-length only" score bleu --source ref.txt --reference ref.txt
refuse 2 "--model is for perplexity only" score bleu --model ref.txt --reference ref.txt
refuse 2 "the references of aer are links, so --by-length needs --source FILE, whose words it counts" score aer --by-length --reference links.txt
refuse 2 "--confidence takes a whole number from 1 to 10000000, not '0'" score bleu --confidence 0 --reference ref.txt
refuse 2 "--reference takes FILE, not an empty word" score bleu --reference ''
refuse 2 "--reference takes a file: the lines to score come from the standard input" score wer --reference ref.txt --reference -
refuse 2 "--compare takes a file: the lines to score come from the standard input" score wer --reference ref.txt --compare -
refuse 2 "metric 'wer' is given twice" score wer cer wer --reference ref.txt
refuse 2 "no option '--refrence'; did you mean '--reference'?" score wer --refrence ref.txt
refuse 1 "--reference: cannot read 'none.txt': No such file or directory" score wer --reference none.txt
cp ref.txt ref.gz
refuse 1 "--reference: 'ref.gz' is not gzip data, although its name ends in .gz" score wer --reference ref.gz
refuse 1 "'ref.txt' has 2 lines, and the standard input has 1; they must have the same number" score wer --reference ref.txt
exec <first.txt
refuse 1 "--compare: 'links.txt' has 1 line, and the standard input has 3; they must have the same number" score wer --reference first.txt --compare links.txt
exec <first.txt
refuse 1 "'links.txt' has 1 line, and the standard input has 3; they must have the same number" score bleu --reference first.txt --reference links.txt
refuse 1 "--compare: cannot read 'none.txt': No such file or directory" score bleu --reference first.txt --compare none.txt
refuse 2 "aer takes 1 reference, not 2" score aer --reference links.txt --reference links.txt
exec <first.txt
refuse 2 "--by-length takes increasing limits, and 4 follows 4" score bleu --by-length 4,4 --reference first.txt
exec <first.txt
refuse 1 "--source: 'links.txt' has 1 line, and there are 3 references; they must have the same number" \
    score bleu --by-length --source links.txt --reference first.txt
exec </dev/null
refuse 1 "'ref.txt' has 2 lines, and the standard input has 0; they must have the same number" score wer --reference ref.txt
: >empty.txt
refuse 1 "there is no line to score" score wer --reference empty.txt
printf '0-0\n0=1\n' >bad.txt
exec <bad.txt
refuse 1 "line 2 of the hypotheses: '0=1' is not a link; a link is written like 0-1" score aer --reference bad.txt
exec <bad.txt
printf '\n\n' >blank.txt
refuse 1 "the references have no word, so there is no error rate" score accuracy wer --reference blank.txt
finish
