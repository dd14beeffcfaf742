#!/usr/bin/env bash
# without.sh [TREE]: attend builds without zlib, libzstd, libzip, libyaml, libpng, libjpeg, librsvg, libmicrohttpd, ICU and SentencePiece, with no warning, and refuses what it
# then cannot do with a message that names the library; and a program links with -static. Only the command and the static library are
# built, without optimisation.
set -eu
tree=$(cd "${1:-$(dirname "$0")/..}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() {
    echo "FAILED: $*" >&2
    exit 1
}

command -v ccache >/dev/null && export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
cmake -S "$tree" -B build -DAT_ZLIB=OFF -DAT_ZSTD=OFF -DAT_ZIP=OFF -DAT_YAML=OFF -DAT_PNG=OFF -DAT_JPEG=OFF -DAT_SPM=OFF -DAT_RSVG=OFF -DAT_MICROHTTPD=OFF -DAT_ICU=OFF -DAT_MPI=OFF -DAT_BENCH=OFF -DAT_WERROR=ON -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_C_FLAGS_DEBUG=-O0 -DCMAKE_CXX_FLAGS_DEBUG=-O0 >log
cmake --build build -j2 --target attend attend_static >>log 2>&1 || {
    grep -E 'error:|warning:' -A4 log | head -40
    fail "attend does not build without its optional libraries"
}
! nm -D --undefined-only build/attend | grep -E ' (inflate|ZSTD_|zip_|yaml_|png_|jpeg_)' || fail "attend still calls an optional library"

# refuse NAME BYTES REASON
refuse() {
    printf '%b' "$2" >"$1"
    ! build/attend score bleu --reference "$1" </dev/null 2>said || fail "attend reads $1"
    [ "$(cat said)" = "attend: --reference: '$1' is $3; decompress it first" ] || fail "attend says of $1: $(cat said)"
}
refuse lines.gz '\x1f\x8b\x08\x00' "gzip data, and this attend was built without zlib"
refuse lines '\x28\xb5\x2f\xfd' "zstd data, and this attend was built without libzstd"
! build/attend info "$tree/tests/models/onmt/transformer.pt" 2>said || fail "attend reads a zip file"
grep -q "is a zip file, and this attend was built without libzip$" said || fail "attend says of a zip file: $(cat said)"
build/attend info "$tree/tests/models/onmt/luong.pt" | grep -q '^model  *luong$' || fail "attend info of a model of OpenNMT-py"
printf 'a b c d\n' >plain
echo 'a b c d' | build/attend score bleu --reference plain | grep -q '^BLEU.* = 100.0 ' || fail "attend score of plain text"

# Pictures are known by their first bytes, and the message names what reads them.
cat >picture.c <<'END'
#include <stdio.h>
#include "image/image.h"
int main(int count, char **path)
{
    at_error error = {0};
    at_image image;
    puts(count == 2 && at_image_read(path[1], &image, &error) ? "read" : error.text);
}
END
libraries=$(PKG_CONFIG_PATH=$PWD/build pkg-config --static --libs jansson libutf8proc libxxhash)
cc -I "$tree/src" -I "$tree/include" picture.c -L build -lattend $libraries -lm -lpthread -o picture
picture() { # picture BYTES KIND LIBRARY
    printf '%b' "$1" >x.picture
    [ "$(./picture x.picture)" = "'x.picture' is a $2 picture, and this attend was built without $3" ] || fail "attend says of a $2: $(./picture x.picture)"
}
picture '\x89PNG\r\n\x1a\n' PNG libpng
picture '\xff\xd8\xff\xe0' JPEG libjpeg

# Without SentencePiece there is no C++, and subwords are refused by name.
! ldd build/attend | grep -E 'stdc|sentencepiece' || fail "attend still needs C++"
for kind in spm:20 "$tree/tests/ref/rules.spm"; do
    ! build/attend train --source plain --target plain --output model --source-vocab "$kind" --quiet 2>said || fail "attend trains subwords"
    grep -q 'built without SentencePiece (AT_SPM=OFF), so it has no subwords; use vocabularies of words or characters$' said ||
        fail "attend says of subwords: $(cat said)"
done
build/attend train --source plain --target plain --output model --embedding 4 --hidden 4 --attention 4 --maxout 4 --updates 2 --quiet ||
    fail "attend does not train words"
! build/attend serve -m model --port 0 2>said || fail "attend serves"
[ "$(cat said)" = "attend: this attend was built without libmicrohttpd, which a server needs (Debian package libmicrohttpd-dev)" ] ||
    fail "attend says of a server: $(cat said)"

# Drawings are SVG only.
build/attend show --weights '1 0; 0 1' -o x.svg || fail "attend draws no SVG file"
! build/attend show --weights '1 0; 0 1' -o x.png 2>said || fail "attend draws a PNG file"
[ "$(cat said)" = "attend: cannot draw 'x.png': this attend was built without librsvg; write a file that ends in .svg" ] || fail "attend says of a PNG file: $(cat said)"

# A program without any shared library.
echo 'int main(void) { return 0; }' >empty.c
if ! cc -static empty.c $libraries -lm -lpthread -o empty 2>/dev/null; then
    echo "SKIPPED: the libraries that attend needs are not there as static libraries"
    exit 0
fi
cc -static "$tree/examples/translate.c" -I "$tree/include" -L build -lattend $libraries -lm -lpthread -o translate 2>log ||
    fail "a program does not link with -static: $(head -5 log)"
[ ! -s log ] || fail "linking with -static warns: $(head -5 log)"
ldd translate 2>&1 | grep -q 'not a dynamic executable\|statically linked' || fail "the program is not static"
[ "$(./translate model <plain | head -1)" = "$(build/attend translate model --beam 4 --length-penalty 0.6 <plain)" ] ||
    fail "the static program translates otherwise"
