#!/usr/bin/env bash
# attend vocabulary, vocabulary files in training, and --tokenise: raw text in, raw text out.
. "$(dirname "$0")/support.bash"

printf "Ein Haus, ein Hund.\nDas ist Annas Hund!\n(Zwei Katzen)\nEs kostet 3.14.\n" >raw.de
printf "A house, a dog.\nThat's Anna's dog!\n(Two cats)\nIt's 3.14.\n" >raw.en

# make and print: units with counts, most frequent first; the file is what print shows
"$attend" vocabulary make --tokenise moses-like raw.en -o words.txt
equal $'￭\'s\t3' "$(head -1 words.txt)" 'the most frequent unit'
same_file <("$attend" vocabulary print words.txt) words.txt
same_file <("$attend" vocabulary make --tokenise moses-like <raw.en) words.txt
equal 3 "$("$attend" vocabulary make --vocab word:3 raw.en | wc -l)" '--vocab word:3'

# segment and its inverse, for every kind
segment() { # OPTIONS...: prints the segments of raw.en, which --join must turn into raw.en again
    "$attend" vocabulary segment "$@" <raw.en >segments || fail "segment $*"
    same_file <("$attend" vocabulary segment --join "$@" -i segments) raw.en
}
segment --tokenise moses-like words.txt
equal "That ￭'s Anna ￭'s dog ￭!" "$(sed -n 2p segments)" 'words'
"$attend" vocabulary make --vocab char raw.en -o characters.txt
segment characters.txt
equal '( T w o ▁ c a t s )' "$(sed -n 3p segments)" 'characters'
if "$attend" vocabulary make --vocab spm:28 raw.en -o pieces.spm 2>said; then
    segment pieces.spm
    equal "$("$attend" vocabulary print pieces.spm | head -1)" '<unk>' 'the first piece'
else
    skipped "subwords: $(cat said)"
fi

# a model of raw text: it reads and writes raw text, its vocabularies can be printed
run train --source raw.de --target raw.en --tokenise moses-like --target-vocab words.txt --hidden 32 --embedding 16 --attention 16 \
    --maxout 16 --learning-rate 0.02 --optimiser adam --schedule constant --updates 150 --output model --quiet
same_file <("$attend" translate --model model <raw.de) raw.en
same_file <("$attend" vocabulary print --side target model) words.txt
equal 'Ein Haus ￭, ein Hund ￭.' "$(head -1 raw.de | "$attend" vocabulary segment --side source model)" 'the source of a model'
"$attend" info model | grep -q '^target .*word, moses-like' || fail "info: $("$attend" info model)"
"$attend" align --model model --source raw.de --target raw.en >links || fail 'align'
equal 4 "$(wc -l <links)" 'lines of links'
equal '' "$(tr ' ' '\n' <links | awk -F- '$1 > 3 || $2 > 3')" 'links are of the words of the raw lines'

refuse 2 'attend vocabulary needs an action: make, print or segment' vocabulary
refuse 2 "no action 'prin'; did you mean 'print'?" vocabulary prin
refuse 2 'attend vocabulary print needs one vocabulary file or model' vocabulary print
refuse 2 'a vocabulary of subwords needs -o FILE.spm' vocabulary make --vocab spm:40 raw.en
refuse 2 "'x.spm' would be taken for subwords; name a vocabulary of words FILE.txt" vocabulary make raw.en -o x.spm
refuse 2 "-o would write over 'raw.en', which is read; name another file" vocabulary make raw.en -o raw.en
refuse 2 "--vocab is a kind such as word:8000 here, not the file 'words.txt'" vocabulary make --vocab words.txt raw.en
refuse 2 "'model' has two vocabularies: choose --side source or target" vocabulary print model
refuse 2 "a model has the sides 'source' and 'target', not 'left'" vocabulary print --side left model
refuse 2 "'words.txt' is a vocabulary, which has one --side" vocabulary print --side source words.txt
refuse 2 "'model' is a model, which knows how its text is cleaned" vocabulary print --side source --lowercase model
refuse 2 "no tokeniser 'moses'; there are 'none' and 'moses-like'" vocabulary make --tokenise moses raw.en
refuse 1 "cannot read 'nothing': No such file or directory" vocabulary print nothing
refuse 1 "line 1 of 'raw.en' is not one word; a vocabulary has a unit in each line and, after a tab, its count" vocabulary print raw.en
refuse 2 "--tokenise is for vocabularies of words, and --target-vocab is 'char'" \
    train --source raw.de --target raw.en --tokenise moses-like --source-vocab char --target-vocab char --output x
refuse 2 "--output would overwrite 'words.txt', which --target-vocab reads; choose another file" \
    train --source raw.de --target raw.en --target-vocab words.txt --output words.txt
finish
