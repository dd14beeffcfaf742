# Models of other programs, real ones that lie beside the project (../shared/models): what they answer.
. "$(dirname "$0")/support.bash"
models=$here/../../../shared/models
[ -d "$models/ct2" ] || { echo "SKIPPED: no models of other programs in ../shared/models"; exit 77; }

# CTranslate2, with the weights as float32 and as int8: the first 200 names, letter by letter. Columns of lines200.tsv:
# greedy and a beam of 4, each with the mean log-probability of its tokens.
tail -n +2 "$models/ct2/lines200.tsv" >expected
cut -f1 expected | sed 's/./& /g; s/ $//' >names
for kind in v2:3 v2-i8:7; do
    model=$models/ct2/aren-transliteration-${kind%:*} column=${kind#*:}
    "$attend" translate "$model" --scores <names >greedy
    "$attend" translate "$model" --scores --beam 4 --normalize 1 <names >beam
    for search in greedy beam; do
        sed 's/ |||.*//; s/ //g' $search >texts
        diff <(cut -f$column expected) texts >&2 || fail "$model, $search: other names"
        # n tokens and the end; 4 decimals are printed.
        awk -F ' [|][|][|] ' -v column=$((column + 1)) '
            NR == FNR { split($0, field, "\t"); mean[NR] = field[column]; next }
            { n = split($1, token, " ") + 1; sub("F0= ", "", $2); d = $2 / n - mean[FNR]; if (d < 0) d = -d; if (d > most) most = d }
            END { exit most > 3e-5 }' expected $search || fail "$model, $search: other scores"
        column=$((column + 2)) checks=$((checks + 2))
    done
done
run convert "$models/ct2/aren-transliteration-v2" -o ours
"$attend" translate "$models/ct2/aren-transliteration-v2" --scores --beam 4 <names >beam
"$attend" translate ours --scores --beam 4 <names >converted
same_file beam converted
equal "200" "$("$attend" align -m "$models/ct2/aren-transliteration-v2" --source names --target <(sed 's/ |||.*//' greedy) | wc -l)" "aligned lines"
"$attend" info "$models/ct2/aren-transliteration-v2" >said
grep -q '^position-denominator half-1$' said && grep -q '^parameters       182731 ' said || fail "info says $(cat said)"
"$attend" vocabulary print "$models/ct2/aren-transliteration-v2" --side target >units
grep -q '^a\b' units || fail "vocabulary print says $(cat units)"
checks=$((checks + 2))

# A copy with its vocabulary or its end missing.
cp -r "$models/ct2/aren-transliteration-v2" broken
chmod -R u+w broken
truncate -s 700000 broken/model.bin
refuse 1 "'broken/model.bin' is truncated or damaged: it ends too early" translate broken
rm broken/target_vocabulary.txt
cp "$models/ct2/aren-transliteration-v2/model.bin" broken/
refuse 1 "'broken' has neither target_vocabulary nor shared_vocabulary, .txt or .json" info broken
refuse 1 "'$models' is a folder, not a model; the known formats are: attend (the files of attend train), ctranslate2 (a folder with model.bin and vocabularies)" info "$models"
echo "$checks checks"
