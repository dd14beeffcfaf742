# The files that commands write: never through a link at a name that can be guessed, never over a file that the user did
# not name, and nothing is left by a writer that was killed. A run that loses its terminal saves.
. "$(dirname "$0")/support.bash"
npy x.npy '2, 2' 1 2 3 4

# A link, and a file of the user's, beside the output under the names that programs like to use for temporary files.
echo precious >precious
ln -s precious z.npy.part
echo mine >w.npy.part
ln -s precious s.json.tmp
run attention --query x.npy --out z.npy --weights w.npy --summary s.json --quiet
equal precious "$(cat precious)" "a file that a link beside the output points to"
equal mine "$(cat w.npy.part)" "a file of the user's beside the output"
[ -L z.npy.part ] || fail "a link beside the output is gone"
# A link at the output itself stays, and the file that it points to is replaced.
ln -s deep.npy link.npy
cp x.npy deep.npy
run attention --query x.npy --out link.npy --quiet
[ -L link.npy ] || fail "a link at the output is gone"
cmp deep.npy z.npy || fail "the output went elsewhere than where the link points"
equal "" "$(find . -name '.attend-*')" "temporary files"

printf 'a b\nb c\nc d\nd e\n' >text
small="--source text --target text --embedding 4 --hidden 4 --attention 4 --maxout 4 --batch-size 2"
cat >spec <<'END'
title = two scores
source = text
target = text
test-source = text
test-target = text
embedding = 4
hidden = 4
updates = 2
batch-size = 2
score = additive general
metrics = accuracy
END
ln -s precious t.json.part
echo mine >t.html.part
"$attend" compare spec --json t.json --html t.html --quiet >table 2>said || fail "compare: $(cat said)"
equal precious "$(cat precious)" "a file that a link beside compare's output points to"
equal mine "$(cat t.html.part)" "a file of the user's beside compare's output"
[ -s t.json ] && [ -s t.html ] || fail "compare wrote nothing"
equal "" "$(find . -name '.attend-*')" "temporary files of compare"

# The log of a training is not written through a link, nor into something that is not a file.
ln -s precious m.log.jsonl
refuse 1 "cannot write 'm.log.jsonl': it is a symbolic link; remove it" train $small --updates 2 --output m --quiet
rm m.log.jsonl
mkfifo m.log.jsonl
refuse 1 "cannot write 'm.log.jsonl': it is not a regular file; remove it" train $small --updates 2 --output m --quiet
rm m.log.jsonl

# Closed streams: the messages must not go into the files that are opened next.
"$attend" train $small --updates 4 --report-every 1 --output m 2>&- || fail "a training without stderr exits with $?"
if grep -qv '^{' m.log.jsonl; then fail "progress in the log: $(head -3 m.log.jsonl)"; fi
"$attend" train $small --updates 4 --report-every 1 --output n <&- >&- 2>&- || fail "a training without streams exits with $?"
cmp m n || fail "the model differs where the streams are closed"
code=0
"$attend" list >&- 2>said || code=$?
equal "1 attend: cannot write to the standard output" "$code $(cat said)" "a listing without stdout"
code=0
"$attend" translate -m m <&- >out 2>said || code=$?
equal 1 "$code" "a translation without stdin"
[ ! -s out ] || fail "a translation without stdin prints $(cat out)"

# A training that gets a signal saves and ends.
long="train $small --updates 100000000 --report-every 10 --save-every 100000000"
until_started() {
    for ((i = 0; i < 200; i++)); do
        [ ! -s "$1.log.jsonl" ] || return 0
        sleep 0.05
    done
    fail "$1 does not start"
}
for signal in HUP TERM; do
    "$attend" $long --output s$signal >said.$signal 2>&1 &
    pid=$!
    until_started s$signal
    kill -$signal $pid
    code=0
    wait $pid || code=$?
    equal 130 "$code" "exit code after SIG$signal"
    [ -s s$signal.state ] || fail "SIG$signal does not save"
done
# Under nohup a hangup is ignored.
nohup "$attend" $long --output sn >said.n 2>&1 &
pid=$!
until_started sn
kill -HUP $pid
sleep 0.3
kill -0 $pid || fail "SIGHUP under nohup ends the training"
kill -TERM $pid
wait $pid || true
# Whoever reads the progress goes away, after the report of an update.
code=0
{ "$attend" $long --output sp 2>&1 >/dev/null || echo $? >code; } | sed '/ Up\. /q' >/dev/null
equal 130 "$(cat code)" "exit code after a broken pipe"
[ -s sp.state ] || fail "a broken pipe does not save"
equal "" "$(find . -name '.attend-*')" "temporary files of the trainings"

finish
