# Subwords in the command: models made from the text or read from a file, kept in the one file of the model, the same for
# every run; the settings of the text with them; and hostile files.
. "$(dirname "$0")/support.bash"

# Sentences about things; the target is the source with its words the other way round.
awk 'BEGIN { srand(3); split("the a small large Red green Caf\303\251 Haus house garden walking walked walks talks talking", w, " ");
    for (i = 0; i < 200; i++) { l = ""; r = ""; for (k = 0; k < 5; k++) { x = w[1 + int(rand() * 15)]; l = l (k ? " " : "") x; r = x (k ? " " : "") r }
        print l >"source"; print r >"target" } }'
small="--model luong --embedding 8 --hidden 12 --batch-size 20 --quiet --source source --target target"

# The same bytes on one thread and on two, stopped and resumed, for both kinds, drawn or not.
for kind in spm:34 spm:33:bpe; do
    for draw in 0 0.3; do
        vocab="--source-vocab $kind --target-vocab $kind --subword-sampling $draw"
        run train $small $vocab --epochs 3 --output whole --threads 1 --overwrite
        run train $small $vocab --epochs 3 --output two --threads 2 --overwrite
        cmp whole two || fail "$kind, drawn by $draw, depends on the threads"
        run train $small $vocab --epochs 1 --output part --overwrite
        run train $small $vocab --updates 15 --output part --resume
        run train $small $vocab --epochs 3 --output part --resume
        cmp whole part || fail "$kind, drawn by $draw, is another after it was resumed"
        [ "$draw" = 0 ] && cp whole best
    done
    ! cmp -s best whole || fail "$kind: drawing changes nothing"
done
refuse 1 "cannot resume from 'whole.state', which was written with --subword-sampling 0.3 and not with --subword-sampling 0; train as before, or from the start with --overwrite" \
    train $small --source-vocab spm:33:bpe --target-vocab spm:33:bpe --epochs 4 --output whole --resume --subword-sampling 0

# One line for each line, whatever it holds; blanks and not their signs.
{ head -3 source; echo; printf '\377\376 \342\226\201 \360\237\230\200\n'; echo '   '; echo 'the house'; } >lines
"$attend" translate -m whole <lines >out 2>said || fail "translating says $(cat said)"
equal 7 "$(wc -l <out)" "lines of the translation"
! grep -q '▁' out || fail "the sign of a blank is left in $(cat out)"
equal '' "$(sed -n 4p out)$(sed -n 6p out)" "the translation of an empty line"
"$attend" align -m whole --source source --target target >words
"$attend" align -m whole --source source --target target --level subword >units
equal 200 "$(wc -l <words)" "aligned lines"
equal 4 "$(tr ' ' '\n' <words | sed 's/.*-//' | sort -n | tail -1)" "the last word of a target"
[ "$(wc -w <units)" -gt "$(wc -w <words)" ] || fail "there are no more subwords than words"

# One model for both sides; the settings of the text are the model's.
run train $small --source-vocab spm:34 --target-vocab spm:34 --joint-vocab --lowercase --normalise nfkc --epochs 1 --output joint
equal 2 "$("$attend" info joint | grep -c '^\(source\|target\) *spm (unigram), nfkc, lower case, 34 units and 4 specials$')" "what info says"
printf 'RED Café\nred Cafe\314\201\nｒed CAFÉ\n' >same
equal 1 "$("$attend" translate -m joint <same | sort -u | wc -l)" "translations of one line written in three ways"
for kind in char word; do
    run train $small --source-vocab $kind --target-vocab $kind --lowercase --normalise nfkc --epochs 1 --output $kind
    equal 1 "$("$attend" translate -m $kind <same | sort -u | wc -l)" "the same for $kind"
done

# Validation by decoding compares with the references as the model writes them.
printf 'Red\tRot\nGreen\tGR\303\234N\nBlue\tBlau\n' >colours.tsv
"$attend" train --tsv colours.tsv --valid-tsv colours.tsv --valid-metric accuracy --lowercase --embedding 16 --hidden 24 \
    --attention 16 --maxout 16 --learning-rate 0.01 --epochs 60 --valid-every 60 --output colours 2>said || fail "training says $(cat said)"
grep -q 'best accuracy 100' said || fail "three words are learnt as $(tail -2 said)"

# A file of SentencePiece's is needed once.
cp "$here/../ref/rules.spm" own.spm
run train $small --source-vocab own.spm --target-vocab own.spm --epochs 1 --output from_file
rm own.spm
equal 7 "$("$attend" translate -m from_file <lines 2>/dev/null | wc -l)" "lines of a model whose .spm is gone"

# Refusals.
refuse 2 "no vocabulary 'bpe:40'; there are 'char', 'word', 'word:8000', 'spm:8000', 'spm:8000:bpe', files that end in .spm or .model, and files of units such as ./words or words.txt" \
    train $small --output m --source-vocab bpe:40
refuse 2 "--source-vocab: the text allows 38 pieces at most, so 'spm:8000' is too many" train $small --output m --source-vocab spm:8000
refuse 2 "--normalise takes none, nfc or nfkc, not 'nfd'" train $small --output m --normalise nfd
refuse 2 "--subword-sampling samples the subwords of spm vocabularies, and neither side has one; leave it out, or use --source-vocab spm:8000" \
    train $small --output m --subword-sampling 0.1
cp source text.spm
refuse 1 "'text.spm' is not a valid SentencePiece model: a field has a type that such files do not have" \
    train $small --output m --source-vocab text.spm
head -c 2000 "$here/../ref/rules.spm" >cut.spm
refuse 1 "'cut.spm' is not a valid SentencePiece model: a field is longer than what is left of the file" \
    train $small --output m --source-vocab cut.spm
LC_ALL=C sed -e 's/vocabulary\.source/vocabulary.sourcf/' -e 's/"attend\.checksum":"xxh3-64:/"checksum.before":"removed:/' whole >other
refuse 1 "'source.vocabulary' of 'other' cannot be used: its subword model should be the bytes 'vocabulary.source', which are missing" \
    info other

echo "$checks checks"
