/* The additive score of one query with a second term of each key, e_j = sum_a v_a act(q_a + k_ja + f_ja): keys and terms lie
 * row by row, and a is the lane. The backward pass computes act again, which is cheaper than storing it. */
#include "kernels/tile_rows_internal.h"

/* act(q + k_j + f_j) for n values of a; without terms act(q + k_j) */
INLINE vec covered_lanes(const tile_covered *t, int64_t j, int64_t a, int64_t n, const at_act act)
{
    const vec x = v_load_first(t->q + a, n) + v_load_first(t->k + j * t->k_row + a, n);
    return activate(t->f ? x + v_load_first(t->f + j * t->f_row + a, n) : x, act);
}

INLINE void covered_by(const tile_covered *t, at_real *e, const at_act act)
{
    const int64_t whole = t->size / LANES * LANES, rest = t->size - whole;
    for (int64_t j = 0; j < t->keys; j++) {
        vec sum = v_set(0);
        for (int64_t a = 0; a < whole; a += LANES)
            sum = v_fma(v_load(t->v + a), covered_lanes(t, j, a, LANES, act), sum);
        if (rest)
            sum = v_fma(v_load_first(t->v + whole, rest), covered_lanes(t, j, whole, rest, act), sum);
        e[j] = v_sum(sum);
    }
}

void AT_ISA_NAME(at_tile_covered)(const tile_covered *job, at_real *e)
{
    switch (job->act) { /* the activation is a constant inside */
    case AT_ACT_TANH:
        covered_by(job, e, AT_ACT_TANH);
        break;
    case AT_ACT_SIGMOID:
        covered_by(job, e, AT_ACT_SIGMOID);
        break;
    case AT_ACT_RELU:
        covered_by(job, e, AT_ACT_RELU);
        break;
    case AT_ACT_NONE:
        covered_by(job, e, AT_ACT_NONE);
        break;
    }
}

INLINE void add_lanes(at_real *to, vec x, int64_t n)
{
    v_store_first(to, v_load_first(to, n) + x, n);
}

/* g = de_j v act'(q + k_j + f_j): dq += g, dk_j += g, df_j = g or += g, dv += de_j act(q + k_j + f_j) */
INLINE void covered_back_lanes(const tile_covered *t, int64_t j, int64_t a, int64_t n, at_real de, const at_act act)
{
    const vec y = covered_lanes(t, j, a, n, act), g = slope_times(v_load_first(t->v + a, n) * de, y, act);
    if (t->dq)
        add_lanes(t->dq + a, g, n);
    if (t->dv)
        add_lanes(t->dv + a, y * de, n);
    if (t->dk)
        add_lanes(t->dk + j * t->k_row + a, g, n);
    if (t->df && t->df_add)
        add_lanes(t->df + j * t->f_row + a, g, n);
    else if (t->df)
        v_store_first(t->df + j * t->f_row + a, g, n);
}

INLINE void covered_back_by(const tile_covered *t, const at_real *de, const at_act act)
{
    const int64_t whole = t->size / LANES * LANES, rest = t->size - whole;
    for (int64_t j = 0; j < t->keys; j++) {
        for (int64_t a = 0; a < whole; a += LANES)
            covered_back_lanes(t, j, a, LANES, de[j], act);
        if (rest)
            covered_back_lanes(t, j, whole, rest, de[j], act);
    }
}

void AT_ISA_NAME(at_tile_covered_back)(const tile_covered *job, const at_real *de)
{
    switch (job->act) {
    case AT_ACT_TANH:
        covered_back_by(job, de, AT_ACT_TANH);
        break;
    case AT_ACT_SIGMOID:
        covered_back_by(job, de, AT_ACT_SIGMOID);
        break;
    case AT_ACT_RELU:
        covered_back_by(job, de, AT_ACT_RELU);
        break;
    case AT_ACT_NONE:
        covered_back_by(job, de, AT_ACT_NONE);
        break;
    }
}
