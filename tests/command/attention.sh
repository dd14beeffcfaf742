# attend attention from end to end, on the worked example X = "I am good".
. "$(dirname "$0")/support.bash"

npy x.npy '3, 3' 1 3 2 1 1 3 1 2 1
Z='1.0000 2.9577 2.0113 1.0000 1.5401 2.7226 1.0000 2.8642 2.0000'
W='0.9756 0.0179 0.0066 0.2676 0.7275 0.0049 0.9094 0.0453 0.0453'

# Self-attention: the key is the query and the value the key when they are left out. 2-D in, 2-D out.
run attention --query x.npy --score dot --out z.npy --weights w.npy
equal '(3, 3)' "$(shape z.npy)" "shape of out"
equal '(1, 3, 3)' "$(shape w.npy)" "shape of weights"
equal "$Z" "$(values z.npy)" "softmax(XXᵀ)X"
equal "$W" "$(values w.npy)" "softmax(XXᵀ)"
run attention --query x.npy --key x.npy --value x.npy --score=dot --out z2.npy --threads 2
same_file z.npy z2.npy
run attention --query x.npy --score dot --out z3.npy --threads 1
same_file z.npy z3.npy
run attention --query x.npy --score dot --plain --out plain.npy
equal "$Z" "$(values plain.npy)" "the reference path"

# The score is divided by √d unless asked otherwise.
run attention --query x.npy --out scaled.npy
equal '1.0000 2.7798 2.0377 1.0000 1.7288 2.5839 1.0000 2.6080 2.0000' "$(values scaled.npy)" "scaled score"

# 3-D in, 3-D out; a batch row that sees fewer keys, and one that sees none.
npy batch.npy '3, 3, 3' 1 3 2 1 1 3 1 2 1 1 3 2 1 1 3 1 2 1 1 3 2 1 1 3 1 2 1
run attention --query batch.npy --score dot --lengths 3,2,0 --out b.npy --weights bw.npy --summary b.json
equal '(3, 3, 3)' "$(shape b.npy)" "shape of out"
equal '(3, 1, 3, 3)' "$(shape bw.npy)" "shape of weights"
zeros='0.0000 0.0000 0.0000 0.0000 0.0000 0.0000 0.0000 0.0000 0.0000'
equal "$Z 1.0000 2.9640 2.0180 1.0000 1.5379 2.7311 1.0000 2.9051 2.0474 $zeros" "$(values b.npy)" "lengths"
equal "$W 0.9820 0.0180 0.0000 0.2689 0.7311 0.0000 0.9526 0.0474 0.0000 $zeros" "$(values bw.npy)" "weights of lengths"
equal '{"argmax":[[[0,1,0]],[[0,1,0]],[[-1,-1,-1]]],' "$(head -1 b.json)" "argmax of a batch"

# Chosen rows, in the order they were asked for.
run attention --query x.npy --score dot --rows 2,0 --weights rows.npy
equal '(1, 2, 3)' "$(shape rows.npy)" "shape of chosen rows"
equal '0.9094 0.0453 0.0453 0.9756 0.0179 0.0066' "$(values rows.npy)" "chosen rows"

# Summaries.
run attention --query x.npy --score dot --summary s.json
equal '{"argmax":[[0,1,0]],' "$(sed -n 1p s.json)" "argmax"
round='s/[0-9]*\.[0-9]*/\n&\n/g'
figures() {
    sed "$round" | LC_ALL=C awk '/^[0-9]*\.[0-9]*$/ { printf "%.4f", $1; next } { printf "%s", $0 } END { print "" }'
}
equal '"entropy":[[0.1291,0.6103,0.3666]],' "$(sed -n 2p s.json | figures)" "entropy"
equal '"key_sums":[[2.1526,0.7906,0.0568]]}' "$(sed -n 3p s.json | figures)" "sums over keys"
equal 3 "$(wc -l <s.json)" "lines of the summary"
run attention --query x.npy --score dot --normaliser hard --summary h.json --out h.npy
equal '1.0000 3.0000 2.0000 1.0000 1.0000 3.0000 1.0000 3.0000 2.0000' "$(values h.npy)" "hard takes the likeliest"
equal '"log_prob":[[' "$(sed -n 4p h.json | cut -c1-13)" "hard has a log-probability"
npy even.npy '20, 1' 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
run attention --query even.npy --normaliser hard --sample 7 --weights h1.npy
run attention --query even.npy --normaliser hard --sample 7 --weights h2.npy
run attention --query even.npy --normaliser hard --sample 8 --weights h3.npy
same_file h1.npy h2.npy
! cmp -s h1.npy h3.npy || fail "another seed draws the same keys"

# Gradients, into a folder made for them.
npy g.npy '3, 3' 1 2 3 0 1 0 2 0 1
run attention --query x.npy --score dot --grad-out g.npy --grads grads
equal 'key.npy query.npy value.npy' "$(echo $(ls grads))" "gradients written"
equal '0.0000 0.0665 0.0156 0.0000 0.7836 -0.3952 0.0000 -0.0453 0.0906' "$(values grads/query.npy)" "dL/dQ"
equal '0.4402 0.5392 1.2711 -0.3646 -0.3533 -1.1675 -0.0756 -0.1859 -0.1036' "$(values grads/key.npy)" "dL/dK"
equal '2.7944 2.2187 3.8361 0.1084 0.7632 0.0989 0.0971 0.0180 0.0650' "$(values grads/value.npy)" "dL/dV"

# A parameter, its gradient, and a folder that is there already. W picks the second number of each word.
npy W.npy '3, 3' 0 0 0 0 1 0 0 0 0
run attention --query x.npy --score general --param W=W.npy --weights gw.npy --grad-out g.npy --grads grads
equal '0.9503 0.0024 0.0473 0.6652 0.0900 0.2447 0.8668 0.0159 0.1173' "$(values gw.npy)" "general score"
equal 'W.npy key.npy query.npy value.npy' "$(echo $(LC_ALL=C ls grads))" "gradients with a parameter"
equal '(3, 3)' "$(shape grads/W.npy)" "shape of dL/dW"

# Heads: three of one number; and three query heads over one key and value head.
run attention --query x.npy --score dot --heads 3 --out heads.npy --weights hw.npy
equal '(3, 3, 3)' "$(shape hw.npy)" "weights of three heads"
equal '1.0000 2.9480 2.8509 1.0000 2.5752 2.9480 1.0000 2.8509 2.5752' "$(values heads.npy)" "three heads"
npy k1.npy '2, 1' 1 2
run attention --query x.npy --key k1.npy --heads 3 --kv-heads 1 --out mq.npy
equal '(3, 3)' "$(shape mq.npy)" "multi-query"

# Projections: WO decides the width of the output.
npy WO.npy '2, 3' 1 0 0 0 1 1
run attention --query x.npy --score dot --param WO=WO.npy --out wo.npy
equal '1.0000 4.9690 1.0000 4.2627 1.0000 4.8642' "$(values wo.npy)" "WO"

# A file that is there keeps its mode, and a link stays a link.
echo old >mine.npy
chmod 600 mine.npy
ln -s mine.npy link.npy
run attention --query x.npy --score dot --out link.npy
same_file z.npy mine.npy
equal 600 "$(stat -c %a mine.npy)" "mode of a file that was there"
equal mine.npy "$(readlink link.npy)" "a link to it"
if [ "$(id -u)" != 0 ]; then # root may write anywhere
    chmod 400 mine.npy
    refuse 1 "--out: no permission to write to the file 'mine.npy'" attention --query x.npy --out mine.npy
fi

# Arrays inside a safetensors file.
header='{"a":{"dtype":"F32","shape":[3,3],"data_offsets":[0,36]},"bb":{"dtype":"F32","shape":[3,3],"data_offsets":[36,72]}}'
{
    printf "\\x$(printf %02x ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"
    floats 1 3 2 1 1 3 1 2 1 0 0 0 0 0 0 0 0 0
} >x.safetensors
run attention --query x.safetensors:a --score dot --out st.npy
same_file z.npy st.npy
refuse 1 "--query: no array 'b' in 'x.safetensors'; did you mean 'bb'?" attention --query x.safetensors:b --out n.npy
refuse 1 "--query: no array 'zebra' in 'x.safetensors'; it has a, bb" attention --query x.safetensors:zebra --out n.npy
refuse 2 "--query: 'x.safetensors' needs the name of an array, as in 'x.safetensors:NAME'; it has a, bb" \
    attention --query x.safetensors --out n.npy
printf '\x08\0\0\0\0\0\0\0{}      ' >none.safetensors
refuse 2 "--query: 'none.safetensors' needs the name of an array, as in 'none.safetensors:NAME'; it has none" \
    attention --query none.safetensors --out n.npy

# A name that would steer the terminal is shown, not sent.
header='{"a\u001b[2J":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'
printf "\\x$(printf %02x ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header" >steer.safetensors
refuse 1 "--query: no array 'zebra' in 'steer.safetensors'; it has a\x1b[2J" \
    attention --query steer.safetensors:zebra --out n.npy
refuse 1 "--query: cannot read 'a\xff.npy': No such file or directory" attention --query $'a\xff.npy' --out n.npy

# What was done, for those who ask.
"$attend" attention --query x.npy --out z4.npy --verbose --threads 1 2>said.txt >&2
grep -qE '^attend: batch 1, queries 3, keys 3, heads 1: [0-9.]+ ms with threads 1, [0-9.]+ MB of memory$' said.txt ||
    fail "--verbose says $(cat said.txt)"
run attention --query x.npy --out z5.npy --verbose --quiet
finish
