# Small trainings of every kind of model, and their data, for the scripts that compare bytes.

# Words of a small grammar, and the same reversed; the words' letters swapped on the target side.
make_corpus() {
    awk 'BEGIN { srand(7); for (i = 0; i < 600; i++) { n = 2 + int(rand() * 8); s = t = "";
        for (j = 0; j < n; j++) { w = sprintf("%c%c%s", 97 + int(rand() * 6), 105 + int(rand() * 5), rand() < .3 ? "né" : "");
            s = s (j ? " " : "") w; t = w (j ? " " : "") t } print s "\t" t } }' >pairs.tsv
    head -500 pairs.tsv >train.tsv
    tail -n +501 pairs.tsv >valid.tsv
    cut -f1 valid.tsv >valid.source
    cut -f2 valid.tsv >valid.target
    awk -F'\t' '{ n = split($1, w, " "); for (i = 0; i < n; i++) printf "%d-%d%s", i, n - 1 - i, i < n - 1 ? " " : "\n" }' train.tsv >links
    make_pictures
}

# The same targets for pictures of two sizes: lines that name an item of an array.
make_pictures() {
    bytes square.npy '300, 8, 8' 19200
    bytes wide.npy '300, 8, 12' 28800
    awk -F'\t' '{ printf "%s.npy[%d]\t%s\n", NR % 2 ? "square" : "wide", int((NR - 1) / 2), $2 }' pairs.tsv >pictures.tsv
    head -500 pictures.tsv >train.pictures.tsv
    tail -n +501 pictures.tsv >valid.pictures.tsv
    cut -f1 valid.pictures.tsv >valid.pictures
}

small="--embedding 16 --hidden 24 --updates 14 --valid-every 7 --batch-size 16 --learning-rate 0.01 --quiet"
narrow="--hidden 16 --heads 2 --ffn 32 --layers 2 --updates 14 --valid-every 7 --batch-size 16 --quiet"
# NAME: OPTIONS
cases() {
    cat <<END
plain: --model rnn-plain ${small#--embedding 16 } --dropout 0.2
encdec: --model rnn-encdec $small --maxout 12
rnnatt: --model rnn-attention ${small#--embedding 16 } --optimiser sgd
bahdanau: --model bahdanau $small --attention 12 --maxout 12 --ema 0.9 --label-smoothing 0.1
bahdanau-sparse: --model bahdanau $small --normaliser sparsemax --average 2 --optimiser adadelta
bahdanau-corpora: --model bahdanau $small --corpus-weights 0.5,2.25 --freeze encoder,target.E --optimiser adamw
bahdanau-hard: --model bahdanau $small --normaliser hard --reinforce 0.5
bahdanau-exact: --model bahdanau $small --attention 12 --maxout 12 --normaliser hard --hard-training exact --coverage 3 --gate
luong: --model luong $small --cell lstm --layers 2 --window local-p:3 --input-feeding --dropout 0.1
luong-local-m: --model luong $small --cell gru --window local-m:2 --score additive --valid-metric bleu
luong-entmax: --model luong $small --normaliser entmax15 --score dot --source-vocab char --target-vocab char
transformer: --model transformer $narrow --schedule noam --warmup 10 --dropout 0.1 --attention-dropout 0.1
transformer-shaw: --model transformer $narrow --norm pre --position shaw:4 --kv-heads 1 --tie false --accumulate 2
transformer-rope: --model transformer $narrow --position rope --optimiser adamw --schedule inverse-sqrt
transformer-t5: --model transformer ${narrow/--batch-size 16/--batch-tokens 200} --position t5 --schedule cosine --clip-norm 0.5
transformer-guided: --model transformer $narrow --guided-alignment links --guided-head 2.1 --valid-metric chrf
transformer-spm: --model transformer $narrow --source-vocab spm:60 --target-vocab spm:60 --joint-vocab --subword-sampling 0.2
lm: --model transformer-lm $narrow
pictures: --model show-attend-tell $small --image-channels 1 --conv 4x3s2,6x3 --augment 0.5 --elastic 0.5 --dropout 0.1
END
}

# data_of NAME: the data of a case, as options of attend train.
data_of() {
    case $1 in
    *-corpora) echo "--tsv train.tsv,valid.tsv --valid-tsv valid.tsv" ;;
    pictures) echo "--tsv train.pictures.tsv --valid-tsv valid.pictures.tsv" ;;
    lm) echo "--tsv train.tsv --valid-tsv valid.tsv --columns 2" ;;
    *) echo "--tsv train.tsv --valid-tsv valid.tsv" ;;
    esac
}

# options_of NAME: the options of a case, with its data.
options_of() { echo "$(data_of "$1") $(cases | sed -n "s/^$1: //p")"; }

# attends NAME: whether the model of a case attends to a source.
attends() { case $1 in plain | encdec | lm) return 1 ;; esac; }

bytes() { # FILE SHAPE COUNT: an array of bytes
    printf '\x93NUMPY\x01\x00\x76\x00' >"$1"
    printf '%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': ($2), }" >>"$1"
    LC_ALL=C awk -v n="$3" 'BEGIN { srand(5); for (i = 0; i < n; i++) printf "\\x%02x%s", int(rand() * 256), i % 64 == 63 || i == n - 1 ? "\n" : "" }' |
        while read -r values; do printf '%b' "$values"; done >>"$1"
}
floats() { # FILE SHAPE COUNT: an array of small numbers
    printf '\x93NUMPY\x01\x00\x76\x00' >"$1"
    printf '%-117s\n' "{'descr': '<f8', 'fortran_order': False, 'shape': ($2), }" >>"$1"
    LC_ALL=C awk -v n="$3" 'BEGIN { for (i = 0; i < n; i++) printf "\\x00\\x00\\x00\\x00\\x00\\x00\\x%02x\\x%02x\n", (i * 37 % 16) * 16, i % 3 ? 63 : 191 }' |
        while read -r bytes; do printf "$bytes"; done >>"$1"
}
make_arrays() {
    floats q.npy '2, 9, 8' 144
    floats k.npy '2, 12, 8' 192
    floats w.npy '8, 8' 64
    floats v.npy '8,' 8
}
