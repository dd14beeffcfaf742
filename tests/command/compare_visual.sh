# attend compare visual: scenes as data, where a model looks as a column, and lines that name pictures from any folder. With
# ATTEND_LONG=1 (make check-long) the figures of a row are those of attend demo scenes.
. "$(dirname "$0")/support.bash"

small="--set train-lines=40 --set test-lines=6 --set updates=2 --set warmup=0 --set hidden=4"
"$attend" compare visual $small --json t.json --html t.html >table 2>said || fail "compare says $(cat said)"
equal 'setting accuracy beyond accuracy pointing parameters ms/update peak MB words/s' "$(sed -n 3p table | tr -s ' ')" "the head of the table"
equal 5 "$(grep -cE '^(soft|hard).* [0-9.]+ +[0-9.]+ +- +[0-9]+ ' table)" "rows in which no caption is right"
grep -q '"name": "pointing"' t.json || fail "the JSON has no pointing: $(head -40 t.json)"
equal 10 "$(grep -o '<svg class="map"' t.html | wc -l)" "maps in the page"
rows() { grep -E '^(soft|hard)' "$1" | sed -E 's/ +[0-9.]+ +[0-9.]+ +[0-9]+$//'; } # without what depends on the clock
"$attend" compare visual $small --verbose >again 2>said
equal '' "$(grep '^attend t' said || true)" "what is done again"
equal "$(rows table)" "$(rows again)" "the table shown again"
mkdir elsewhere
(cd elsewhere && "$attend" compare visual $small --jobs 1 --directory runs --quiet >../other) || fail "another folder"
equal "$(rows table)" "$(rows other)" "the table made in another folder"
same_file visual.runs/data/train.npy elsewhere/runs/data/train.npy
"$attend" compare visual $small --seed 2 --directory seeded --set updates=1 --quiet >/dev/null
cmp -s visual.runs/data/train.npy seeded/data/train.npy && fail "another --seed draws the same scenes"
refuse 2 "visual: beyond counts words, and the lines of task 'scenes' have none" compare visual --set beyond=4-6

# The data: a picture, a caption, and the links of each noun with cells of the 10 x 10 grid.
data=visual.runs/data
equal "test.npy[5]" "$(tail -1 $data/test.source)" "the last line of the sources"
paste -d '|' $data/test.target $data/test.links | awk -F'|' '{
    n = split($1, word, " "); nouns = 0
    for (i in seen) delete seen[i]
    for (i = 1; i <= n; i++) noun[i - 1] = word[i] ~ /^(circle|square|triangle|cross|ring)$/
    for (i = 1; i <= n; i++) nouns += noun[i - 1]
    links = split($2, link, " ")
    for (i = 1; i <= links; i++) {
        split(link[i], p, "-")
        if (p[1] > 99 || !noun[p[2]]) exit 1
        if (!seen[p[2]]++) nouns--
    }
    if (nouns) exit 1
}' || fail "the links are $(paste $data/test.target $data/test.links)"

# Pointing, of outputs written by hand. The weight of each word is on the cells that `weigh` says.
run_folder=$(echo visual.runs/soft-seed-1-*)
cp "$run_folder/align.txt" kept
said_as() { # AWK-EXPRESSION: the weight of cell c for word w, which has `own` cells, of which `linked` says whether c is one
    paste -d '|' $data/test.target $data/test.links | awk -F'|' '{
        n = split($1, word, " "); m = split($2, link, " ")
        for (k in is) delete is[k]
        for (k in count) delete count[k]
        for (i = 1; i <= m; i++) { is[link[i]] = 1; split(link[i], p, "-"); count[p[2]]++ }
        printf "%s |||", $1
        for (w = 0; w < n; w++) for (c = 0; c < '"${2:-100}"'; c++) {
            linked = ((c "-" w) in is); own = count[w] + 0
            printf "%s%.9g", c ? "," : " ", '"$1"'
        }
        print ""
    }' >"$run_folder/align.txt"
    "$attend" compare visual $small --quiet >table
    awk '/^soft  / { print $4 }' table
}
equal 1.0 "$(said_as 0.01)" "pointing without aim"
equal 0.0 "$(said_as '(linked ? 0 : 1 / (100 - own))')" "pointing at all but the object"
share=$(tr ' ' '\n' <$data/test.links | wc -l) nouns=$(tr ' ' '\n' <$data/test.target | grep -cE '^(circle|square|triangle|cross|ring)$')
equal "$(awk -v s="$share" -v n="$nouns" 'BEGIN { printf "%.1f", 100 * n / s }')" "$(said_as '(linked ? 1 / own : 0)')" "pointing at the object"
equal "$(awk -v s="$share" -v n="$nouns" 'BEGIN { printf "%.1f", 50 * n / s }')" "$(said_as '(linked ? 0.5 / own : 0.5 / (100 - own))')" "half of it"
equal - "$(said_as 0.02 50)" "pointing of a grid of 50 cells"
sed 's/^a /the /' kept >"$run_folder/align.txt"
"$attend" compare visual $small --quiet >table
equal - "$(awk '/^soft  / { print $4 }' table)" "pointing of captions that are wrong"

# A SPEC that names lists of pictures: they are found from the folder of the list, whatever the current one is.
mkdir -p own/pictures
cp $data/train.npy $data/train.source $data/train.target $data/test.npy $data/test.source $data/test.target own/pictures
cat >own/own.spec <<'S'
source = pictures/train.source
target = pictures/train.target
test-source = pictures/test.source
test-target = pictures/test.target
model = show-attend-tell
gate = true false
conv = 8x5s4
hidden = 4
embedding = 4
attention = 4
updates = 1
seeds = 1
S
"$attend" compare own/own.spec --html own.html >table 2>said || fail "pictures of one's own: $(cat said table)"
equal 2 "$(grep -cE '^(true|false) +[0-9.]+ ' table)" "rows with and without a gate"
equal 5 "$(awk '/^true/ { more = $4 } /^false/ { less = $4 } END { print more - less }' table)" "parameters of the gate"

if [ -n "${ATTEND_LONG:-}" ]; then
    "$attend" demo scenes 300 >demo
    "$attend" compare visual --set updates=300 --set warmup=15 --set train-lines=9600 --set seeds=1 --quiet >table
    equal "$(awk '/captions are right/ { for (i = 1; i <= NF; i++) if ($i ~ /%$/) print $i + 0 } /times its share/ { print $1 + 0 }' demo | sort | tr '\n' ' ')" \
        "$(awk '/^soft, no penalty/ { print $4 + 0; print $5 + 0; print $6 + 0 }' table | sort | tr '\n' ' ')" "the figures of the demo"
fi
finish
