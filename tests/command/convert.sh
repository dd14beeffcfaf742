# attend convert: the model it writes translates with the same bits.
. "$(dirname "$0")/support.bash"
printf 'a b\nb c a\nc\n' >source
printf 'B A\nA C B\nC\n' >target
for model in luong transformer; do
    run train --source source --target target --hidden 8 --updates 20 --model $model --quiet --output $model
    run convert $model -o converted
    "$attend" translate $model --beam 2 --scores <source >before
    "$attend" translate converted --beam 2 --scores <source >after
    same_file before after
    equal "converted: ok" "$("$attend" info --verify converted)" "the checksum of a model that was converted"
    same_file $model converted # attend's own files stay as they are, history and record of training included
done

# Fewer bits: every command takes such a model, and it translates with the same bits in any batch and with any threads.
awk 'BEGIN { srand(3); for (i = 0; i < 200; i++) { n = 2 + int(rand() * 4); s = ""; for (w = 0; w < n; w++) s = s (w ? " " : "") sprintf("%c", 97 + int(rand() * 12))
    print s >"letters"; print toupper(s) >"capitals" } }'
works() { "$attend" "$@" >said 2>&1 || fail "attend $* says $(cat said)"; }
for model in luong transformer; do
    run train --source letters --target capitals --hidden 64 --epochs 2 --model $model --quiet --overwrite --output big
    for weights in bf16 f16 int8; do
        run convert big --weights $weights -o small
        equal "small: ok" "$("$attend" info --verify small)" "the checksum of $weights"
        equal "weights          $weights" "$("$attend" info small | grep '^weights')" "info of $weights"
        equal "" "$("$attend" info big | grep '^weights' || true)" "info of float32"
        most=$(($(stat -c %s big) * ($([ $weights = int8 ] && echo 50 || echo 65)) / 100)) # with vocabularies and headers
        [ "$(stat -c %s small)" -le "$most" ] || fail "$weights: $(stat -c %s small) bytes of $(stat -c %s big)"
        "$attend" translate small --beam 3 --scores --threads 1 --batch-size 1 <letters >one
        "$attend" translate small --beam 3 --scores --threads 2 --batch-size 64 <letters >many
        same_file one many
        run convert small -o again
        same_file small again
        run convert small --weights f32 -o wide
        "$attend" align -m small --source letters --target capitals --scores >narrow.links
        "$attend" align -m wide --source letters --target capitals --scores >wide.links
        equal 200 "$(wc -l <narrow.links)" "aligned lines"
        [ $model = luong ] || [ $weights = int8 ] || same_file narrow.links wide.links
        run encode -m small -o features.npy --mean -i letters
        works show -m small "a b c" -o maps.safetensors
        works translate -m small -m big -i letters -o ensemble
        run average small big -o mean
        equal "" "$("$attend" info mean | grep '^weights' || true)" "a mean is float32"
        works score perplexity -m small --source letters --reference capitals
        works serve -m a-b=small --check --no-isolation --port 0
        rm -rf tuned tuned.*
        run train --init small --source letters --target capitals --updates 2 --quiet --output tuned
        equal "" "$("$attend" info tuned | grep '^weights' || true)" "a model trained further is float32"
        works train --init small --valid-only --source letters --target capitals --valid-source letters --valid-target capitals --quiet
    done
done
works heads -m small --source letters --target capitals --prune 50% -o pruned
equal "" "$("$attend" info pruned | grep '^weights' || true)" "a pruned model is float32"
refuse 2 "no number type 'int9'; did you mean 'int8'?" convert big --weights int9 -o x
refuse 2 "attend convert needs -o FILE, the model to write" convert luong
refuse 2 "attend convert needs a model: attend convert MODEL -o FILE" convert -o x
"$attend" convert source -o x 2>said && fail "a text becomes a model"
[[ $(cat said) == "attend: 'source' is a text file, not a model; the known formats are: "* ]] || fail "convert says $(cat said)"
[ ! -e x ] || fail "a file is there after a failure"
finish
