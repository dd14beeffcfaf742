#!/usr/bin/env bash
# Fine-tuning: --init, --freeze and --keep as a user meets them, and their refusals.
. "$(dirname "$0")/support.bash"

printf 'ein Haus\nein Hund\nzwei Katzen\nein Haus und ein Hund\n' >old.de
printf 'a house\na dog\ntwo cats\na house and a dog\n' >old.en
printf 'zwei Hunde\nein Boot\n' >new.de
printf 'two dogs\na boat\n' >new.en
small="--hidden 8 --embedding 8 --attention 8 --maxout 8"
old="--source old.de --target old.en"
new="--source new.de --target new.en"
run train $old $small --updates 6 --output base --quiet

# vocabularies and settings are those of the model, and it learns on from there
"$attend" train $new --init base --freeze 'encoder.*,source' --updates 2 --output fine 2>said
grep -q '9 of the 27 parameters, .* numbers, are frozen' said || fail "$(cat said)"
equal "$("$attend" info base | grep -E 'vocabular|units|hidden')" "$("$attend" info fine | grep -E 'vocabular|units|hidden')" 'info'
run train $new --init base --hidden 8 --model bahdanau --dropout 0.1 --updates 1 --output other --quiet

refuse 2 "--hidden 16 contradicts 'base', which has --hidden 8: a run with --init has the settings of that model" \
    train $new --init base --hidden 16 --output x
refuse 2 "--model luong contradicts 'base', which has --model bahdanau: a run with --init has the settings of that model" \
    train $new --init base --model luong --output x
refuse 2 "--source-vocab cannot be given with --init: the vocabularies are those of 'base'" \
    train $new --init base --source-vocab char --output x
refuse 2 "--freeze 'encodr.*' matches no parameter; did you mean 'encoder'?" train $new --init base --freeze 'encodr.*' --output x --quiet
refuse 2 "--freeze '*' leaves no parameter to train" train $new --init base --freeze '*' --output x --quiet
refuse 2 "--output would overwrite 'base', which --init reads; choose another file" train $new --init base --output base
refuse 1 "cannot read 'nothing': No such file or directory" train $new --init nothing --output x

# a resumed run does not need the model it started from, but must have started from it
mv base moved
run train $new --init base --freeze 'encoder.*,source' --updates 4 --output fine --resume --quiet
refuse 1 "cannot resume from 'fine.state', which was written with --init base and not with --init moved; train as before, or from the start with --overwrite" \
    train $new --init moved --freeze 'encoder.*,source' --updates 6 --output fine --resume --quiet
refuse 1 "cannot resume from 'fine.state', which was written with --freeze encoder.*,source and not with --freeze source; train as before, or from the start with --overwrite" \
    train $new --init base --freeze source --updates 6 --output fine --resume --quiet

# --valid-only: the scores of a model, and no file changes
run train $old $small --valid-source old.de --valid-target old.en --updates 3 --output scored --quiet
best=$("$attend" info scored | tail -1 | grep -oE 'loss [0-9.]+' | head -1) || fail "$("$attend" info scored)"
files=$(find . -type f ! -name said -exec cksum {} +)
scores=$("$attend" train --valid-source old.de --valid-target old.en --output scored --valid-only 2>said) || fail "$(cat said)"
equal "${best#loss }" "$(sed -n 's/^loss\t//p' <<<"$scores")" "the loss of the saved model in $scores"
equal "$scores" "$("$attend" train --valid-source old.de --valid-target old.en --init scored --valid-only)" 'the same by --init'
equal "wer loss perplexity token-accuracy" "$("$attend" train --valid-source old.de --valid-target old.en --init scored --valid-only --valid-metric wer,loss |
    cut -f 1 | paste -sd' ')" 'every metric of --valid-only'
equal "$scores" "$("$attend" train $old $small --source-vocab word --valid-source old.de --valid-target old.en --output scored --resume --valid-only)" 'the same command'
equal "$files" "$(find . -type f ! -name said -exec cksum {} +)" 'the files after --valid-only'
refuse 2 '--valid-only needs --valid-source and --valid-target, or --valid-tsv' train --output scored --valid-only
refuse 2 '--valid-only needs --output FILE or --init MODEL, the model to score' train --valid-source old.de --valid-target old.en --valid-only
refuse 2 "--hidden 9 contradicts 'scored', which has --hidden 8: a run with --init has the settings of that model" \
    train --valid-source old.de --valid-target old.en --output scored --hidden 9 --valid-only
refuse 1 "cannot read 'nothing': No such file or directory" train --valid-source old.de --valid-target old.en --output nothing --valid-only

# the last checkpoints, and their mean
run train $old $small --updates 9 --save-every 2 --keep 2 --output kept --quiet
equal 'kept kept.000006 kept.000008 kept.log.jsonl kept.state' "$(ls kept* | xargs)" 'the files of --keep 2'
run average kept.000006 kept.000008 --output mean
echo 'ein Haus' | "$attend" translate --model mean >/dev/null || fail 'translate with the mean'
finish
