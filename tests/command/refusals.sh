# What attend attention refuses, in which words, with which exit code; and that it then leaves no file behind.
. "$(dirname "$0")/support.bash"

npy x.npy '3, 3' 1 3 2 1 1 3 1 2 1
npy q.npy '2, 2, 4' 1 2 3 4 5 6 7 8 1 2 3 4 5 6 7 8
npy k.npy '2, 3, 2' 1 2 3 4 5 6 1 2 3 4 5 6
npy k4.npy '2, 3, 4' 1 2 3 4 5 6 7 8 9 1 2 3 1 2 3 4 5 6 7 8 9 1 2 3
npy v.npy '2, 3, 3' 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9
npy line.npy '3,' 1 2 3
mkdir folder
echo text >file.txt

# Usage.
refuse 2 "attend attention needs --query ARRAY" attention --out z.npy
refuse 2 "nothing to write: give --show, --out, --weights, --summary or --grads" attention --query x.npy
refuse 2 "--grads needs --grad-out ARRAY, the gradient of the loss with respect to the output" \
    attention --query x.npy --grads grads
refuse 2 "--grad-out needs --grads DIR, the folder for the gradients" attention --query x.npy --grad-out x.npy --out z.npy
refuse 2 "--rows chooses rows of --weights, which is not asked for" attention --query x.npy --rows 1 --out z.npy
refuse 2 "--sample draws for --normaliser hard; softmax draws nothing" attention --query x.npy --sample 1 --out z.npy
refuse 2 "no option '--scor'; did you mean '--score'?" attention --query x.npy --scor dot --out z.npy
refuse 2 "no option '--norm'; attend attention --help shows those there are" attention --query x.npy --norm hard --out z.npy
refuse 2 "no score 'scalled'; did you mean 'scaled'?" attention --query x.npy --score scalled --out z.npy
refuse 2 "no normaliser 'max'; there are 'softmax', 'sparsemax', 'entmax15', 'sigmoid', 'relu' and 'hard'" \
    attention --query x.npy --normaliser max --out z.npy
refuse 2 "no window 'slidin'; did you mean 'sliding'?" attention --query x.npy --window slidin:3 --out z.npy
refuse 2 "no position 'alibii'; did you mean 'alibi'?" attention --query x.npy --position alibii --out z.npy
refuse 2 "window 'sliding' needs a whole number: 'sliding:W'" attention --query x.npy --window sliding --out z.npy
refuse 2 "--heads takes a whole number from 1 to 1048576, not '0'" attention --query x.npy --heads 0 --out z.npy
refuse 2 "--query-start takes a whole number, 0 or more, not '-1'" attention --query x.npy --query-start -1 --out z.npy
refuse 2 "--lengths takes a whole number, 0 or more, not ''" attention --query x.npy --lengths 3,,1 --out z.npy
refuse 2 "--param takes NAME=FILE, like W=w.npy, not 'W'" attention --query x.npy --param W --out z.npy
refuse 2 "--out takes FILE, not an empty word" attention --query x.npy --out ''
refuse 2 "attend attention takes options only, not 'k.npy'" attention --query x.npy k.npy --out z.npy
refuse 2 "--out and --weights both name 'z.npy'; one would overwrite the other" \
    attention --query x.npy --out z.npy --weights z.npy
refuse 2 "--out and --weights both name './z.npy'; one would overwrite the other" \
    attention --query x.npy --out z.npy --weights ./z.npy
echo old >there.npy
ln -s there.npy link.npy
refuse 2 "--out and --summary both name 'folder/../link.npy'; one would overwrite the other" \
    attention --query x.npy --out there.npy --summary folder/../link.npy
refuse 2 "--out and --grads both name './folder/query.npy'; one would overwrite the other" \
    attention --query x.npy --out folder/query.npy --grad-out x.npy --grads ./folder

# Arrays that are not there or not what they should be.
refuse 1 "--query: cannot read 'missing.npy': No such file or directory" attention --query missing.npy --out z.npy
refuse 1 "--query is [3] but must be [B,Q,H·D] or [Q,H·D]" attention --query line.npy --out z.npy
npy wide0.npy '3, 0'
refuse 1 "--query is [3,0], and its rows must hold at least one number" attention --query wide0.npy --out z.npy
refuse 1 "--value is [3,0], and its rows must hold at least one number" attention --query x.npy --value wide0.npy --out z.npy
refuse 1 "--query is [3,3], whose width 3 is not a multiple of --heads 2" attention --query x.npy --heads 2 --out z.npy
refuse 1 "--heads 4 is not a multiple of --kv-heads 3" attention --query q.npy --heads 4 --kv-heads 3 --out z.npy
refuse 1 "--key is [2,3,2] but with --query [2,2,4], --heads 1 and --kv-heads 1 it must be [2,K,4]" \
    attention --query q.npy --key k.npy --out z.npy
refuse 1 "--key is [3,3] but with --query [2,2,4], --heads 2 and --kv-heads 2 it must be [2,K,4]" \
    attention --query q.npy --key x.npy --heads 2 --out z.npy
refuse 1 "--key, left out and so the query, is [2,2,4] but with --query [2,2,4], --heads 2 and --kv-heads 1 it must be [2,K,2]" \
    attention --query q.npy --heads 2 --kv-heads 1 --out z.npy
refuse 1 "--value is [2,2,4] but with --key [2,3,2] it must be [2,3,G·Dv]" \
    attention --query q.npy --key k.npy --value q.npy --heads 2 --kv-heads 1 --out z.npy
refuse 1 "--value is [2,3,3], whose width 3 is not a multiple of --kv-heads 2" \
    attention --query q.npy --key k4.npy --value v.npy --heads 2 --out z.npy
refuse 1 "--lengths has 1 number but --query [2,2,4] needs 2, one per batch row" \
    attention --query q.npy --lengths 2 --out z.npy
refuse 1 "--lengths has 3 but --key [2,2,4] has only 2 keys" attention --query q.npy --lengths 2,3 --out z.npy
refuse 1 "--rows asks for row 3 but --query [3,3] has rows 0 to 2" attention --query x.npy --rows 0,3 --weights w.npy
refuse 1 "--grad-out is [2,2,4] but must be shaped like the output, [3,3]" \
    attention --query x.npy --grad-out q.npy --grads grads --out z.npy

# Parameters.
refuse 1 "score 'general' needs parameter 'W' [D,D] = [3,3], which is not given" \
    attention --query x.npy --score general --out z.npy
refuse 1 "no setting has a parameter 'Wk'; did you mean 'wK' or 'WK'?" attention --query x.npy --param Wk=x.npy --out z.npy
refuse 1 "parameter 'W' is not used by score 'dot'; it belongs to 'general' or 'additive'" \
    attention --query x.npy --score dot --param W=x.npy --out z.npy
refuse 1 "--param W: cannot read 'missing.npy': No such file or directory" \
    attention --query x.npy --score general --param W=missing.npy --out z.npy

# Places that cannot be written to; nothing else is written then.
refuse 1 "--out: cannot write 'nowhere/z.npy': the directory 'nowhere' does not exist" \
    attention --query x.npy --out nowhere/z.npy --weights w.npy --summary s.json
refuse 1 "--summary: cannot write 'nowhere/s.json': the directory 'nowhere' does not exist" \
    attention --query x.npy --out z.npy --weights w.npy --summary nowhere/s.json
refuse 1 "--grads: cannot write 'nowhere/grads': the directory 'nowhere' does not exist" \
    attention --query x.npy --out z.npy --grad-out x.npy --grads nowhere/grads
refuse 1 "--grads: 'file.txt' is a file; name a directory, existing or not" \
    attention --query x.npy --out z.npy --grad-out x.npy --grads file.txt
refuse 1 "--out: 'folder' is a directory; name a file" attention --query x.npy --out folder
refuse 1 "--out: cannot write 'file.txt/z.npy': 'file.txt' is not a directory" attention --query x.npy --out file.txt/z.npy
refuse 1 "--out: '/dev/null' is not a regular file; name one that may be replaced" attention --query x.npy --out /dev/null

# A disk that fills up half-way: the output would fit, the weights do not.
npy long.npy '20, 1' 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9 1 2
before=$(ls)
code=0
(
    trap '' XFSZ
    ulimit -f 1
    "$attend" attention --query long.npy --out z.npy --weights w.npy --grad-out long.npy --grads grads
) >../full.$$ 2>&1 || code=$?
equal 1 "$code" "a full disk"
grep -q "^attend: --weights: cannot write 'w.npy': " ../full.$$ || fail "a full disk says $(cat ../full.$$)"
rm ../full.$$
equal "$before" "$(ls)" "files after a full disk"

# A truncated file.
head -c 150 x.npy >cut.npy
code=0
"$attend" attention --query cut.npy --out z.npy 2>said.txt || code=$?
equal 1 "$code" "truncated array"
grep -q "^attend: --query: 'cut.npy' " said.txt || fail "a truncated array says $(cat said.txt)"
[ ! -e z.npy ] || fail "a truncated array gives an output"
finish
