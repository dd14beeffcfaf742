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
refuse 2 "attend convert needs -o FILE, the model to write" convert luong
refuse 2 "attend convert needs a model: attend convert MODEL -o FILE" convert -o x
"$attend" convert source -o x 2>said && fail "a text becomes a model"
[[ $(cat said) == "attend: 'source' is a text file, not a model; the known formats are: "* ]] || fail "convert says $(cat said)"
[ ! -e x ] || fail "a file is there after a failure"
finish
