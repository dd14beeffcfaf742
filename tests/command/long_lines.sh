# Lines longer than what a model was trained on, and than --max-source: a line out for each line in, a note about each, and
# an answer to a line of 100,000 letters.
. "$(dirname "$0")/support.bash"

awk 'BEGIN { srand(7); for (i = 0; i < 80; i++) { l = ""; for (w = 0; w < 12; w++) l = l sprintf("%c", 97 + int(rand() * 8)); print l } }' >lines
small="--embedding 8 --hidden 8 --attention 8 --maxout 8 --max-length 20 --updates 5 --quiet"
run train --source lines --target lines --source-vocab char --target-vocab char $small --output m
run train --model transformer-lm --target lines --target-vocab char --layers 1 --hidden 8 --heads 2 --ffn 8 --max-length 20 --updates 5 --quiet --output lm
letters() { # NUMBER
    head -c "$1" /dev/zero | tr '\0' a
}

# The default limit is 1000 units, or 5 times what training allowed if that is more.
{ echo abc; letters 100000; echo; echo cba; } >in
"$attend" translate -m m <in >out 2>said || fail "a line of 100,000 letters: $(cat said)"
equal 3 "$(wc -l <out)" "lines out for 3 lines in"
equal "attend: line 2 has 100000 units; only the first 1000 are read (--max-source)" "$(cat said)" "the note"
{ echo abc; letters 1000; echo; echo cba; } | "$attend" translate -m m --quiet >shorter
same_file out shorter
run train --source lines --target lines --source-vocab char --target-vocab char ${small/20/300} --output m300
letters 1501 | "$attend" translate -m m300 2>said >/dev/null
equal "attend: line 1 has 1501 units; only the first 1500 are read (--max-source)" "$(cat said)" "the limit of a model of longer lines"

# Another limit; the first three lines are noted one by one.
for n in 31 20 32 33 34 35; do letters $n; echo; done >in
"$attend" translate -m m --max-source 30 <in >out 2>said
equal 6 "$(wc -l <out)" "lines out"
equal "attend: line 1 has 31 units; only the first 30 are read (--max-source)
attend: line 3 has 32 units; only the first 30 are read (--max-source)
attend: line 4 has 33 units; only the first 30 are read (--max-source)
attend: 2 more lines had more units than --max-source" "$(cat said)" "the notes"
"$attend" translate -m m --max-source 34 <in 2>said >/dev/null
equal "attend: line 1 has 31 units, more than the model was trained on
attend: line 3 has 32 units, more than the model was trained on
attend: line 4 has 33 units, more than the model was trained on
attend: line 6 has 35 units; only the first 34 are read (--max-source)
attend: 1 more line had more units than the model was trained on" "$(cat said)" "both kinds of notes"
"$attend" translate -m m --max-source 30 --quiet <in 2>said >/dev/null
equal "" "$(cat said)" "notes with --quiet"
refuse 2 "--max-source takes a whole number from 1 to 268435456, not '0'" translate -m m --max-source 0 </dev/null

# A language model reads the end of a line, and its output begins with the whole line.
{ letters 5000; echo bcd; } >in
"$attend" translate -m lm <in >out 2>said
equal "attend: line 1 has 5003 units; only the last 1000 are read (--max-source)" "$(cat said)" "the note of a language model"
equal "$(cat in)" "$(head -c 5003 out)" "the beginning of the output"
{ letters 997; echo bcd; } | "$attend" translate -m lm --quiet >shorter
equal "$(tail -c +998 shorter)" "$(tail -c +5001 out)" "its end"

# align and encode read whole lines unless told otherwise.
{ letters 50; echo; } >in
echo abc >target
"$attend" align -m m --source in --target target >out 2>said
equal "attend: line 1 has 50 units, more than the model was trained on" "$(cat said)" "the note of align"
"$attend" align -m m --source in --target target --level subword --coverage --max-source 7 >out 2>said
equal "attend: line 1 has 50 units; only the first 7 are read (--max-source)" "$(cat said)" "the note of align"
equal 7 "$(sed 's/.*||| \(.*\) |||.*/\1/' out | wc -w)" "source units that are covered"
"$attend" encode -m m -o x.npy <in 2>said
equal "(50, 16)" "$(shape x.npy)" "features of a whole line"
"$attend" encode -m m --max-source 9 -o x.npy <in 2>said
equal "(9, 16)" "$(shape x.npy)" "features of a line that is cut"
equal "attend: line 1 has 50 units; only the first 9 are read (--max-source)" "$(cat said)" "the note of encode"
finish
