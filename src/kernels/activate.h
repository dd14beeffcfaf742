/* Activation functions and their slopes, written with y = act(x): of one number, and the kernels over rows. */
#ifndef AT_ACTIVATE_H
#define AT_ACTIVATE_H

#include <math.h>

#include "kernels/gemm.h"

static inline at_real at_tanh_slope(at_real y)
{
    return 1 - y * y;
}

static inline at_real at_sigmoid_slope(at_real y)
{
    return y * (1 - y);
}

static inline at_real at_act_value(at_act act, at_real x)
{
    switch (act) {
    case AT_ACT_TANH:
        return AT_REAL(tanh)(x);
    case AT_ACT_SIGMOID:
        return 1 / (1 + AT_REAL(exp)(-x));
    case AT_ACT_RELU:
        return x < 0 ? 0 : x; /* a NaN stays one */
    default:
        return x;
    }
}

static inline at_real at_act_slope(at_act act, at_real y)
{
    switch (act) {
    case AT_ACT_TANH:
        return at_tanh_slope(y);
    case AT_ACT_SIGMOID:
        return at_sigmoid_slope(y);
    case AT_ACT_RELU:
        return y > 0;
    default:
        return 1;
    }
}

typedef struct act_kernels {
    /* g = g act'(z) over rows [rows, size], with y = act(z); the sum of the rows is added to `sums` (NULL: not wanted)
     */
    void (*back)(at_real *g, const at_real *y, int64_t rows, int64_t size, at_act act, at_real *sums);
    /* y = f(x); gx += g f'(x) */
    void (*gelu)(at_real *y, const at_real *x, int64_t count);
    void (*gelu_back)(at_real *gx, const at_real *g, const at_real *x, int64_t count);
    void (*swish)(at_real *y, const at_real *x, int64_t count);
    void (*swish_back)(at_real *gx, const at_real *g, const at_real *x, int64_t count);
} act_kernels;

#endif
