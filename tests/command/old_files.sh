# Models and states of before (tests/ref/old, by fuzz/make_seeds.sh) load and resume, whatever settings came since. Do not
# write them again: add those of a newer version beside them.
. "$(dirname "$0")/support.bash"
old=$here/../ref/old
printf 'a b\nb\n' >source
printf 'b\na\n' >target

for model in "$old"/*.model; do
    "$attend" info "$model" >info || fail "$model cannot be loaded"
    run translate -m "$model" --max-length 4 --quiet -i source -o out
    equal 2 "$(wc -l <out)" "lines of $(basename "$model")"
done

# resumes NAME OPTION...: the state continues with the options that it was written with.
resumes()
{
    local name=$1
    shift
    rm -f m m.*
    cp "$old/$name.state" m.state
    run train --source source --target target --hidden 2 --batch-size 1 --max-length 4 --model $name --quiet --output m --resume "$@"
    "$attend" info m --verify >info || fail "the model of $name after it was resumed"
    "$attend" info m.state --verify >info || fail "the state of $name after it was resumed"
}
resumes luong --embedding 2 --average 2 --valid-every 1 --label-smoothing 0.1 --valid-source source --valid-target target --updates 3
resumes transformer --layers 1 --heads 1 --ffn 2 --ema 0.9 --accumulate 2 --schedule cosine --warmup 1 --updates 2
finish
