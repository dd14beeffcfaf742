/* The backward pass of the normaliser: weights again from scores, and scores' gradients from weights'. */
#include "kernels/tile_rows_internal.h"

/* Weights from scores:
 *   softmax, hard    w = 2^((s - top) unit - stat)    stat = log2 sum 2^((s - top) unit)
 *   sparsemax        w = max(s - stat, 0)             stat = the threshold
 *   entmax15         w = max(s/2 - stat, 0)^2         stat = the threshold
 *   sigmoid          w = sigmoid(s)
 *   relu             w = max(s, 0) stat               stat = 1 / sum, 0 for a zero row */
INLINE vec weight_lanes(vec s, vec top, vec unit, vec stat, const tile_rule rule)
{
    switch (rule) {
    case RULE_SOFTMAX:
    case RULE_HARD:
        return v_exp2_below(v_fma(s - top, unit, -stat));
    case RULE_SPARSEMAX:
        return v_max(v_set(0), s - stat);
    case RULE_ENTMAX15: {
        vec x = v_max(v_set(0), (at_real)0.5 * s - stat);
        return x * x;
    }
    case RULE_SIGMOID:
        return v_sigmoid(s);
    case RULE_RELU:
        return v_max(v_set(0), s) * stat;
    }
    return s;
}

INLINE void weights_by(const tile *t, const tile_back *back, const tile_rule rule)
{
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t a, b;
        if (!row_columns(t, i, &a, &b))
            continue;
        at_real *s = t->s + i * t->s_row;
        const vec top = v_set(back->top ? back->top[i] : 0), unit = v_set(back->unit), stat = v_set(back->stat[i]);
        for (int64_t c = panel_floor(a); c < panel_ceil(b); c += WIDTH) {
            v_store(s + c, weight_lanes(v_load(s + c), top, unit, stat, rule));
            v_store(s + c + LANES, weight_lanes(v_load(s + c + LANES), top, unit, stat, rule));
        }
        fence(s, a, b, 0);
    }
}

void AT_ISA_NAME(at_tile_weights)(const tile *t, const tile_back *back)
{
    switch (back->rule) { /* one body for each, so the rule is a constant inside */
    case RULE_SOFTMAX:
    case RULE_HARD:
        weights_by(t, back, RULE_SOFTMAX);
        break;
    case RULE_SPARSEMAX:
        weights_by(t, back, RULE_SPARSEMAX);
        break;
    case RULE_ENTMAX15:
        weights_by(t, back, RULE_ENTMAX15);
        break;
    case RULE_SIGMOID:
        weights_by(t, back, RULE_SIGMOID);
        break;
    case RULE_RELU:
        weights_by(t, back, RULE_RELU);
        break;
    }
    AT_ISA_NAME(at_tile_blank)(t, true);
}

INLINE vec v_sqrt(vec x)
{
    for (int l = 0; l < LANES; l++)
        x[l] = AT_REAL(sqrt)(x[l]);
    return x;
}

/* Scores' gradients from weights', d = dL/dw:
 *   softmax          ds = w (d - delta)             delta = sum w d
 *   sparsemax        ds = d - delta where w > 0     delta = mean of d over the support
 *   entmax15         ds = r (d - delta), r = √w     delta = sum r d / sum r
 *   sigmoid          ds = d w (1 - w)
 *   relu             ds = stat (d - delta), w > 0   delta = sum w d
 *   hard             ds = dlog_prob ([j chosen] - w)     the one-hot itself has no gradient, its log-probability has */
INLINE vec dscore_lanes(vec w, vec d, vec stat, vec delta, const tile_rule rule)
{
    switch (rule) {
    case RULE_SOFTMAX:
        return w * (d - delta);
    case RULE_SPARSEMAX:
        return v_pick((veci)(w > 0), d - delta, v_set(0));
    case RULE_ENTMAX15:
        return v_sqrt(w) * (d - delta);
    case RULE_SIGMOID:
        return d * w * (1 - w);
    case RULE_RELU:
        return v_pick((veci)(w > 0), stat * (d - delta), v_set(0));
    case RULE_HARD:
        return w; /* see dscore_hard */
    }
    return d;
}

INLINE void dscore_by(const tile *t, at_real *d, const tile_back *back, const tile_rule rule)
{
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t a, b;
        if (!row_columns(t, i, &a, &b))
            continue;
        const at_real *w = t->s + i * t->s_row;
        at_real *ds = d + i * t->s_row;
        vec stat = v_set(back->stat[i]), delta = v_set(back->delta[i]);
        for (int64_t c = panel_floor(a); c < panel_ceil(b); c += WIDTH) {
            v_store(ds + c, dscore_lanes(v_load(w + c), v_load(ds + c), stat, delta, rule));
            v_store(ds + c + LANES, dscore_lanes(v_load(w + c + LANES), v_load(ds + c + LANES), stat, delta, rule));
        }
        fence(ds, a, b, 0);
    }
}

static void dscore_hard(const tile *t, at_real *d, const tile_back *back)
{
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t a, b;
        if (!row_columns(t, i, &a, &b))
            continue;
        at_real dlog_prob = back->dlog_prob ? back->dlog_prob[i] : 0, *ds = d + i * t->s_row;
        for (int64_t c = panel_floor(a); c < panel_ceil(b); c++)
            ds[c] = -dlog_prob * t->s[i * t->s_row + c];
        int64_t chosen = back->choice[i] - t->from;
        if (chosen >= a && chosen < b)
            ds[chosen] += dlog_prob;
        fence(ds, a, b, 0);
    }
}

void AT_ISA_NAME(at_tile_dscore)(const tile *t, at_real *d, const tile_back *back)
{
    switch (back->rule) {
    case RULE_SOFTMAX:
        dscore_by(t, d, back, RULE_SOFTMAX);
        break;
    case RULE_SPARSEMAX:
        dscore_by(t, d, back, RULE_SPARSEMAX);
        break;
    case RULE_ENTMAX15:
        dscore_by(t, d, back, RULE_ENTMAX15);
        break;
    case RULE_SIGMOID:
        dscore_by(t, d, back, RULE_SIGMOID);
        break;
    case RULE_RELU:
        dscore_by(t, d, back, RULE_RELU);
        break;
    case RULE_HARD:
        dscore_hard(t, d, back);
        break;
    }
    tile gradient = *t;
    gradient.s = d;
    AT_ISA_NAME(at_tile_blank)(&gradient, true);
}

void AT_ISA_NAME(at_tile_delta)(const tile *t, const at_real *d, const tile_back *back, at_real *numerator,
                                at_real *denominator)
{
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t a, b;
        if (!row_columns(t, i, &a, &b))
            continue;
        for (int64_t c = a; c < b; c++) {
            at_real w = t->s[i * t->s_row + c];
            if (!(w > 0))
                continue;
            at_real r = back->rule == RULE_ENTMAX15 ? AT_REAL(sqrt)(w) : 1;
            numerator[i] += r * d[i * t->s_row + c];
            denominator[i] += r;
        }
    }
}
