# For the scripts in tests/command that compile against the library; $1 is the command's path in the build directory.
top=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$(dirname "$1")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Whatever links a sanitized library must bring the sanitizers' runtime.
sanitizers=
if readelf -d "$build/libattend.so" | grep -q libasan; then
    sanitizers=-fsanitize=address,undefined
fi

fail()
{
    echo "$0: $*" >&2
    exit 1
}
