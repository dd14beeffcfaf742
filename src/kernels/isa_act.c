/* Activations: the backward pass of those of a product, and those whose slope needs the input. */
#include "kernels/activate.h"
#include "kernels/activate_internal.h"
#include "kernels/isa_internal.h"
#include "kernels/vec_internal.h"

/* ---- Of a product ---- */

/* n columns of `rows` rows */
INLINE void act_lanes(at_real *g, const at_real *y, const int rows, int64_t size, int64_t n, at_act act, at_real *sums)
{
    vec sum = sums ? v_load_first(sums, n) : v_set(0);
    for (int i = 0; i < rows; i++) {
        vec x = v_load_first(g + i * size, n);
        if (act != AT_ACT_NONE) {
            x = slope_times(x, v_load_first(y + i * size, n), act);
            v_store_first(g + i * size, x, n);
        }
        sum += x;
    }
    if (sums)
        v_store_first(sums, sum, n);
}

/* Four rows at a time, so that the sums are read and written once for four. */
INLINE void act_rows(at_real *g, const at_real *y, int64_t rows, int64_t size, at_act act, at_real *sums)
{
    for (int64_t i = 0; i < rows; i += 4, g += 4 * size, y += 4 * size) {
        int64_t c = 0;
        for (; i + 4 <= rows && c + LANES <= size; c += LANES)
            act_lanes(g + c, y + c, 4, size, LANES, act, sums ? sums + c : NULL);
        for (; c < size; c += LANES)
            act_lanes(g + c, y + c, rows - i < 4 ? (int)(rows - i) : 4, size, size - c < LANES ? size - c : LANES, act,
                      sums ? sums + c : NULL);
    }
}

static void back(at_real *g, const at_real *y, int64_t rows, int64_t size, at_act act, at_real *sums)
{
    switch (act) { /* the activation is a constant inside */
    case AT_ACT_TANH:
        act_rows(g, y, rows, size, AT_ACT_TANH, sums);
        break;
    case AT_ACT_SIGMOID:
        act_rows(g, y, rows, size, AT_ACT_SIGMOID, sums);
        break;
    case AT_ACT_RELU:
        act_rows(g, y, rows, size, AT_ACT_RELU, sums);
        break;
    case AT_ACT_NONE:
        act_rows(g, y, rows, size, AT_ACT_NONE, sums);
        break;
    }
}

/* ---- y = x Phi(x) ---- */

INLINE vec gelu_of(vec x)
{
    vec e;
    return x * v_normal(x, &e);
}

/* y' = Phi(x) + x phi(x), phi(x) = e^(-x^2/2) / sqrt(2 pi) */
INLINE vec gelu_slope(vec x)
{
    vec e, below = v_normal(x, &e);
    return v_fma(x * (at_real)0.39894228040143267794, e, below);
}

/* ---- y = x s, s = sigmoid(x) ---- */

INLINE vec swish_of(vec x)
{
    return x * v_sigmoid(x);
}

/* y' = s + x s (1 - s) */
INLINE vec swish_slope(vec x)
{
    vec s = v_sigmoid(x);
    return v_fma(x * s, 1 - s, s);
}

/* Both over rows: y = f(x), and gx += g y'. Two vectors to a turn, as in isa_rows.c. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("schedule-insns")
#endif
#define OVER_ROWS(name)                                                                                                \
    static void name(at_real *y, const at_real *x, int64_t count)                                                      \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (; i + 2 * LANES <= count; i += 2 * LANES) {                                                               \
            vec first = name##_of(v_load(x + i)), second = name##_of(v_load(x + i + LANES));                           \
            v_store(y + i, first);                                                                                     \
            v_store(y + i + LANES, second);                                                                            \
        }                                                                                                              \
        for (int64_t n; i < count; i += n) {                                                                           \
            n = count - i < LANES ? count - i : LANES;                                                                 \
            v_store_first(y + i, name##_of(v_load_first(x + i, n)), n);                                                \
        }                                                                                                              \
    }                                                                                                                  \
    static void name##_back(at_real *gx, const at_real *g, const at_real *x, int64_t count)                            \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (; i + 2 * LANES <= count; i += 2 * LANES) {                                                               \
            vec first = name##_slope(v_load(x + i)), second = name##_slope(v_load(x + i + LANES));                     \
            v_store(gx + i, v_fma(v_load(g + i), first, v_load(gx + i)));                                              \
            v_store(gx + i + LANES, v_fma(v_load(g + i + LANES), second, v_load(gx + i + LANES)));                     \
        }                                                                                                              \
        for (int64_t n; i < count; i += n) {                                                                           \
            n = count - i < LANES ? count - i : LANES;                                                                 \
            vec slope = name##_slope(v_load_first(x + i, n));                                                          \
            v_store_first(gx + i, v_fma(v_load_first(g + i, n), slope, v_load_first(gx + i, n)), n);                   \
        }                                                                                                              \
    }
OVER_ROWS(gelu)
OVER_ROWS(swish)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

const act_kernels AT_ISA_NAME(at_act_kernels) = {back, gelu, gelu_back, swish, swish_back};
