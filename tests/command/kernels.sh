# ATTEND_ISA chooses the kernels; a name that is not there is refused; a training that is resumed with others says so, unless
# they compute the same bits, as avx2 and avx512 do.
. "$(dirname "$0")/support.bash"
unset ATTEND_ISA

code=0
said=$(ATTEND_ISA=nonsense "$attend" list 2>&1) || code=$?
equal 2 "$code" "the exit code with an unknown name"
[[ $said == "attend: ATTEND_ISA: no instruction set 'nonsense'; there are 'plain'"* ]] || fail "an unknown name: $said"
ATTEND_ISA=nonsense "$attend" list --help >/dev/null || fail "help with an unknown name"
ATTEND_ISA= "$attend" list >/dev/null || fail "an empty name"
ATTEND_ISA=plain "$attend" list >/dev/null || fail "plain"
case $(uname -m) in
x86_64) foreign=neon fast=avx2 wide=avx512 ;;
aarch64) foreign=avx512 fast=neon wide= ;;
*) foreign=avx2 fast=plain wide= ;;
esac
ATTEND_ISA=$foreign "$attend" list >/dev/null 2>&1 && fail "the kernels of another architecture are accepted"

if [ $fast = plain ] || ! ATTEND_ISA=$fast "$attend" list >/dev/null 2>&1; then
    echo "SKIPPED: this processor runs the plain kernels only"
    exit 77
fi
printf 'a b c\nb c a\nc a b a\n' >lines
train() {
    "$attend" train --source lines --target lines --embedding 4 --hidden 4 --attention 4 --maxout 4 --output m "$@" 2>&1
}
ATTEND_ISA=plain train --updates 2 --quiet
said=$(ATTEND_ISA=$fast train --updates 4 --resume)
note="'m.state' was written with the kernels 'plain', and this run uses '$fast': it continues, but not with the bits of an uninterrupted run; ATTEND_ISA=plain selects those kernels, where the processor has them"
grep -qF -e "$note" <<<"$said" || fail "a resumption with other kernels says $said"
said=$(ATTEND_ISA=$fast train --updates 6 --resume)
grep -q "was written with the kernels" <<<"$said" && fail "a resumption with the same kernels says $said"
checks=$((checks + 7))

# The same models and states with both, and by both in turns.
if [ -n "$wide" ] && ATTEND_ISA=$wide "$attend" list >/dev/null 2>&1; then
    [[ $("$attend" list --verbose 2>&1 >/dev/null) == *", $wide kernels" ]] || fail "$wide is not the first choice"
    . "$here/../cases.bash"
    make_corpus
    by() { # KERNELS UPDATES NAME OUTPUT OPTION...
        local said options
        options=$(options_of "$3")
        # shellcheck disable=SC2086
        said=$(ATTEND_ISA=$1 "$attend" train ${options/--updates 14/--updates $2} --output "$4" "${@:5}" 2>&1) || fail "$3 with $1: $said"
        [ -z "$said" ] || fail "$3 with $1 says $said"
    }
    for name in bahdanau luong-local-m transformer transformer-shaw pictures; do
        by $fast 14 $name $name.fast
        by $wide 14 $name $name.wide
        by $wide 7 $name $name.both
        by $fast 14 $name $name.both --resume
        for other in wide both; do
            same_file $name.fast $name.$other
            same_file $name.fast.state $name.$other.state
        done
    done
elif [ -n "$wide" ]; then
    equal "attend: ATTEND_ISA: this processor does not have the instruction set '$wide'" "$(ATTEND_ISA=$wide "$attend" list 2>&1 >/dev/null || :)" \
        "what a processor without $wide says"
    [[ $("$attend" list --verbose 2>&1 >/dev/null) == *", $fast kernels" ]] || fail "$fast is not the first choice"
    skipped "this processor has no $wide kernels"
fi
finish
