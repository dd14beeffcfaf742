/* The choice of kernels, made once at run time: the fast set if the CPU has it, or what ATTEND_ISA names. */
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "attend_unstable.h"
#include "base/error.h"
#include "kernels/isa_internal.h"
#include "kernels/rows.h"

/* A set with the matrix products of another instruction set, `wide`. */
#define ISA_WITH(set, wide)                                                                                            \
    {                                                                                                                  \
        .name = #wide, .numbers = #set, .gemm = &at_gemm_kernels_##wide, .base = &at_gemm_kernels_##set,               \
        .narrow = &at_narrow_kernels_##wide, .rows = &at_row_kernels_##set, .tile = &at_tile_kernels_##set,            \
        .passes = &at_pass_kernels_##set, .acts = &at_act_kernels_##set, .update = &at_update_kernels_##set,           \
        .patches = &at_patch_kernels_##wide                                                                            \
    }
#define ISA_OF(set) ISA_WITH(set, set)

/* Slowest first. */
static const isa sets[] = {
    ISA_OF(plain),
#if defined(__x86_64__)
    ISA_OF(avx2),
    ISA_WITH(avx2, avx512),
#elif defined(__aarch64__)
    ISA_OF(neon),
#endif
};
enum { SETS = sizeof sets / sizeof *sets };

#if defined(__x86_64__)
/* vcvtph2ps, which __builtin_cpu_supports of clang does not know by name. */
static bool converts_halves(void)
{
    unsigned a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

static bool has(const isa *set)
{
#if defined(__x86_64__)
    if (strcmp(set->name, "avx512") == 0 && !(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")))
        return false;
    if (strcmp(set->numbers, "avx2") == 0)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && converts_halves();
#endif
    (void)set;
    return true; /* NEON is part of every aarch64 */
}

/* The set of that name; NULL: there is none, or this CPU does not have it. */
static const isa *find(const char *name)
{
    for (int i = 0; name && i < SETS; i++)
        if (strcmp(name, sets[i].name) == 0 && has(&sets[i]))
            return &sets[i];
    return NULL;
}

static const isa *best(void)
{
    const isa *wanted = find(getenv("ATTEND_ISA"));
    for (int i = SETS - 1; !wanted; i--)
        if (has(&sets[i]))
            wanted = &sets[i];
    return wanted;
}

static _Atomic(const isa *) in_use;

const isa *at_isa(void)
{
    const isa *set = atomic_load_explicit(&in_use, memory_order_relaxed);
    if (!set) {
        set = best();
        atomic_store_explicit(&in_use, set, memory_order_relaxed);
    }
    return set;
}

const char *at_kernels_name(void)
{
    return at_isa()->name;
}

const char *at_kernels_numbers(void)
{
    return at_isa()->numbers;
}

bool at_kernels_choose(const char *name)
{
    const isa *set = find(name);
    if (name && !set)
        return false;
    atomic_store(&in_use, set);
    return true;
}

bool at_kernels_set(const char *name, at_error *error)
{
    const char *names[SETS];
    bool known = false;
    for (int i = 0; i < SETS; i++) {
        names[i] = sets[i].name;
        known = known || strcmp(name, names[i]) == 0;
    }
    if (!known)
        return at_unknown("instruction set", name, names, SETS, error);
    return at_kernels_choose(name) ||
           at_fail(error, AT_UNSUPPORTED, "this processor does not have the instruction set '%s'", name);
}

void at_rows_exp(at_real *out, const at_real *x, int64_t count)
{
    at_isa()->rows->exp(out, x, count);
}

void at_rows_tanh(at_real *out, const at_real *x, int64_t count)
{
    at_isa()->rows->tanh(out, x, count);
}

void at_rows_sigmoid(at_real *out, const at_real *x, int64_t count)
{
    at_isa()->rows->sigmoid(out, x, count);
}
