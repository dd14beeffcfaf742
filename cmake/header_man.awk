# attend.h as the man page attend.h(3): the comment at the top is the description, every "/* ---- Title ---- */" starts a
# section, other comments are paragraphs, and declarations are copied unchanged. Usage: awk -v version=0.1.0 -f THIS attend.h
function roff(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    return text ~ /^[.']/ ? "\\&" text : text
}
# Ends the open paragraph and starts one of text, of unchanged (indented) lines, or of code.
function start(kind) {
    if (kind == state)
        return
    if (state == "code" || state == "fixed")
        print ".fi"
    if (kind != "" && !fresh)
        print ".PP"
    if (kind == "code" || kind == "fixed")
        print ".nf"
    fresh = fresh && kind == ""
    state = kind
}
function comment(line) {
    sub(/^ ?\/?\* ?/, "", line)
    sub(/ *\*\/$/, "", line)
    if (line == "")
        start("")
    else {
        start(line ~ /^  / ? "fixed" : "text")
        print roff(line)
    }
}

NR == 1 {
    title = $0
    sub(/^\/\* attend.h: /, "", title)
    sub(/\.$/, "", title)
    printf ".TH ATTEND.H 3 \"\" \"attend %s\" \"Library functions\"\n.SH NAME\nattend.h \\- %s\n", version, roff(title)
    print ".SH SYNOPSIS\n.nf\n#include <attend.h>\n.PP\ncc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs attend)\n.fi\n.SH DESCRIPTION\n.ad l"
    top = inside = fresh = 1
    next
}
top {
    if (/\*\/$/)
        top = inside = 0
    else
        comment($0)
    next
}
/^\/\* ---- / {
    sub(/^\/\* -+ */, "")
    sub(/ *-+ *\*\/$/, "")
    start("")
    print ".SH " toupper($0)
    section = fresh = 1
    next
}
!section { next }
/^#(ifdef|endif|if)/ { exit } # the end of extern "C"
/^\/\*/ { inside = 1 }
inside {
    comment($0)
    if (/\*\/$/)
        inside = 0
    next
}
/^$/ {
    start("")
    next
}
{
    start("code")
    gsub(/AT_API /, "")
    print roff($0)
}
END {
    start("")
    print ".SH SEE ALSO\n.BR attend (1)"
}
