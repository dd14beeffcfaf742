#!/usr/bin/env bash
# make_seeds.sh ATTEND: writes the seeds of the fuzzers that are made by a command or a program, into fuzz/seeds: a model of
# every kind, the states of the two trainings that fuzz_state.c resumes, and small inputs of the other readers.
set -eu
attend=$(realpath "$1")
top=$(cd "$(dirname "$0")/.." && pwd)
seeds=$top/fuzz/seeds
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
printf 'a b\nb\n' >source
printf 'b\na\n' >target

cc -D_GNU_SOURCE -DAT_HAVE_PNG -DAT_HAVE_JPEG -I "$top/include" -I "$top/src" -I "$top/tests" "$top/fuzz/picture_seeds.c" "$top/src/base/buffer.c" "$top/src/base/grow.c" \
    -lcmocka -lpng -ljpeg -o picture_seeds
./picture_seeds "$seeds"

# train NAME OPTION...: on those two lines.
train()
{
    local output=$1
    shift
    "$attend" train --source source --target target --hidden 2 --batch-size 1 --max-length 4 --updates 2 --quiet --output "$output" "$@"
}
for model in rnn-plain rnn-encdec rnn-attention bahdanau luong transformer transformer-lm; do
    small=
    case $model in
    rnn-encdec) small="--embedding 2 --maxout 2" ;;
    bahdanau) small="--embedding 2 --maxout 2 --attention 2" ;;
    luong) small="--embedding 2 --attention 2 --score additive --window local-p:1 --input-feeding" ;;
    transformer*) small="--layers 1 --heads 2 --ffn 2 --position shaw:1" ;;
    esac
    if [ $model = transformer-lm ]; then
        "$attend" train --target target --model $model --hidden 2 $small --batch-size 1 --updates 1 --quiet --output $model
    else
        train $model --model $model $small --updates 1
    fi
    cp $model "$seeds/$model.model"
done
"$attend" convert transformer --weights int8 -o "$seeds/int8.model"
"$attend" convert luong --weights bf16 -o "$seeds/bf16.model"
"$attend" convert rnn-encdec --weights f16 -o "$seeds/f16.model"
printf '%s\n' "$seeds"/{rgb.png,grey.jpeg} >pictures
"$attend" train --source pictures --target target --model show-attend-tell --image-size 6x6 --conv 2x3s2,2x1r --embedding 2 \
    --hidden 2 --attention 2 --coverage 1 --batch-size 1 --updates 1 --quiet --output show-attend-tell
cp show-attend-tell "$seeds/show-attend-tell.model"
train subwords --model transformer --layers 1 --heads 1 --ffn 2 --source-vocab "$top/tests/ref/rules.spm" --target-vocab char --updates 1
cp subwords "$seeds/subwords.model"

train luong --model luong --embedding 2 --average 2 --valid-every 1 --label-smoothing 0.1 --valid-source source --valid-target target --updates 1
cp luong.state "$seeds/luong.state"
train transformer --model transformer --layers 1 --heads 1 --ffn 2 --ema 0.9 --accumulate 2 --schedule cosine --warmup 1
cp transformer.state.previous "$seeds/transformer.state" # after the first of its two updates

cat >"$seeds/train.config" <<'END'
train --updates 5 -o m --threads 2
# a comment
tsv = words.tsv   # and another
columns = 2,1
model=transformer
heads = 4
learning-rate = 1e-3
resume = true
END
printf 'attention --rows 1,2 --param=WO=b.npy\nquery = x.npy\nscore = additive:relu\nparam = W=a.npy\n' >"$seeds/attention.config"
printf 'score --metric bleu,chrf --reference r1 --reference r2\nreference = r3\nlowercase = true\n' >"$seeds/score.config"
printf 'translate -m m --beam 4\nlength-penalty = 0.6\nn-best = 2\n' >"$seeds/translate.config"
printf 'additive:relu\nentmax15\nsliding:2\nshaw:2:keys\n2\n1\nlearning-rate=1e-3\nheads=8\ncolumns=2,1\nseed=18446744073709551615\n' >"$seeds/one.settings"
printf 'general\nhard\nlocal-p:1\nt5:4\n4\n2\nsource-vocab=spm:8000:bpe\nresume=true\n' >"$seeds/two.settings"
printf '\x05\x00\x01\x02a b\tc\nb a\td d\n' >"$seeds/pairs.columns"
printf '\x04\x2a\x12\x00\xc3\x84 b\tc\td\n\xff\t\te\n' >"$seeds/three.columns"
printf '{"kind":"word","units":["a","b\xc3\xa4"],"counts":[2,1],"normalise":"nfkc","lowercase":true}\na b\xc3\xa4 c' >"$seeds/word.vocabulary"
printf '{"kind":"char","units":[" ","\\u0301"],"counts":[0,7]}\n\xff a' >"$seeds/char.vocabulary"
cp "$top"/tests/models/onmt/luong.pt "$seeds/luong.torch"
cp "$top"/tests/models/onmt/transformer.pt "$seeds/transformer.torch"
cp "$top"/tests/models/marian/model.npz "$seeds/transformer.npz"
cp "$top"/tests/models/s2s/model.npz "$seeds/s2s.npz"
cp "$top"/tests/models/g2p/checkpoint.npz "$seeds/g2p.npz"
{ printf y; cat "$top"/tests/models/marian/vocab.yml; } >"$seeds/words.npz"
cp "$top"/tests/models/hf/pytorch_model.bin "$seeds/weights.hf"
tr -d '\n' <"$top"/tests/models/hf/config.json >"$seeds/config.hf"
printf '{"kind":"spm","hash":"00000000000000ff"}' >"$seeds/spm.vocabulary"
printf '# terms\n\nNew York\tNeu York\nYork\t!Jork\r\n\t!verboten\n\xe5\x8c\x97\xe4\xba\xac\tPeking\n' >"$seeds/terms.glossary"
printf 'a\tb c\na\t!b\nc d\te\n \x00\n' >"$seeds/wrong.glossary"
printf '\t' >"$seeds/none.links"
printf '0-\xff\n\033\n' >"$seeds/bytes.links"
printf '0-0 1-1 2?1\n\n2-0\n0-0 1?0\n1-1\n0-1 2-1\n' >"$seeds/links.links"
for metric in 0 1 2 3 4 5 6; do
    printf "\\x0$metric\\x00the cat sat, on 20 mats.\na b\nthe cat s\xc3\xa4t on 3.5 mats\na c b\n" >"$seeds/metric$metric.score"
done
printf '\x45\x31a b c\n\xe6\xbc\xa2\xe5\xad\x97\n A b\nd\nb c a\n\n' >"$seeds/references.score"
cp "$top"/examples/compare/luong.spec "$seeds/luong.spec"
printf 'tsv = a.tsv\ntest-source = s\ntest-target = t\nheads = 1 2\nhidden = 8\nrow = one : --model luong --resume\nseeds = 1 2\nmetrics = bleu wer\n--set updates=5\n--set heads=4\n' >"$seeds/files.spec"
# array NAME TYPE SHAPE BYTES: a form, a line and a .npy array.
array()
{
    { printf "$2x.npy[1]\n\x93NUMPY\x01\x00\x76\x00"; printf '%-117s\n' "{'descr': '$3', 'fortran_order': False, 'shape': ($4), }"; head -c "$5" /dev/zero | tr '\0' '\077'; } >"$seeds/$1.pictures"
}
array grey '\x00\x00' '|u1' '2, 3, 4' 24
array colours '\x45\x01' '|u1' '2, 3, 4, 3' 72
array features '\x00\x0a' '<f4' '2, 3, 2' 48
{ printf '\x32\x01data:image/png;base64,%s\n' "$(base64 -w0 "$seeds/rgb.png")"; cat "$seeds/rgb.png"; } >"$seeds/inline.pictures"
array halves '\x00\x02' '<f2' '2, 3, 2' 24

# Requests: the content type, the query and the body.
printf 'application/json\n\n{"q":["a\\nb","\\u00e4"],"source":"de","target":"en","format":"text","alternatives":2,"api_key":null}' >"$seeds/json.request"
printf 'application/json; charset=utf-8\n\n{"q":"a","source":"auto","target":"en","alternatives":"1"}' >"$seeds/auto.request"
printf 'application/json\n\n{"q":5,"source":"de","target":"en"}' >"$seeds/number.request"
printf 'application/x-www-form-urlencoded\nformat=text\nq=a+%%C3%%A4%%0D%%0Ab&source=de&target=en&api_key=x' >"$seeds/form.request"
printf '\nq=a%%00%%ff&source=en&target=en&alternatives=1\n' >"$seeds/query.request"
printf 'multipart/form-data; boundary="x y"\n\n--x y\r\nContent-Disposition: form-data; name="q"\r\n\r\na\r\nb\r\n--x y\r\nContent-Disposition: form-data; name=source\r\n\r\nde\r\n--x y\r\nContent-Disposition: form-data; name="target"\r\n\r\nen\r\n--x y--\r\n' >"$seeds/parts.request"
printf 'application/json\n\n{"q":"<p a=\x27>\x27>a &auml;&#xe4; <b>b</b><!-- c --><script>d</script></p>","source":"de","target":"en","format":"html"}' >"$seeds/html.request"
printf '3<p>one <b>two <i class="a b">three</i></b> four<br>five</p><ul><li>a<li><a href=\x27?x\x27>b c</a> d</ul>' >"$seeds/nested.html"
printf '1a <code>b c</code> d <span translate="no">e</span> f</i> g <b>h. <img src=x> i</b> j &lt;k&gt;<!-- l --><pre>m</pre>' >"$seeds/untouched.html"
printf '2<em>one</em> <em>two</em>, <strong>three <em>four</em></strong>&nbsp;five <div>six <u>seven</div> eight</u>' >"$seeds/malformed.html"
