/* The additive score on a tile: e_ij = sum_a v_a act(q_ia + k_ja). Keys are lanes and a runs inside, so the [Q,K,A]
 * array of the formula only ever exists a vector at a time. */
#include "kernels/tile_rows_internal.h"

INLINE void additive_by(const tile *t, const tile_additive *job, const at_act act)
{
    const int64_t size = job->size, q_row = job->q_row;
    const at_real *q = job->q, *kt = job->kt, *v = job->v;
    for (int64_t c = 0; c < t->to - t->from; c += WIDTH) {
        const at_real *panel = kt + (t->from + c) * size; /* [size][WIDTH] */
        for (int64_t i = 0; i < t->rows; i++) {
            int64_t a, b;
            if (!row_columns(t, i, &a, &b) || a >= c + WIDTH || b <= c)
                continue;
            vec sum0 = v_set(0), sum1 = sum0;
            for (int64_t e = 0; e < size; e++) {
                vec x = v_set(q[i * q_row + e]), weight = v_set(v[e]);
                sum0 = v_fma(weight, activate(x + v_load(panel + e * WIDTH), act), sum0);
                sum1 = v_fma(weight, activate(x + v_load(panel + e * WIDTH + LANES), act), sum1);
            }
            v_store(t->s + i * t->s_row + c, sum0);
            v_store(t->s + i * t->s_row + c + LANES, sum1);
        }
    }
}

void AT_ISA_NAME(at_tile_additive)(const tile *t, const tile_additive *job)
{
    switch (job->act) {
    case AT_ACT_TANH:
        additive_by(t, job, AT_ACT_TANH);
        break;
    case AT_ACT_SIGMOID:
        additive_by(t, job, AT_ACT_SIGMOID);
        break;
    case AT_ACT_RELU:
        additive_by(t, job, AT_ACT_RELU);
        break;
    case AT_ACT_NONE:
        additive_by(t, job, AT_ACT_NONE);
        break;
    }
}

/* With g = ds act'(q + k): dq_a += v_a sum_j g, dk_a += v_a sum_i g, dv_a += sum_ij ds act(q + k). A panel holds keys
 * that this row does not see; ds is 0 there, but 0 times the act(q + k) of a NaN key is NaN, so their act(q + k) counts
 * as 0. */
INLINE void additive_back_by(const tile *ds, const tile_additive *job, const at_act act)
{
    const int64_t size = job->size, q_row = job->q_row;
    const at_real *q = job->q, *kt = job->kt, *v = job->v;
    at_real *dq = job->dq, *dkt = job->dkt, *dv = job->dv;
    for (int64_t i = 0; i < ds->rows; i++) {
        int64_t a, b;
        if (!row_columns(ds, i, &a, &b))
            continue;
        for (int64_t c = panel_floor(a); c < panel_ceil(b); c += WIDTH) {
            const veci in0 = inside(c, a, b), in1 = inside(c + LANES, a, b);
            vec d0 = v_load(ds->s + i * ds->s_row + c), d1 = v_load(ds->s + i * ds->s_row + c + LANES);
            const at_real *panel = kt + (ds->from + c) * size;
            at_real *dpanel = dkt + (ds->from + c) * size;
            for (int64_t e = 0; e < size; e++) {
                vec x = v_set(q[i * q_row + e]), weight = v_set(v[e]);
                vec y0 = v_pick(in0, activate(x + v_load(panel + e * WIDTH), act), v_set(0));
                vec y1 = v_pick(in1, activate(x + v_load(panel + e * WIDTH + LANES), act), v_set(0));
                vec g0 = d0 * slope(y0, act), g1 = d1 * slope(y1, act);
                v_store(dpanel + e * WIDTH, v_fma(weight, g0, v_load(dpanel + e * WIDTH)));
                v_store(dpanel + e * WIDTH + LANES, v_fma(weight, g1, v_load(dpanel + e * WIDTH + LANES)));
                v_store(dv + e * LANES, v_fma(d1, y1, v_fma(d0, y0, v_load(dv + e * LANES))));
                dq[i * q_row + e] += v[e] * v_sum(g0 + g1);
            }
        }
    }
}

void AT_ISA_NAME(at_tile_additive_back)(const tile *ds, const tile_additive *job)
{
    switch (job->act) {
    case AT_ACT_TANH:
        additive_back_by(ds, job, AT_ACT_TANH);
        break;
    case AT_ACT_SIGMOID:
        additive_back_by(ds, job, AT_ACT_SIGMOID);
        break;
    case AT_ACT_RELU:
        additive_back_by(ds, job, AT_ACT_RELU);
        break;
    case AT_ACT_NONE:
        additive_back_by(ds, job, AT_ACT_NONE);
        break;
    }
}
