# The completion scripts offer commands, options, the values of options with fixed choices, names of the catalogue, and files.
. "$(dirname "$0")/support.bash"

"$attend" help --completion bash >attend.bash
. ./attend.bash
# completes EXPECTED WORD...: what bash offers for the last word, sorted, on one line.
completes() {
    local expected=$1
    shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _attend || fail "the completion of '$*' fails"
    equal "$expected" "$(printf '%s\n' "${COMPREPLY[@]}" | LC_ALL=C sort | paste -sd ' ')" "completion of '$*'"
}
completes "train translate" attend tr
completes "--help" attend --h
completes "nematus normalisers" attend list n
completes "translate" attend help transl
completes "--valid-source" attend train --valid-so
completes "additive" attend attention --score a
completes "dot" attend attention --score = d
completes "local-m: local-p:" attend attention --window local
completes "learned" attend train --position l
completes "transformer transformer-lm" attend train --model trans
completes "adadelta adam adamw" attend train --optimiser ad
completes "cer chrf chrf++" attend train --valid-metric c
completes "none" attend score --tokenise n
completes "beer" attend demo b
completes "chrf chrf++" attend score ch
completes "gemm" attend bench g
completes "--no-rivals" attend bench gemm --no
mkdir folder
touch luong.spec fold.txt
completes "luong luong.spec" attend compare l
completes "fold.txt folder" attend train --source fo
completes "folder" attend attention --grads fo
completes "fold.txt folder" attend translate -m fo
completes "" attend translate --beam ''
# Every option of every command is offered.
for command in $("$attend" help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    completes "$("$attend" help "$command" all | sed -n 's/^  \(--[a-z-]*\).*/\1/p' | LC_ALL=C sort | paste -sd ' ')" attend "$command" --
done

"$attend" help --completion zsh >_attend
equal "#compdef attend" "$(head -n 1 _attend)" "first line of the script for zsh"
if command -v zsh >/dev/null; then
    zsh -n _attend || fail "zsh does not parse its script"
    # zsh completes in a terminal only, so it gets one. ask.zsh LINE EXPECTED: types the line and a tab, and waits for the
    # expected text; prints what it has seen if that does not come.
    cat >ask.zsh <<'END'
zmodload zsh/zpty
zpty -b z zsh -f -i
zpty -w z "PS1=; fpath=($PWD \$fpath); autoload -Uz compinit; compinit -u -D"
zpty -n -w z "$1"$'\t'
repeat 200; do
    zpty -r -t z said && seen+=$said
    [[ $seen == *$~2* ]] && exit 0
    sleep 0.1
done
print -r -- "$seen"
exit 1
END
    zsh -f ask.zsh 'attend tra' 'train*translate' || fail "zsh does not complete the commands"
    zsh -f ask.zsh 'attend attention --score a' additive || fail "zsh does not complete the scores"
    zsh -f ask.zsh 'attend train --learning-r' 'learning-rate' || fail "zsh does not complete the options"
    zsh -f ask.zsh 'attend compare shaw' shaw-k || fail "zsh does not complete the comparisons"
else
    skipped "zsh is not installed, so its script was not parsed"
fi
refuse 2 "no shell 'fish'; there are 'bash' and 'zsh'" help --completion fish
finish
