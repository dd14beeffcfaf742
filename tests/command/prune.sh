# attend heads: the table of all heads, and models without the least important ones.
. "$(dirname "$0")/support.bash"

# Words turned round, as in heads.sh.
awk 'BEGIN { srand(5); for (i = 0; i < 400; i++) { n = 2 + int(rand() * 3); s = t = ""
    for (w = 0; w < n; w++) { c = sprintf("%c", 97 + int(rand() * 8)); s = s (w ? " " : "") c; t = toupper(c) (w ? " " : "") t }
    print s >"source"; print t >"target" } }'
train() { "$attend" train --output "$@" --hidden 32 --batch-size 20 --learning-rate 0.005 --quiet 2>said || fail "training says $(cat said)"; }
small="--layers 2 --heads 2 --ffn 64 --norm post --schedule constant --label-smoothing 0"
train m --source source --target target --model transformer $small --epochs 8
train lm --target target --model transformer-lm $small --epochs 1
train recurrent --source source --target target --model bahdanau --epochs 1
head -40 source >s
head -40 target >t

# The tables, the same for any batch and number of threads; the numbers of --tsv are those of the tables.
"$attend" heads -m m --source s --target t --tsv all.tsv --threads 1 >all
"$attend" heads m --source s --target t --tsv other.tsv --threads 2 --batch-size 7 >other
same_file all other
same_file all.tsv other.tsv
equal "encoder importance encoder entropy decoder importance decoder entropy cross importance cross entropy" \
    "$(grep -E '^[a-z]' all | tr '\n' ' ' | sed 's/ $//')" "the tables"
equal 13 "$(wc -l <all.tsv)" "lines of the list of 12 heads"
awk -F'\t' 'NR > 1 { printf "%s %d %d %.3f %.3f\n", $1, $2, $3, $5, $6 }' all.tsv | sort >listed
awk '/^[a-z]/ { kind = $1; what = $2; next } $1 == "layer" || NF == 0 { next }
    { for (h = 2; h <= NF; h++) value[kind " " $1 " " h - 1, what] = $h; for (h = 2; h <= NF; h++) heads[kind " " $1 " " h - 1] }
    END { for (h in heads) print h, value[h, "importance"], value[h, "entropy"] }' all | sort >tabled
same_file listed tabled

# Pruning: the least important heads, by the scores that attend score finds for the model written.
"$attend" heads -m m --source s --target t --prune 25% --metric accuracy -o small --tsv pruned.tsv >out
cut -f1-6 pruned.tsv | cmp - <(cut -f1-6 all.tsv) || fail "the numbers of a pruned model are those of before"
equal "$(tail -n +2 all.tsv | sort -t"$(printf '\t')" -k5,5g | head -3 | cut -f1-3 | sort)" \
    "$(tail -n +2 pruned.tsv | awk -F'\t' '$7' | cut -f1-3 | sort)" "the heads that are removed"
equal 3 "$(grep -o '[0-9]\*' out | wc -l)" "the heads that are marked in the tables"
grep -q '^removed 3 of 12 heads (\*):' out || fail "attend heads --prune says $(cat out)"
score() { printf '%.2f' "$("$attend" translate -m "$1" <s | "$attend" score accuracy --reference t --decimals 6 | cut -d' ' -f2)"; }
perplexity() { printf '%.4f' "$("$attend" score perplexity -m "$1" --source s --reference t --json | sed 's/.*"perplexity":\([^,]*\),.*/\1/')"; }
equal "accuracy $(score m) $(score small)" "$(awk '/^accuracy/ { print $1, $2, $3 }' out)" "accuracy before and after"
equal "perplexity $(perplexity m) $(perplexity small)" "$(awk '/^perplexity/ { print $1, $2, $3 }' out)" "perplexity before and after"
"$attend" heads -m small --source s --target t --tsv again.tsv >/dev/null
equal "$(awk -F'\t' '$7 == 1 { print $1, $2, $3 }' pruned.tsv)" "$(awk -F'\t' '$4 == 0 && NR > 1 { print $1, $2, $3 }' again.tsv)" \
    "the heads without importance in the pruned model"
"$attend" heads -m m --source s --target t --prune 0.25 >half
grep -q '^BLEU ' half || fail "the default metric is not BLEU: $(cat half)"
# Without any head, what is left does not see the source.
"$attend" heads -m m --source s --target t --prune 100% -o none >/dev/null
equal 1 "$("$attend" translate -m none --max-length 3 <s | sort -u | wc -l)" "the translations without heads"

"$attend" heads -m lm --target t --prune 50% >out
grep -q '^perplexity ' out && ! grep -q BLEU out || fail "a language model's scores: $(cat out)"
printf 'a b\n\nc\n' >three.s
printf 'B A\nX\nC\n' >three.t
"$attend" heads -m m --source three.s --target three.t >/dev/null 2>said
equal "attend: 1 pair with an empty side, the first in line 2, left out" "$(cat said)" "an empty line"

refuse 1 "model 'bahdanau' has no heads to measure or remove: only 'transformer' and 'transformer-lm' have layers of multi-head attention" \
    heads -m recurrent --source s --target t --prune 20% -o x
for share in 0 -1 20 120% 20%% x; do
    refuse 2 "--prune is a share of the heads such as 20% or 0.2, above 0 and up to 1, not '$share'" heads -m m --source s --target t --prune "$share"
done
refuse 2 "--prune 1% of 12 heads is none; the least is one of them, 8.33%" heads -m m --source s --target t --prune 1%
refuse 2 "attend heads needs a model: attend heads MODEL, or -m MODEL" heads --source s --target t
refuse 2 "attend heads needs --target FILE" heads -m m --source s
refuse 2 "-o is for --prune SHARE only" heads -m m --source s --target t -o x
refuse 2 "--metric is for --prune SHARE only" heads -m m --source s --target t --metric bleu
refuse 2 "-o 'm' is the model that is read; choose another name" heads -m m --source s --target t --prune 20% -o m
refuse 2 "no metric 'blue'; did you mean 'bleu'?" heads -m m --source s --target t --prune 20% --metric blue
refuse 2 "this model translates, so attend heads needs --source FILE beside --target" heads -m m --target t
refuse 2 "this is a language model, so attend heads takes --target alone and no --source" heads -m lm --source s --target t
refuse 2 "this is a language model, so its only score is the perplexity, and not --metric" heads -m lm --target t --prune 50% --metric bleu
refuse 1 "'source' has 400 lines and 't' has 40; they must be pairs" heads -m m --source source --target t
finish
