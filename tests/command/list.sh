# attend list, attend help, --version, and names that do not exist.
. "$(dirname "$0")/support.bash"

golden list.txt list
golden list_scores.txt list scores
golden list_demos.txt list demos
golden list_demos.txt demo
golden help.txt help
golden help.txt --help
golden help_list.txt help list
golden help_list.txt list --help
golden help_attention.txt help attention
golden help_attention.txt attention --help --query nonsense

# What training takes by name is listed.
for topic in optimiser schedule; do
    said=$("$attend" train --$topic nothing 2>&1) || true
    names=$("$attend" list ${topic}s | awk '{ printf "%s%s", (NR > 1 ? " " : ""), $1 }')
    equal "attend: --$topic takes $names, not 'nothing'" "$(sed 's/, not /; not /; s/,//g; s/ or / /; s/; not /, not /' <<<"$said")" "the list of ${topic}s"
done
for position in sinusoidal learned; do
    "$attend" list positions | grep -q "^  $position " || fail "$position is not listed"
done
equal "$("$attend" score --help | sed -n 's/^  \([a-z+]*\)  .* [↑↓]$/\1/p' | tr '\n' ' ')" \
    "$("$attend" list metrics | awk '{ printf "%s ", $1 }')" "the list of metrics"

version=$("$attend" --version)
[[ $version =~ ^attend\ [0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "--version says $version"
equal "$version" "$("$attend" list --version)" "list --version"

refuse 2 "no topic 'score'; did you mean 'scores'?" list score
refuse 2 "no topic 'layers'; there are 'scores', 'normalisers', 'windows', 'positions', 'models', 'optimisers', 'schedules', 'vocabularies', 'metrics', 'demos' and 'compares'" list layers
refuse 2 "attend list takes one name, so 'windows' is too much" list scores windows
refuse 2 "no command 'atention'; did you mean 'attention'?" atention
refuse 2 "no command 'fly'; there are 'list', 'attention', 'train', 'translate', 'align', 'show', 'heads', 'calibrate', 'encode', 'info', 'score', 'average', 'convert', 'compare', 'curve', 'demo', 'bench', 'vocabulary', 'serve' and 'help'" fly
refuse 2 "no command 'lits'; did you mean 'list'?" help lits
refuse 2 "the command comes first, as in attend list; '--threads' is not a command" --threads 2 list
refuse 2 "no option '--thread'; did you mean '--threads'?" list --thread 2
refuse 2 "--threads takes a whole number from 1 to 64, not '0'" list --threads 0
refuse 2 "--threads takes a whole number from 1 to 64, not 'two'" list --threads=two
refuse 2 "--threads needs a value: --threads N" list --threads
refuse 2 "--quiet takes no value" list --quiet=yes
refuse 2 "no option '-x'; attend list --help shows those there are" list -x

# Without a word the overview goes to stderr, and that is bad usage.
code=0
"$attend" >out.txt 2>err.txt || code=$?
equal 2 "$code" "attend alone"
[ ! -s out.txt ] || fail "attend alone prints to stdout"
same_file err.txt "$here/help.txt"

# Colour is for terminals, and there only as long as NO_COLOR is unset.
escape=$(printf '\033')
said=$(env -u NO_COLOR TERM=xterm "$attend" list)
[[ $said != *$escape* ]] || fail "colour in a pipe"
if has_terminal; then
    said=$(env -u NO_COLOR TERM=xterm script -qec "'$attend' list" /dev/null </dev/null)
    [[ $said == *$escape* ]] || fail "no colour in a terminal"
    said=$(TERM=xterm script -qec "'$attend' list" /dev/null </dev/null)
    [[ $said != *$escape* ]] || fail "colour despite NO_COLOR"
else
    skipped "there is no terminal, or no script(1) to use it, so colour in a terminal was not checked"
fi

# A stdout that takes nothing is a failure, not a success.
if [ -w /dev/full ]; then
    code=0
    "$attend" list >/dev/full 2>err.txt || code=$?
    equal 1 "$code" "list to a full disk"
    equal "attend: cannot write to the standard output" "$(cat err.txt)" "list to a full disk"
else
    skipped "there is no /dev/full, so list to a full disk was not checked"
fi
finish
