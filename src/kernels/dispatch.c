/* The CPU picks its kernels once, at run time. */
#include <stdatomic.h>
#include <string.h>

#include "kernels/isa_internal.h"
#include "kernels/rows.h"

static const isa plain = {"plain",
                          &at_gemm_kernels_plain,
                          &at_row_kernels_plain,
                          &at_tile_kernels_plain,
                          &at_pass_kernels_plain,
                          &at_act_kernels_plain,
                          &at_update_kernels_plain};
static const isa avx2 = {"avx2",
                         &at_gemm_kernels_avx2,
                         &at_row_kernels_avx2,
                         &at_tile_kernels_avx2,
                         &at_pass_kernels_avx2,
                         &at_act_kernels_avx2,
                         &at_update_kernels_avx2};

static _Atomic(const isa *) in_use;

static bool has_avx2(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

const isa *at_isa(void)
{
    const isa *set = atomic_load_explicit(&in_use, memory_order_relaxed);
    if (!set) {
        set = has_avx2() ? &avx2 : &plain;
        atomic_store_explicit(&in_use, set, memory_order_relaxed);
    }
    return set;
}

const char *at_kernels_name(void)
{
    return at_isa()->name;
}

bool at_kernels_choose(const char *name)
{
    const isa *set = NULL;
    if (name && strcmp(name, "plain") == 0)
        set = &plain;
    else if (name && strcmp(name, "avx2") == 0 && has_avx2())
        set = &avx2;
    if (name && !set)
        return false;
    atomic_store(&in_use, set);
    return true;
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
