# The drawing in the README is what doc/pictures.sh makes.
. "$(dirname "$0")/support.bash"

learns || {
    skipped "the tour's model is trained on optimised builds only"
    exit 77
}
[ "$(uname -m)" = x86_64 ] || {
    skipped "the plain kernels of another processor round otherwise"
    exit 77
}
bash "$here/../../doc/pictures.sh" "$attend" . >said 2>&1 || fail "doc/pictures.sh says $(cat said)"
same_file "$here/../../doc/weights.svg" weights.svg
grep -q '](doc/weights.svg)' "$here/../../README.md" || fail "the README does not show the drawing"
finish
