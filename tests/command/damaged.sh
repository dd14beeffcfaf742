# Damaged model files and states: refused with one message, by every command that loads them.
. "$(dirname "$0")/support.bash"

awk 'BEGIN { srand(7); for (i = 0; i < 60; i++) { n = 2 + int(rand() * 4); l = ""; for (w = 0; w < n; w++) l = l (w ? " " : "") sprintf("%c", 97 + int(rand() * 8)); print l } }' >lines
small="--embedding 8 --hidden 12 --attention 8 --maxout 8 --batch-size 10 --updates 4 --quiet"
run train --source lines --target lines $small --output m

# The file as it was written, and with one bit of its last number flipped: each command that loads it says so.
equal "m: ok" "$("$attend" info --verify m)" "what --verify says"
equal "m.state: ok" "$("$attend" info --verify m.state)" "what --verify says of a state"
# damaged FILE NAME: a copy whose last byte but one has its lowest bit flipped.
damaged() {
    local place byte
    place=$(($(stat -c %s "$1") - 2))
    byte=$(od -An -tu1 -j$place -N1 "$1")
    cp "$1" "$2"
    printf "\\x$(printf %02x $((byte ^ 1)))" | dd of="$2" bs=1 seek=$place conv=notrunc status=none
}
damaged m bad
damaged m.state bad.state
says_damaged() { # NAME ARGUMENTS...
    local name=$1 code=0 said
    shift
    said=$("$attend" "$@" 2>&1 >out <lines) || code=$?
    equal 1 "$code" "the exit code of attend $*"
    [ ! -s out ] || fail "attend $* prints $(cat out)"
    [[ $said == "attend: '$name' is damaged, or another program changed it: the checksum in it is xxh3-64:"*"; use a copy that is intact, or remove 'attend.checksum' from its metadata if the change is intended" ]] ||
        fail "attend $* says $said"
    checks=$((checks + 1))
}
for use in "info --verify" "info" "translate -m" "encode -o out.npy -m" "align --source lines --target lines -m" "average -o mean m" "convert -o out" "heads --source lines --target lines --prune 50% -o pruned -m"; do
    says_damaged bad $use bad
done
says_damaged bad.state info --verify bad.state
says_damaged bad.state train --source lines --target lines ${small/updates 4/updates 6} --output bad --resume
rm -f bad bad.state

# patch FROM TO NAME INDEX BYTES: a copy without a checksum, as an older attend would have written it, and with other bytes
# for one number of a tensor, from its first byte on.
patch() {
    local length begin
    length=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    begin=$(head -c $((8 + length)) "$1" | tail -c +9 | grep -o "\"$3\":{[^}]*}" | sed 's/.*"data_offsets":\[\([0-9]*\),.*/\1/')
    LC_ALL=C sed 's/"attend\.checksum":"xxh3-64:/"checksum.before":"removed:/' "$1" >"$2"
    printf "$5" | dd of="$2" bs=1 seek=$((8 + length + begin + $4)) conv=notrunc status=none
}

# A NaN (0x7fc00000) in the second row of a table of 8 columns, an infinity (0x7f800000) in the first.
patch m old source.E 0 ''
equal "old: no checksum" "$("$attend" info --verify old)" "what --verify says without a checksum"
"$attend" info old >/dev/null || fail "a model without a checksum does not load"
patch m nan source.E $((4 * 11)) '\x00\x00\xc0\x7f'
patch m infinite source.E 8 '\x00\x00\x80\x7f'
for use in "translate -m" "info" "encode -o out.npy -m" "align --source lines --target lines -m" "average -o mean m" "convert -o out"; do
    refuse 1 "'nan': tensor 'source.E' holds a NaN at [1,3]; such a file is damaged and of no use" $use nan <lines
done
refuse 1 "'infinite': tensor 'source.E' holds an infinity at [0,2]; such a file is damaged and of no use" info infinite
cp m resumed
patch m.state resumed.state training.second 4 '\x00\x00\xc0\x7f'
for part in m m.log.jsonl; do cp $part resumed${part#m}; done
refuse 1 "'resumed.state': tensor 'training.second' holds a NaN at [1]; such a file is damaged and of no use" \
    train --source lines --target lines ${small/updates 4/updates 6} --output resumed --resume

# An update that makes such parameters: no model is written, or the last that was saved stays.
wild="--source lines --target lines ${small/ --quiet/} --learning-rate 1e38"
end="a smaller --learning-rate or --clip-norm may help"
code=0
"$attend" train $wild --updates 1 --output wild 2>said || code=$?
equal 1 "$code" "the exit code of an update that is not finite"
equal "attend: update 1 makes parameters that are not finite, so training stops; no model was written; $end" "$(tail -1 said)" "the message"
[ ! -e wild ] && [ ! -e wild.state ] || fail "a model that is not finite was written"
"$attend" train $wild --updates 20 --warmup 100 --save-every 1 --output wild 2>said && fail "updates that are not finite exit with 0"
equal "attend: the gradients of 10 updates in a row after update 1 were not finite, so training stops; 'wild' holds the last model saved, that of update 1; $end" \
    "$(tail -1 said)" "the message after a save"
"$attend" info wild >/dev/null || fail "the model saved before is not there"

# Finite parameters so large that what is computed from them is not: a message, and never a perplexity of 1.
# fill FROM TO NAME: a copy whose tensor is all 3e38 (0x7f61b1e6).
fill() {
    local length range
    length=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    range=$(head -c $((8 + length)) "$1" | tail -c +9 | grep -o "\"$3\":{[^}]*}" | sed 's/.*"data_offsets":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/')
    patch "$1" "$2" "$3" 0 "$(printf '\\xe6\\xb1\\x61\\x7f%.0s' $(seq $(((${range#* } - ${range% *}) / 4))))"
}
why="are not finite; its parameters are too large, as after a training that diverged, so it is of no use"
fill m huge output.U_o.b
head -1 lines >line
"$attend" info huge >/dev/null || fail "a model with large finite parameters is not loaded"
for use in "translate -m huge" "translate --beam 4 -m huge" "translate --sample 1 -m huge" "translate -m m -m huge" \
    "align --source line --target line -m huge" "show ab -m huge" "score perplexity --source line --reference line --model huge"; do
    refuse 1 "line 1: the model's scores of the next unit $why" $use <line
done
run train --model transformer --source lines --target lines --hidden 8 --heads 2 --layers 1 --batch-size 10 --updates 1 --quiet --output t
fill t wide encoder.1.ffn.outer.b
refuse 1 "line 1: the model's features $why" encode -o out.safetensors -m wide <line

# The mean of large finite parameters is finite, and so are the probabilities of large finite scores, here 12 equal ones.
fill m level output.W_o.b
run average -o mean level level
for model in level mean; do
    equal "perplexity 12.0000" "$("$attend" score perplexity --source line --reference line --model $model | cut -d ' ' -f 1-2)" "the perplexity of $model"
done
fill m steep output.V_o.W
equal '{"perplexity":null,"perplexity_per_word":null' \
    "$("$attend" score perplexity --json --source lines --reference lines --model steep | cut -d , -f 1-2)" "a perplexity beyond all numbers"

# Validation, by loss or by decoding, ends the training of such a model.
for metric in loss bleu; do
    rm -f wild*
    "$attend" train ${wild/1e38/1e37} --valid-source lines --valid-target lines --valid-metric $metric --valid-every 1 --updates 4 --output wild 2>said &&
        fail "a model whose scores are not finite is trained on"
    equal "attend: the model's scores of the validation data are not finite, so training stops; no model was written; $end" "$(tail -1 said)" "the message of $metric"
    [ ! -e wild ] || fail "a model whose scores are not finite was written"
done
finish
