#!/usr/bin/env bash
# pictures.sh ATTEND [FOLDER]: makes the drawing of the README in FOLDER, by default the one of this script: the weights of
# the model that its tour trains. The plain kernels give every x86-64 the same bits.
set -euo pipefail
attend=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
folder=$(realpath "${2:-$here}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here"/../examples/tour/* "$work"
cd "$work"
export ATTEND_ISA=plain
"$attend" train --config tour.conf --updates 600 --quiet
"$attend" show -m en-de.safetensors "today the old teacher has found a black cat in the garden" -o "$folder/weights.svg" >/dev/null
