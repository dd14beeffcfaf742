# What is printed fits the terminal: the bar of training, lists, tables and descriptions; and colours are those it promises.
. "$(dirname "$0")/support.bash"

awk 'BEGIN { srand(7); for (i = 0; i < 300; i++) { n = 2 + int(rand() * 4); l = ""; for (w = 0; w < n; w++) l = l (w ? " " : "") sprintf("%c", 97 + int(rand() * 8)); print l } }' >lines
small="--source lines --target lines --embedding 16 --hidden 24 --attention 16 --maxout 16 --batch-size 10 --report-every 1000000"
run train $small --updates 3 --quiet --output m --valid-source lines --valid-target lines --valid-every 1

# fits WIDTH FILE: no line is wider. A bar begins a line of its own; a signature is one word, which is not broken. The
# characters of these files are one column wide, or none (combining marks, \xcc..).
fits() {
    LC_ALL=C sed 's/\r\x1b\[K/\n/g; s/\r//g; s/\xcc[\x80-\xbf]//g' "$2" | LC_ALL=C grep -v '^[A-Za-z0-9]*|[^ ]*$' |
        LC_ALL=C awk -v w="$1" '{ n = gsub(/[^\200-\277]/, "&") } n > w { print n ": " $0; bad = 1 } END { exit bad }' ||
        fail "$2 is wider than $1 columns"
    checks=$((checks + 1))
}
for width in 80 60; do
    export COLUMNS=$width
    "$attend" list >list.$width
    fits $width list.$width
    "$attend" info m >info.$width
    fits $width info.$width
    "$attend" score bleu chrf ter wer accuracy --reference lines --compare lines --by-length 2 <lines >score.$width
    fits $width score.$width
done
unset COLUMNS
# A pipe has no width: a program that reads it finds each table and each score in one piece.
equal "$(wc -l <"$here/list_scores.txt")" "$("$attend" list scores | wc -l)" "lines in a pipe"
equal 2 "$("$attend" score bleu chrf --reference lines <lines | wc -l)" "scores in a pipe"
# The words are the same ones, whatever the width.
equal "$("$attend" list windows | tr -s ' \n' '\n' | sort)" "$(COLUMNS=50 "$attend" list windows | tr -s ' \n' '\n' | sort)" "words in 50 columns"

if ! has_terminal; then
    skipped "there is no terminal, or no script(1) to use it, so the bar of training was not checked"
    finish
    exit
fi
# in_terminal WIDTH ARGUMENTS...: what a training shows in a terminal, until it has drawn bars of two updates and is ended.
in_terminal() {
    local width=$1
    shift
    rm -f raw pid b b.*
    script -qefc "stty cols $width; '$attend' train $small --output b $* & echo \$! >pid; wait \$!" raw </dev/null >/dev/null 2>&1 &
    for _ in {1..400}; do
        ! grep -qsE 'Up\. ([2-9]|[1-9][0-9])' raw || break
        sleep 0.05
    done
    kill -TERM "$(cat pid)" 2>/dev/null || true
    wait $! || true
    sed 's/\r\x1b\[K/\n&/g' raw | grep -v -e '^Script ' -e 'Sen\. ' # the line of a report is not broken
}
for width in 80 60 40 20; do
    TERM=xterm in_terminal $width --updates 1000000000 >bar.$width
    grep -q $'\r\x1b\\[K' bar.$width || fail "no bar in $width columns: $(cat bar.$width)"
    fits $width bar.$width
done
grep -qE 'Up\. [0-9]+ : Cost [0-9.]+ : [0-9]+ words/s : [0-9]+:[0-9]{2}:[0-9]{2} left' bar.80 || fail "no hours in $(cat bar.80)"
grep -qE '\[[#.]{6,24}\] Ep\. [0-9]+ : Up\. [0-9]+ : Cost' bar.80 || fail "no bar in $(cat bar.80)"

# Colours: 24-bit where COLORTERM promises them, else those of the palette of 256, and none with NO_COLOR.
shows() { env "$@" TERM=xterm script -qec "'$attend' show -m m 'a b'" /dev/null </dev/null | grep -oE '\[[34]8;[25]' | sort -u | tr -d '\n'; }
equal '[38;5[48;5' "$(shows -u NO_COLOR -u COLORTERM)" "colours without a promise"
equal '[38;2[48;2' "$(shows -u NO_COLOR COLORTERM=truecolor)" "colours with truecolor"
equal '' "$(shows NO_COLOR=1 COLORTERM=truecolor)" "colours with NO_COLOR"
finish
