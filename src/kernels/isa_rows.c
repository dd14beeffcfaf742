/* exp, tanh and sigmoid over rows, and the element-wise end of a product. */
#include "isa_internal.h"
#include "vec.h"

/* out[i] = f(x[i]); the tail goes through a padded vector, so an element's bits do not depend on its place. */
#define OVER_ROWS(name, f)                                                                                             \
    static void name(at_real *out, const at_real *x, int64_t count)                                                   \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (; i + LANES <= count; i += LANES)                                                                         \
            v_store(out + i, f(v_load(x + i)));                                                                        \
        if (i < count) {                                                                                               \
            at_real tail[LANES] = {0};                                                                                 \
            memcpy(tail, x + i, (size_t)(count - i) * sizeof *x);                                                      \
            v_store(tail, f(v_load(tail)));                                                                            \
            memcpy(out + i, tail, (size_t)(count - i) * sizeof *x);                                                    \
        }                                                                                                              \
    }

OVER_ROWS(rows_exp, v_exp)
OVER_ROWS(rows_tanh, v_tanh)
OVER_ROWS(rows_sigmoid, v_sigmoid)

const row_kernels AT_ISA_NAME(at_row_kernels) = {rows_exp, rows_tanh, rows_sigmoid};
