# What the tests of the demos share.

# narrow FILE: no line is wider than 80 columns, and no page longer than 40 lines, so that it is seen at once.
narrow() {
    local widest longest
    longest=$(awk '/^[0-9]+\. / { n = 0 } { n++; if (n > most) most = n } END { print most }' "$1")
    ((longest <= 40)) || fail "a page of $1 has $longest lines"
    widest=$(wc -L <"$1")
    ((widest <= 80)) || fail "a line of $1 has $widest columns: $(while IFS= read -r line; do
        (($(wc -L <<<"$line") <= 80)) || echo "$line"
    done <"$1")"
    checks=$((checks + 1))
}

# narrow_golden FILE NAME [INPUT...]: the demo says what FILE holds, in lines of at most 80 columns.
narrow_golden() {
    local file=$1
    shift
    golden "$file" demo "$@"
    narrow "$here/$file"
}

# learnt FILE LINE...: says, if models are trained until they have learnt this.
learnt() {
    ! learns || says "$@"
}

# says FILE LINE...: the lines stand in the file, indented, each by itself.
says() {
    local file=$1 line
    shift
    for line; do
        grep -qxF -- "    $line" "$file" || fail "the demo does not say '$line' but $(cat "$file")"
        checks=$((checks + 1))
    done
}

# What a demo says but for the seconds it took.
timeless() {
    sed -E 's/[0-9]+\.[0-9]+ seconds/N seconds/; s/ +[0-9]+\.[0-9] s$//' "$1"
}
