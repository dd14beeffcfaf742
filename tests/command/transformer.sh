# attend train --model transformer: every position trains, what does not fit is refused in one sentence, and a line longer than
# a learned table is still a line.
. "$(dirname "$0")/support.bash"

awk 'BEGIN { srand(7); for (i = 0; i < 100; i++) { n = 2 + int(rand() * 4); l = ""; for (w = 0; w < n; w++) l = l (w ? " " : "") sprintf("%c", 97 + int(rand() * 8)); print l } }' >lines
tiny="--source lines --target lines --model transformer --layers 1 --hidden 16 --ffn 16 --heads 2 --batch-size 20 --updates 2 --quiet"
for position in none sinusoidal learned shaw:2 shaw:2:keys shaw:2:values rope alibi t5; do
    run train $tiny --position $position --output "m.$position"
    "$attend" translate -m "m.$position" --quiet <lines >said || fail "a model with position $position does not translate"
    equal 100 "$(wc -l <said)" "lines by position $position"
done

# Refusals: one sentence each, and no file.
refuse 2 "no position 'sinusoid'; did you mean 'sinusoidal'?" train $tiny --output m --position sinusoid
refuse 2 "no table 'key' for position 'shaw'; did you mean 'keys'?" train $tiny --output m --position shaw:2:key
refuse 2 "--heads is 3 and must divide --hidden, which is 16" train $tiny --output m --heads 3
refuse 2 "--kv-heads is 2 and must divide --heads, which is 1" train $tiny --output m --heads 1 --kv-heads 2
refuse 2 "--hidden is 15 and must be even for --position sinusoidal" train $tiny --output m --hidden 15 --heads 1
refuse 2 "--norm takes post or pre, not 'both'" train $tiny --output m --norm both
refuse 2 "--activation takes relu, gelu or swish, not 'tanh'" train $tiny --output m --activation tanh
refuse 2 "'scalled' in 'scalled,shaw:2' is not a score, normaliser, window or position; name at most one of each, separated by commas, as in 'scaled,sliding:8,shaw:16'" \
    train $tiny --output m --encoder-attention scalled,shaw:2
refuse 2 "position 'shaw' needs a whole number: 'shaw:K[:keys|:values]'" train $tiny --output m --cross-attention shaw
refuse 2 "--position sinusoidal is added to the embeddings of a transformer or the cells of a picture, and model 'bahdanau' has neither" \
    train --source lines --target lines --output m --position sinusoidal
refuse 2 "position 'rope' rotates pairs of numbers, so the head size must be even, and --hidden 18 over --heads 2 is 9" \
    train $tiny --output m --hidden 18 --position rope
refuse 2 "--first-position takes a whole number from 0 to below 1000000000, not '0.5'" train $tiny --output m --first-position 0.5
refuse 2 "the decoder's self-attention cannot use the window 'local-p': its centre is a fraction of the length, which a decoder does not know in advance; 'sliding' attends to a fixed number" \
    train $tiny --output m --decoder-attention local-p:2
tr a x <lines | sed 's/x/x y/' >other
refuse 2 "--share-embeddings needs one vocabulary for both sides, and those of 12 and 13 entries differ; --joint-vocab makes one" \
    train $tiny --target other --output m --share-embeddings
tr a x <lines >other # as many words, and not the same
refuse 2 "--share-embeddings needs one vocabulary for both sides, and those of 12 and 12 entries differ; --joint-vocab makes one" \
    train $tiny --target other --output m --share-embeddings
run train $tiny --target other --output shared --share-embeddings --joint-vocab

# One line is longer than the table: training says so, translating gives a line for each line and a note.
{ cat lines; echo a b c d e f g h a b c d; } >longer
code=0
"$attend" train $tiny --source longer --target longer --updates 20 --position learned --positions 8 --output m 2>said || code=$?
equal 1 "$code" "a line longer than the table"
equal "attend: a sentence of 12 units is longer than the learned table of 8 positions; train with --positions 12 or more, or with --position sinusoidal, which has no limit" \
    "$(cat said)" "a line longer than the table"
run train $tiny --position learned --positions 8 --output m
"$attend" translate -m m --beam 2 <longer >out 2>said || fail "translating says $(cat said)"
equal 101 "$(wc -l <out)" "lines, one of them longer than the table"
equal "attend: line 101 has 12 units, more than the model was trained on" "$(cat said)" "a line longer than the table"

finish
