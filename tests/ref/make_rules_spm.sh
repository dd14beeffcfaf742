#!/usr/bin/env bash
# How rules.spm was made (Debian's sentencepiece 0.1.97): a small model with every part that a file may have, among them a
# table of rules of its own, a user-defined and a control piece, and samples to test itself with.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
printf 'A0\t20\nFB01\t66 69\nFF57\t77\n2103\tB0 43\n200B\t\n41 41\t61\n' >rules.tsv
sed -n 1,60p "$top/README.md" | tr -d '`|*' >readme.txt
spm_train --minloglevel=3 --input=readme.txt --model_prefix=rules --vocab_size=150 --hard_vocab_limit=false \
    --normalization_rule_tsv=rules.tsv --user_defined_symbols='<mark>' --control_symbols='<ctrl>' \
    --self_test_sample_size=2 --character_coverage=1
cp rules.model "$top/tests/ref/rules.spm"
