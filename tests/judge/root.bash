# judge_root FOLDER: makes FOLDER/root, a Debian 13 with Node and npm's package ctranslate2 (CTranslate2 4.7.1, which needs
# glibc 2.38), unless it is there. Says why not on standard output, and returns 1.
judge_root() {
    local folder=$1
    [ ! -e "$folder/ready" ] || return 0
    [ "$(id -u)" = 0 ] || { echo "SKIPPED: CTranslate2 runs in a root folder of its own, which needs root"; return 1; }
    [ "$(uname -m)" = x86_64 ] || { echo "SKIPPED: npm's ctranslate2 is for x86-64"; return 1; }
    local tool
    for tool in mmdebstrap npm; do
        command -v $tool >/dev/null || { echo "SKIPPED: there is no $tool"; return 1; }
    done
    mkdir -p "$folder"
    rm -rf "$folder/root"
    mmdebstrap --variant=minbase --include=nodejs trixie "$folder/root" >"$folder/log" 2>&1 ||
        { echo "SKIPPED: Debian 13 cannot be installed: $(tail -n 1 "$folder/log")"; return 1; }
    (cd "$folder" && rm -rf package && npm pack --silent ctranslate2@1.0.0 >log 2>&1 && tar xzf ctranslate2-1.0.0.tgz) ||
        { echo "SKIPPED: npm's ctranslate2 cannot be had: $(tail -n 1 "$folder/log")"; return 1; }
    mkdir -p "$folder/root/judge/node_modules/ctranslate2"
    (cd "$folder/package" && cp -r index.js binding.js runtime-support.js package.json napi.config.json ct2.linux-x64-gnu.node \
        "$folder/root/judge/node_modules/ctranslate2/")
    rm -rf "$folder/package" "$folder"/ctranslate2-*.tgz
    touch "$folder/ready"
}

# judge FOLDER MODEL LINES BEAM: what ctranslate2.js prints.
judge() {
    local root=$1/root here code=0
    here=$(mktemp -d "$root/judge/run.XXXXXX")
    cp -r "$2" "$here/model"
    cp "$3" "$here/lines"
    cp "$(dirname "${BASH_SOURCE[0]}")/ctranslate2.js" "$here/"
    unshare --mount sh -c 'mount --bind /proc "$1/proc" && exec chroot "$1" node "$2/ctranslate2.js" "$2/model" "$2/lines" "$3"' - \
        "$root" "${here#"$root"}" "$4" 2>"$here/stderr" || code=$?
    [ $code = 0 ] || cat "$here/stderr" >&2
    rm -rf "$here"
    return $code
}
