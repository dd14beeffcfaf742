# Small runs of every command, and what must hold after one of them was disturbed. For allocation.sh, system_calls.sh and
# power.sh, which source it after support.bash.

small="--embedding 4 --hidden 4 --attention 4 --maxout 4 --batch-size 8 --save-every 2 --threads 1 --quiet"
narrow="--model transformer --hidden 4 --heads 2 --ffn 4 --layers 1 --batch-size 8 --updates 2 --quiet"
pairs="--source lines --target lines"
picture="--model show-attend-tell --image-size 6x6 --conv 2x3s2 --embedding 4 --hidden 4 --attention 4 --batch-size 2 --augment 0.5 --threads 1 --quiet"
valid="--valid-source few --valid-target few --valid-every 2"

# NAME: ARGUMENTS, for the folder that make_start makes. Each reads the lines of `few`; score-links reads `links`.
commands()
{
    cat <<END
list: list
help: help train
attention: attention --query q.npy --key k.npy --value k.npy --out o.npy --weights w.npy --summary s.json --grad-out q.npy --grads grads --threads 1
attention-grads: attention --query q.npy --grad-out q.npy --grads grads --threads 1
attention-plain: attention --query q.npy --score general --position alibi --param W=W.npy --plain --out o.npy --threads 1
train: train $pairs $valid $small --updates 4 --output new
train-overwrite: train $pairs $valid $small --updates 4 --seed 3 --overwrite --output old
train-keep: train $pairs $valid $small --updates 4 --keep-previous --output new
train-twice: train $pairs $small --updates 3 --ema 0.9 --output twice --threads 2
train-average: train --tsv pairs --valid-tsv pairs --valid-every 1 $small --updates 3 --average 2 --valid-metric bleu --output mean.of
train-transformer: train $pairs $narrow --config config --threads 1 --output other
train-spm: train $pairs $small --updates 1 --source-vocab spm:16 --target-vocab char --output new
train-pictures: train --source pictures --target few $picture --updates 2 --output new
resume: train $pairs $valid $small --updates 4 --output old --resume
translate: translate -m m --beam 3 --n-best 2 --alignment soft --scores --coverage --threads 1
sample: translate -m t --sample 0.8 --replace-unknown --batch-size 2 --threads 1
translate-ensemble: translate -m m -m n --alignment hard --threads 2
translate-spm: translate -m s --beam 2 --threads 1
translate-terms: translate -m m --beam 2 --glossary terms --no-repeat-ngram 2 --coverage-penalty 0.2 --confidence --threads 1
translate-parts: translate -m s --split --placeholders --threads 1
translate-lm: translate -m lm --max-length 8 --threads 1
translate-pictures: translate -m p -i pictures --beam 2 --alignment soft --threads 1
align: align -m t --source lines.gz --target lines --head best --scores --threads 1 --quiet
align-subword: align -m s $pairs --level subword --threads 1
align-shift: align -m t $pairs --head best --align-shift --threads 1 --quiet
encode: encode -m m -o features.safetensors --threads 1
encode-mean: encode -m t --mean -o features.npy --threads 1
info: info s
info-lm: info lm
show: show -m t a --threads 1
show-file: show -m t a -o maps.safetensors --threads 1
show-svg: show -m t a --target b --level word --sums --gold 0-0 -o map.svg --threads 1
show-page: show -m t a --target b --gold 0-0 -o map.html --threads 1
show-array: show --weights k.npy --head all -o array.svg --threads 1
heads: heads -m t --source lines --target lines --prune 50% --tsv heads.tsv -o pruned --threads 1
calibrate: calibrate -m m --source lines --target lines -o calibrated --threads 1
score: score bleu chrf++ ter wer cer accuracy --reference few --confidence 20 --compare other.few --threads 1
score-lengths: score bleu chrf --reference few --by-length 2 --lowercase --threads 1
score-sentences: score bleu ter --reference few --sentence --json --threads 1
score-links: score aer --reference links --threads 1
perplexity: score perplexity -m m --source lines --reference lines --threads 1
average: average m n -o mean --threads 1
convert: convert m -o converted --weights int8 --threads 1
convert-folder: convert t -o exported --to ctranslate2 --weights bf16 --threads 1
convert-marian: convert hf -o exported --to hf-marian --threads 1
compare: compare spec --directory runs --json table.json --html table.html --latex table.tex --csv table.csv --jobs 1 --quiet
compare-print: compare --print luong
curve: curve old.log.jsonl
curve-svg: curve old old -o curves.svg
vocabulary: vocabulary make lines -o words.txt --threads 1
vocabulary-segment: vocabulary segment m --side target --threads 1
serve: serve -m a-b=m -m b-a=t --pivot b --watch m.log.jsonl --check --no-isolation --port 0 --threads 1
demo: demo self-attention --threads 1
demo-scores: demo scores --threads 1
END
}

arguments_of() { commands | sed -n "s/^$1: //p"; }

# make_start: the folder start/ with what the commands read, and older versions of what some of them write.
make_start()
{
    local command
    for command in $("$attend" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
        [ "$command" = bench ] || grep -q ": $command\b" <(commands) || found "no run of attend $command here"
    done
    mkdir start done
    cd start || exit 1
    awk 'BEGIN { srand(7); for (i = 0; i < 20; i++) { n = 2 + int(rand() * 4); l = "";
        for (w = 0; w < n; w++) l = l (w ? " " : "") sprintf("%c", 97 + int(rand() * 8)); print l } }' >lines
    gzip -nk lines
    paste lines lines >pairs
    head -4 lines >few
    tail -4 lines >other.few
    printf '0-0 1-1\n0-0\n0-1\n0-0 1-1\n' >links
    printf 'a\tb c\nb\t!a\n' >terms
    printf 'dropout = 0.1\nschedule = noam\nwarmup = 10\n' >config
    cat >spec <<'END'
title = two scores
source = lines
target = lines
test-source = few
test-target = few
embedding = 4
hidden = 4
updates = 2
batch-size = 10
score = additive general
seeds = 1
metrics = accuracy
END
    cp "$top"/fuzz/seeds/{rgb.png,palette.png,grey.jpeg} .
    bytes dots.npy '2, 5, 5' 50
    printf '%s\n' rgb.png palette.png grey.jpeg 'dots.npy[1]' >pictures
    make_arrays
    mv w.npy W.npy
    train_all || exit 1
    cp n mean
    cp q.npy o.npy
    cp q.npy features.npy
    cd ..
}

train_all()
{
    "$attend" train $pairs $small --updates 2 --output m &&
        "$attend" train $pairs $small --updates 2 --seed 2 --output n &&
        "$attend" train $pairs $small --updates 2 --source-vocab spm:16 --target-vocab spm:16 --output s &&
        "$attend" train $pairs $narrow --output t &&
        "$attend" train $pairs $narrow --norm post --source-end --output hf &&
        "$attend" train --target lines ${narrow/transformer/transformer-lm} --output lm &&
        "$attend" train --source pictures --target few $picture --updates 1 --output p &&
        "$attend" train $pairs $valid $small --updates 2 --output old && rm {m,n,s,t,hf,lm,p}.{state,log.jsonl}
}

# ---- Running them ---------------------------------------------------------------------------------------------------

clean= # not empty: run/ is the same as start/

# disturb NAME COMMAND...: COMMAND attend ARGUMENTS in run/, a copy of start/; sets $code, and writes ./printed and ./said.
disturb()
{
    local name=$1
    shift
    fresh
    code=0
    (cd run && exec "$@" "$attend" ${arguments[$name]} <"$(input_of "$name")" >../printed 2>../said) 2>/dev/null || code=$?
}

# fresh: makes run/ a copy of start/, which a command may change then.
fresh()
{
    if [ -z "$clean" ]; then
        rm -rf run
        cp -r start run
    fi
    clean=
}

input_of() { if [ "$1" = score-links ]; then echo links; else echo few; fi; }

# undisturbed NAME COMMAND...: the same, and keeps the results in done/ and the names of the files written in $written.
declare -A arguments written
undisturbed()
{
    arguments[$1]=$(arguments_of "$1")
    disturb "$@"
    [ $code = 0 ] || { echo "$1 fails: $(cat said)"; exit 1; }
    rm -rf done/"$1"
    cp -r run done/"$1"
    cp printed done/"$1".printed
    compared run >done/"$1".compared
    written[$1]=$(diff -rq start done/"$1" | changed done/"$1")
}

# changed FOLDER: the files of the folder that start/ does not have or has with other contents, out of the lines of
# diff -rq start FOLDER.
changed()
{
    local line file
    while read -r line; do
        case $line in
        "Files start/"*) echo "./${line##* and "$1"/}" ;;
        "Only in $1"*)
            line=${line#"Only in $1"} file=.${line/: //}
            if [ -d "$1/$file" ]; then (cd "$1" && find "$file" -type f); else echo "$file"; fi
            ;;
        esac
    done | sed 's/ differ$//'
}

# restore: makes run/ the same as start/ again, out of the lines of diff -rq start run; fails if files are lost.
restore()
{
    local line new=() old=()
    while read -r line; do
        case $line in
        "Files start/"*) line=${line#Files start/} old+=("${line%% and run/*}") ;;
        "Only in run"*) line=${line#Only in run} new+=("run${line/: //}") ;;
        *) return 1 ;;
        esac
    done
    [ ${#new[@]} = 0 ] || rm -rf "${new[@]}"
    for line in "${old[@]}"; do cp --remove-destination start/"$line" run/"$line" || return 1; done
}

# compared FOLDER: what a comparison wrote, as far as it does not depend on times.
compared()
{
    (cd "$1" && find . -type f | sort)
    (cd "$1" && find . -path './runs/*' \( -name model -o -name '*.txt' \) -exec cksum {} + | sort)
    [ ! -e "$1"/table.json ] || grep -vE '"(seconds|ms_per_update|words_per_second|peak_mb)"|"(mean|value)": [0-9]' "$1"/table.json
    local table
    for table in html tex csv; do
        [ ! -e "$1"/table.$table ] || sed 's/[0-9][0-9.]*/N/g' "$1"/table.$table
    done
}

# ---- Judging them ---------------------------------------------------------------------------------------------------

# judge NAME FAULT REASON: $code, printed, said and run/ are what they may be after the fault; REASON is a pattern for
# the error message. If the command failed, the next one like it succeeds.
judge()
{
    local name=$1 fault="$1, $2" reason
    reason=$(reason_of "$1" "$3")
    case $fault in
    *', unlink '*) local -a without=(-x '*.previous' -x '*.previous.new' -x '.attend-*') ;; # they could not be removed
    esac
    case $code in
    0) same_end "$name" || found "$fault: exits with 0, but $difference" ;;
    1)
        one_message "$reason" || found "$fault: says $(cat said)"
        case $fault in
        compare,* | *', write '*) ;; # a table with the failed row; what follows the part that was not written
        translate-pictures,*) # a picture that cannot be read costs its own line
            cmp -s -n "$(stat -c %s printed)" printed done/"$name".printed ||
                awk -F ' [|][|][|] ?' 'NR == FNR { line[NR] = $0; next } $0 != line[FNR] && $1 != "" { exit 1 }' done/"$name".printed printed ||
                found "$fault: fails and prints something else" ;;
        *) [ ! -s printed ] || cmp -s -n "$(stat -c %s printed)" printed done/"$name".printed || found "$fault: fails and prints something else" ;;
        esac
        judge_files "$name" "$fault"
        ;;
    *) found "$fault: exits with $code: $(cat said)" ;;
    esac
}

# reason_of NAME REASON: of a comparison, the run itself has said why.
reason_of() { if [ "$1" = compare ]; then echo "$2|runs failed"; else echo "$2"; fi; }

# one_message REASON: the last line of ./said is the only message of an error, and matches the pattern.
one_message()
{
    local said last
    said=$(<said)
    last=${said##*$'\n'}
    [[ $last =~ ^attend:\ .*($1) && $'\n'${said%"$last"} != *$'\nattend: '* ]]
}

# judge_files NAME FAULT: run/ is what a fault may leave. Most faults leave start/ as it was, and many the same files: these
# are judged once.
declare -A judged
judge_files()
{
    local left key
    left=$(diff -rq start run)
    [ -n "$left" ] || { clean=yes; return; }
    key=$1:$left$(key_of "$1" <<<"$left")
    if [ -n "${judged[$key]:-}" ]; then
        ! restore <<<"$left" || clean=yes # no need to copy everything again
        return
    fi
    judged[$key]=$finds
    old_or_new "$1" "$2"
    case $1 in train* | resume | compare) go_on "$1" "$2" ;; esac
    [ "${judged[$key]}" = $finds ] || judged[$key]= # a find is reported each time
}

# key_of NAME: the same for the same files in run/, apart from times, out of the lines of diff -rq start run.
key_of()
{
    local file files=()
    [ "$1" != compare ] || { compared run; return; }
    for file in $(changed run); do
        case $file in
        *.log.jsonl) sed "$times" run/"$file" ;;
        *) files+=(run/"$file") ;;
        esac
    done
    [ ${#files[@]} = 0 ] || cksum "${files[@]}"
}

# same_end NAME: the same output and the same files as without a fault, but for those named by $without; else sets $difference.
without=()
same_end()
{
    local log
    if [ "$1" = compare ]; then
        difference=$(compared run | diff - done/compare.compared | grep '^[<>]')
        # Of a run that is done; they could not be removed.
        [ ${#without[@]} = 0 ] || difference=$(grep -v '^< \./runs/[^/]*/model\.' <<<"$difference")
        [ -z "$difference" ]
        return
    fi
    difference=$(diff printed done/"$1".printed && diff -r -x '*.log.jsonl' "${without[@]}" run done/"$1") || return 1
    for log in run/*.log.jsonl; do
        same_log "$log" done/"$1"/"${log#run/}" || { difference="the log differs"; return 1; }
    done
}

# old_or_new NAME FAULT: each file is the one of before or the one that the command writes, and there is no other.
old_or_new()
{
    local file
    while read -r file; do
        if [ ! -e start/"$file" ] && [ ! -e done/"$1"/"$file" ]; then
            case $2:$file in
            train*.previous | resume*.previous) ;; # kept until the end of a training
            compare*:./runs/*/model.state) ;; # of a run that failed: the comparison goes on from it
            *', unlink '*:./.attend-* | *', '[ru]*.previous.new) ;; # it could not be removed, or renamed
            *) found "$2: leaves $file" ;;
            esac
        elif ! cmp -s run/"$file" done/"$1"/"$file"; then
            case $1:$file in
            compare:./runs/* | *.log.jsonl | *.state | *.state.previous) ;; # shown to be good by what goes on from them
            train*:* | resume:*) "$attend" info run/"$file" >/dev/null 2>&1 || found "$2: $file is broken" ;;
            compare:./table.*) compared run | grep -c . >/dev/null ;;
            *) found "$2: $file is neither the old nor the new one" ;;
            esac
        fi
    done < <(diff -rq start run | changed run)
    for file in start/*; do
        [ -e run/"${file#start/}" ] || case $2:$file in
            train-overwrite*.log.jsonl) ;; # its first save has begun, and it has reported nothing yet
            *) found "$2: ${file#start/} is lost" ;;
            esac
    done
}

# go_on NAME FAULT: the command is run again, a training resumed, and ends as if nothing had happened. $through is a command
# that runs it.
through=()
go_on()
{
    local file left again=${arguments[$1]}
    case $1 in
    train-overwrite) cmp -s run/old.state start/old.state || again=${again/--overwrite/--resume} ;;
    train*) again="$again --resume" ;;
    esac
    (cd run && "${through[@]}" "$attend" $again <few >../printed 2>../said) || found "$2: cannot go on: $(cat said)"
    left=$(find run -name '.attend-*' -o -name '*.previous.new')
    [ -z "$left" ] || found "$2: leaves $left for ever"
    if [ "$1" = compare ]; then
        same_end compare || found "$2: goes on to something else: $difference"
        return
    fi
    for file in ${written[$1]}; do
        case $file in
        *.previous) ;;
        *.log.jsonl) same_log done/"$1"/"$file" run/"$file" || found "$2: goes on to another $file" ;;
        *) cmp -s done/"$1"/"$file" run/"$file" || found "$2: goes on to another $file" ;;
        esac
    done
}
