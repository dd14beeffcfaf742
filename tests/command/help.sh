# The help of attend train: in short, one group, one model, and all of it.
. "$(dirname "$0")/support.bash"

golden help_train.txt train --help
golden help_train.txt train -h
golden help_train.txt help train
golden help_train_all.txt train --help all
golden help_train_all.txt help train all
golden help_train_updates.txt train --help updates
golden help_train_transformer.txt train --model transformer --help
golden help_train_transformer.txt train --help transformer
golden help_train_lm_data.txt train --help data --model transformer-lm
echo 'model = transformer' >model.conf
golden help_train_transformer.txt train --config model.conf --help

# In short it fits two screens, and nothing is wider than one.
lines=$(wc -l <"$here/help_train.txt")
[ "$lines" -le 60 ] || fail "train --help has $lines lines"
for text in "$here"/help_train*.txt; do
    grep -v '^  attend train\|^      --' "$text" >text.txt || true # examples
    wide=$(grep -E '^.{81}' text.txt || true)
    equal "" "$wide" "too wide in $text"
done

# It names every option, and --help all describes them.
for option in $("$attend" train --help all | sed -n 's/^  --\([a-z-]*\).*/\1/p'); do
    sed -n '/^All options/,$p' "$here/help_train.txt" | grep -qw -- "$option" || fail "train --help does not name --$option"
done

# The parts of a heading, in any case and shortened.
for word in vocabularies Lengths vocab; do
    equal "Vocabularies and lengths" "$("$attend" train --help $word | head -1)" "train --help $word"
done
equal "Of every command" "$("$attend" translate --help every | head -1)" "translate --help every"

# Of one model only what it uses, with its own defaults; the same as attend list MODEL.
"$attend" train --model transformer --help | tail -n +3 >text.txt
"$attend" list transformer | diff - text.txt >&2 || fail "attend list transformer differs from the help of the model"
said=$("$attend" train --model rnn-plain --help)
[[ $said != *--heads* && $said != *--score* && $said == *"(default: 0.5)"* ]] || fail "rnn-plain has: $said"
said=$("$attend" train --model transformer-lm --help all | sed '/^Examples/,$d')
[[ $said != *--source\ * && $said != *--joint-vocab* && $said == *--target* ]] || fail "transformer-lm has: $said"

# The default that help shows is the one that training uses and stores.
printf 'a b\nb a\n' >lines
for model in rnn-plain luong transformer; do
    "$attend" train --model $model --source lines --target lines --output m.$model --updates 1 --quiet
    head -c 9000 m.$model | tr -d '\\' >settings # the header of the file
    "$attend" list $model | sed -n '/^The model/,/^$/p' | awk '/^  --/ { print "" } { printf "%s ", $0 }' |
        sed -n 's/^ *--\([a-z-]*\) .*(default: \([a-z0-9.-]*\)).*/\1 \2/p' | while read -r name value; do
        case $name in attention-dropout | reset | hard-training | coverage*) continue ;; esac # 0 is not stored, nor what has no effect
        grep -aEq "\"$name\":\"?$value[\",}]" settings || fail "$model stores no $name $value"
    done
    checks=$((checks + 1))
done

refuse 2 "no group of options 'update-s'; did you mean 'updates'?" train --help update-s
refuse 2 "no group of options 'zebra'; there are 'data', 'fine-tuning', 'model', 'vocabularies', 'updates', 'stopping', 'every' and 'all'" train --help zebra
refuse 2 "no model 'transfomer'; did you mean 'transformer'?" train --model transfomer --help
refuse 2 "no topic 'transfomer'; did you mean 'transformer'?" list transfomer
finish
