# Compressed input: the same model, scores and translations from .gz and .zst as from the plain files, whatever their names,
# and one message for each kind of damage.
. "$(dirname "$0")/support.bash"

awk 'BEGIN { srand(4); for (i = 0; i < 200; i++) { n = 2 + int(rand() * 3); s = t = ""
    for (w = 0; w < n; w++) { c = sprintf("%c", 97 + int(rand() * 6)); s = s (w ? " " : "") c; t = c (w ? " " : "") t }
    print s >"source"; print t >"target" } }'
train() {
    "$attend" train --source "$1" --target "$2" --valid-source "$1" --valid-target "$2" --output "$3" --embedding 8 --hidden 8 \
        --attention 8 --maxout 8 --updates 20 --seed 3 --overwrite --quiet 2>said || fail "training from $1 and $2: $(cat said)"
}
train source target plain
"$attend" translate -m plain <source >judge

packers="gzip:gz"
command -v zstd >/dev/null && packers="$packers zstd:zst" || echo "SKIPPED: zstd is not installed"
for packer in $packers; do
    program=${packer%:*} ending=${packer#*:}
    for side in source target; do
        { head -70 $side | $program -c; tail -n +71 $side | $program -c; } >$side.$ending # two members or frames
        cp $side.$ending $side.unnamed
    done
    train source.$ending target.$ending $ending
    same_file plain.state $ending.state
    train source.unnamed target.unnamed unnamed
    same_file plain.state unnamed.state
    "$attend" translate -m plain <source.$ending >out
    same_file judge out
    equal "$("$attend" score bleu --reference target <judge)" "$("$attend" score bleu --reference target.$ending <judge)" "BLEU by $ending"
    equal "$("$attend" align -m plain --source source --target target | cksum)" \
        "$("$attend" align -m plain --source source.$ending --target target.$ending | cksum)" "links from $ending"

    head -c 100 source.$ending >cut
    refuse 1 "'cut' is truncated: its $program data has no end" align -m plain --source cut --target target
    { cat source.$ending; echo more; } >tail
    refuse 1 "'tail' is damaged: as $program data, there are other bytes after its end" align -m plain --source tail --target target
    cp source named.$ending
    refuse 1 "'named.$ending' is not $program data, although its name ends in .$ending" align -m plain --source named.$ending --target target
    head -c 200000000 /dev/zero | $program -c >bomb
    refuse 1 "'bomb' decompresses to more than 1000 times its size, like a decompression bomb" align -m plain --source bomb --target target
    said=$("$attend" translate -m plain <cut 2>&1 >/dev/null) && fail "translating a truncated input succeeds"
    equal "attend: 'standard input' is truncated: its $program data has no end" "$said" "a truncated standard input"
    ATTEND_MAX_DECOMPRESSED=100 refuse 1 "'source.$ending' decompresses to more than 100 bytes, which is the limit" \
        align -m plain --source source.$ending --target target
done
ATTEND_MAX_DECOMPRESSED=many refuse 2 "ATTEND_MAX_DECOMPRESSED is a number of bytes, 1 or more, not 'many'" info plain
finish
