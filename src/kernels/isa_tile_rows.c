/* What happens to a row of a tile between scores and weights. */
#include "kernels/pack_internal.h"
#include "kernels/tile_rows_internal.h"

void AT_ISA_NAME(at_tile_look_up)(const tile *t, const tile_table *table)
{
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t a, b;
        if (!row_columns(t, i, &a, &b))
            continue;
        at_real *s = t->s + i * t->s_row;
        int64_t offset = t->from - table->position[i];
        for (int64_t c = panel_floor(a); c < panel_ceil(b); c += LANES)
            v_store(s + c, v_load(s + c) + table_lanes(table, i, offset + c));
    }
}

static void zeros(at_real *s, int64_t from, int64_t to)
{
    if (from < to)
        memset(s + from, 0, (size_t)(to - from) * sizeof *s);
}

void AT_ISA_NAME(at_tile_blank)(const tile *t, bool everywhere)
{
    if (t->full)
        return;
    int64_t columns = panel_ceil(t->to - t->from);
    for (int g = 0; g < t->groups; g++) {
        int64_t a, b, first = everywhere ? 0 : t->first[g], last = everywhere ? columns : t->last[g];
        for (int64_t i = t->start[g]; i < t->start[g + 1]; i++) {
            at_real *s = t->s + i * t->s_row;
            if (!row_columns(t, i, &a, &b)) {
                zeros(s, first, last);
                continue;
            }
            zeros(s, first, panel_floor(a));
            zeros(s, panel_ceil(b), last);
        }
    }
}

INLINE int64_t clamp(int64_t x, int64_t least, int64_t most)
{
    return x < least ? least : x > most ? most : x;
}

/* The largest score of each lane of a row; outside [a,b) its panels become -inf. */
INLINE vec row_top(const tile *t, int64_t i, int64_t a, int64_t b)
{
    at_real *s = t->s + i * t->s_row;
    vec top = v_set(-INFINITY), other = top;
    fence(s, a, b, -INFINITY);
    for (int64_t c = panel_floor(a); c < panel_ceil(b); c += WIDTH) {
        top = v_max(top, v_load(s + c));
        other = v_max(other, v_load(s + c + LANES));
    }
    return v_max(top, other);
}

/* What is made of the scores of one row, once with a table whose entries are scaled and once with one whose are not. A
 * product that does not change within a row would be computed once, and added instead of fused, where the table is level;
 * so neither form has one. */
typedef struct relation {
    vec top, scale, base;
} relation;

INLINE vec relate_lanes(vec s, vec entry, const relation *r, const bool scaled)
{
    return scaled ? v_fma(s - r->top, r->scale, entry - r->base) : ((s - r->top) + (entry - r->base)) * r->scale;
}

/* s becomes x over the panels [from, to); returns the largest of each lane so far. */
INLINE vec relate_band(at_real *s, int64_t from, int64_t to, const relation *r, const tile_table *table, int64_t i,
                       int64_t offset, const bool scaled, vec top)
{
    vec other = top;
    for (int64_t c = from; c < to; c += WIDTH) {
        vec x = relate_lanes(v_load(s + c), table_lanes(table, i, offset + c), r, scaled);
        vec y = relate_lanes(v_load(s + c + LANES), table_lanes(table, i, offset + c + LANES), r, scaled);
        v_store(s + c, x);
        v_store(s + c + LANES, y);
        top = v_max(top, x);
        other = v_max(other, y);
    }
    return v_max(top, other);
}

/* The same with one value of the table throughout. */
INLINE vec relate_level(at_real *s, int64_t from, int64_t to, const relation *r, at_real entry, const bool scaled,
                        vec top)
{
    vec other = top;
    for (int64_t c = from; c < to; c += WIDTH) {
        vec x = relate_lanes(v_load(s + c), v_set(entry), r, scaled);
        vec y = relate_lanes(v_load(s + c + LANES), v_set(entry), r, scaled);
        v_store(s + c, x);
        v_store(s + c + LANES, y);
        top = v_max(top, x);
        other = v_max(other, y);
    }
    return v_max(top, other);
}

/* The scores of row i become x; returns the largest of each lane. Left of the band and right of it the clipped table is
 * constant: [from, left) and [right, to). */
INLINE vec relate_by(const tile *t, int64_t i, int64_t a, int64_t b, const relation *r, const tile_table *table,
                     const bool scaled)
{
    at_real *s = t->s + i * t->s_row;
    const at_real *at = table->at + i * table->row;
    int64_t from = panel_floor(a), to = panel_ceil(b), offset = t->from - table->position[i];
    int64_t left = clamp(panel_floor(-table->reach - offset + 1), from, to);
    int64_t right = clamp(panel_ceil(table->reach - offset), left, to);
    vec top = relate_level(s, from, left, r, at[0], scaled, v_set(-INFINITY));
    top = relate_band(s, left, right, r, table, i, offset, scaled, top);
    return relate_level(s, right, to, r, at[2 * table->reach], scaled, top);
}

INLINE vec relate_row(const tile *t, int64_t i, int64_t a, int64_t b, at_real top, at_real scale,
                      const tile_table *table)
{
    const relation r = {v_set(top), v_set(scale), v_set(table->base[i])};
    return table->scaled ? relate_by(t, i, a, b, &r, table, true) : relate_by(t, i, a, b, &r, table, false);
}

void AT_ISA_NAME(at_tile_tops)(const tile *t, at_real *top)
{
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t a, b;
        if (!row_columns(t, i, &a, &b))
            continue;
        const at_real here = v_top(row_top(t, i, a, b));
        top[i] = here > top[i] ? here : top[i];
    }
}

void AT_ISA_NAME(at_tile_relate)(const tile *t, const at_real *top, at_real scale, const tile_table *table)
{
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t a, b;
        if (!row_columns(t, i, &a, &b))
            continue;
        if (table->at) {
            relate_row(t, i, a, b, top[i], scale, table);
            continue;
        }
        at_real *s = t->s + i * t->s_row;
        for (int64_t c = panel_floor(a); c < panel_ceil(b); c += LANES)
            v_store(s + c, (v_load(s + c) - top[i]) * scale);
    }
}

/* The first column of [a,b) that holds `value`, which is there (outside of [a,b) the row holds -inf). */
static int64_t find(const at_real *s, int64_t a, int64_t b, at_real value)
{
    int64_t c = panel_floor(a);
    for (; c + LANES < b; c += LANES) {
        veci same = (veci)(v_load(s + c) == value);
        at_index any = 0;
#pragma GCC unroll 8
        for (int l = 0; l < LANES; l++)
            any |= same[l];
        if (any)
            break;
    }
    while (c < b - 1 && s[c] != value)
        c++;
    return c;
}

/* s = 2^((s - top) unit) over [a,b) in whole panels; returns the sum of each lane, and if `with_exponents` the sum of the
 * powers times s - top. */
INLINE vec row_powers(at_real *s, int64_t a, int64_t b, at_real top, at_real unit, const bool with_exponents,
                      vec *exponents)
{
    const vec shift = v_set(top), factor = v_set(unit), least = v_set(-127 / unit);
    vec sum0 = v_set(0), sum1 = sum0, exponents0 = sum0, exponents1 = sum0;
    for (int64_t c = panel_floor(a); c < panel_ceil(b); c += WIDTH) {
        vec x0 = v_max(least, v_load(s + c) - shift), x1 = v_max(least, v_load(s + c + LANES) - shift);
        vec p0 = v_exp2_times(x0, factor), p1 = v_exp2_times(x1, factor);
        v_store(s + c, p0);
        v_store(s + c + LANES, p1);
        sum0 += p0;
        sum1 += p1;
        if (with_exponents) {
            exponents0 = v_fma(p0, x0, exponents0);
            exponents1 = v_fma(p1, x1, exponents1);
        }
    }
    *exponents = exponents0 + exponents1;
    return sum0 + sum1;
}

static void scale_row(at_real *x, int64_t count, at_real factor)
{
    int64_t c = 0;
    for (; c + LANES <= count; c += LANES)
        v_store(x + c, v_set(factor) * v_load(x + c));
    for (; c < count; c++)
        x[c] *= factor;
}

/* LANES rows' vectors, each folded to one number: lane r of the result is row r's maximum or sum. Folding many rows at
 * once costs a few instructions a row; folding one takes as long as eight steps of the exponential. */
INLINE vec fold_top(const at_real *lanes)
{
    at_real transposed[LANES * LANES] __attribute__((aligned(VECTOR_BYTES)));
    transpose_block(lanes, LANES, transposed, LANES);
    vec top = v_load(transposed);
#pragma GCC unroll 8
    for (int l = 1; l < LANES; l++)
        top = v_max(top, v_load(transposed + l * LANES));
    return top;
}
INLINE vec fold_sum(const at_real *lanes)
{
    at_real transposed[LANES * LANES] __attribute__((aligned(VECTOR_BYTES)));
    transpose_block(lanes, LANES, transposed, LANES);
    vec sum = v_load(transposed);
#pragma GCC unroll 8
    for (int l = 1; l < LANES; l++)
        sum += v_load(transposed + l * LANES);
    return sum;
}

/* When the largest value rises by -fall, all that was summed so far shrinks by `factor`. */
static void rescale(const tile_state *state, int64_t i, at_real fall, at_real factor)
{
    if (state->exponent_sum)
        state->exponent_sum[i] = factor * (state->exponent_sum[i] + fall * state->sum[i]);
    state->sum[i] *= factor;
    scale_row(state->out + i * state->out_row, state->out_size, factor);
    if (state->offsets)
        scale_row(state->offsets + i * state->offsets_row, state->offsets_size, factor);
}

/* LANES rows from i on, of which `rows` exist. */
INLINE void softmax_rows(const tile *t, int64_t i, int64_t rows, const bool biased, const bool with_exponents,
                         const tile_table *table, const tile_state *state)
{
    at_real lanes[LANES * LANES] __attribute__((aligned(VECTOR_BYTES))),
        exponent_lanes[LANES * LANES] __attribute__((aligned(VECTOR_BYTES)));
    at_real most[LANES], fall[LANES], factor[LANES], before[LANES], risen[LANES];
    int64_t a[LANES], b[LANES];
    bool used[LANES];
    const at_real unit = biased ? AT_LOG2E : state->scale * AT_LOG2E; /* of the exponents */
#pragma GCC unroll 1
    for (int64_t r = 0; r < LANES; r++) {
        used[r] = r < rows && row_columns(t, i + r, &a[r], &b[r]);
        before[r] = used[r] ? state->top[i + r] : 0;
        v_store(lanes + r * LANES, used[r] ? row_top(t, i + r, a[r], b[r]) : v_set(0));
    }
    vec old = v_load(before), here = fold_top(lanes);
    vec top = v_pick((veci)(here > old), here, old); /* a NaN leaves the old one */
    v_store(most, top);
    if (biased) { /* the same again, with what the table adds, relative to the largest score */
#pragma GCC unroll 1
        for (int64_t r = 0; r < LANES; r++) {
            risen[r] = used[r] ? state->shift[i + r] : 0;
            v_store(lanes + r * LANES,
                    used[r] ? relate_row(t, i + r, a[r], b[r], most[r], state->scale, table) : v_set(0));
            if (used[r])
                state->top[i + r] = most[r];
        }
        old = v_fma(old - top, v_set(state->scale), v_load(risen));
        here = fold_top(lanes);
        top = v_pick((veci)(here > old), here, old);
        v_store(most, top);
    }
    v_store(fall, old - top);
    v_store(factor, v_exp2_below((old - top) * unit));
    for (int64_t r = 0; r < LANES; r++) {
        vec exponents = v_set(0), sum = v_set(0);
        if (used[r]) {
            at_real *kept = biased ? state->shift : state->top;
            kept[i + r] = most[r];
            if (fall[r] != 0) {
                if (state->argmax)
                    state->argmax[i + r] = (int32_t)(t->from + find(t->s + (i + r) * t->s_row, a[r], b[r], most[r]));
                if (before[r] != -INFINITY)
                    rescale(state, i + r, fall[r], factor[r]);
            }
            sum = row_powers(t->s + (i + r) * t->s_row, a[r], b[r], most[r], unit, with_exponents, &exponents);
        }
        v_store(lanes + r * LANES, sum);
        if (with_exponents)
            v_store(exponent_lanes + r * LANES, exponents);
    }
    at_real sums[LANES], exponent_sums[LANES];
    v_store(sums, fold_sum(lanes));
    if (with_exponents)
        v_store(exponent_sums, fold_sum(exponent_lanes));
    for (int64_t r = 0; r < rows; r++) {
        state->sum[i + r] += used[r] ? sums[r] : 0;
        if (with_exponents)
            state->exponent_sum[i + r] += used[r] ? exponent_sums[r] : 0;
    }
}

void AT_ISA_NAME(at_tile_softmax)(const tile *t, const tile_table *table, const tile_state *state)
{
    bool biased = table->at != NULL, with_exponents = state->exponent_sum != NULL;
    for (int64_t i = 0; i < t->rows; i += LANES) {
        int64_t rows = t->rows - i < LANES ? t->rows - i : LANES;
        if (biased && with_exponents)
            softmax_rows(t, i, rows, true, true, table, state);
        else if (biased)
            softmax_rows(t, i, rows, true, false, table, state);
        else if (with_exponents)
            softmax_rows(t, i, rows, false, true, table, state);
        else
            softmax_rows(t, i, rows, false, false, table, state);
    }
}

void AT_ISA_NAME(at_tile_sigmoid)(const tile *t)
{
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t a, b;
        if (!row_columns(t, i, &a, &b))
            continue;
        at_real *s = t->s + i * t->s_row;
        fence(s, a, b, -INFINITY); /* whose sigmoid is 0 */
        for (int64_t c = panel_floor(a); c < panel_ceil(b); c += LANES)
            v_store(s + c, v_sigmoid(v_load(s + c)));
    }
}

void AT_ISA_NAME(at_tile_relu)(const tile *t, const tile_state *state)
{
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t a, b;
        if (!row_columns(t, i, &a, &b))
            continue;
        at_real *s = t->s + i * t->s_row;
        vec sum = v_set(0);
        fence(s, a, b, 0);
        for (int64_t c = panel_floor(a); c < panel_ceil(b); c += LANES) {
            vec x = v_max(v_set(0), v_load(s + c));
            v_store(s + c, x);
            sum += x;
        }
        state->sum[i] += v_sum(sum);
    }
}

/* Newton's iteration from below on f(tau) = sum max(z - tau, 0)^p - 1, p = 1 (sparsemax) or 2 (entmax15, z = e/2). f is
 * convex and falling, so the steps climb to the root and stop when they no longer move. */
at_real AT_ISA_NAME(at_tile_threshold)(const at_real *row, int64_t lo, int64_t hi, tile_rule rule)
{
    at_real half = rule == RULE_ENTMAX15 ? (at_real)0.5 : 1, top = -INFINITY;
    for (int64_t j = lo; j < hi; j++)
        top = row[j] > top ? row[j] : top;
    at_real tau = half * top - 1;
    for (int step = 0; step < 100; step++) {
        at_real sum = 0, slope = 0;
        for (int64_t j = lo; j < hi; j++) {
            at_real x = half * row[j] - tau;
            if (x > 0) {
                sum += rule == RULE_ENTMAX15 ? x * x : x;
                slope += rule == RULE_ENTMAX15 ? 2 * x : 1;
            }
        }
        at_real next = tau + (sum - 1) / slope;
        if (!(next > tau))
            break;
        tau = next;
    }
    return tau;
}

void AT_ISA_NAME(at_tile_prior)(const tile *t, const at_real *centre, at_real sigma)
{
    at_real unit = -AT_LOG2E / (2 * sigma * sigma);
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t a, b;
        if (!row_columns(t, i, &a, &b))
            continue;
        at_real *s = t->s + i * t->s_row;
        for (int64_t c = panel_floor(a); c < panel_ceil(b); c += LANES) {
            vec at, x;
            for (int l = 0; l < LANES; l++)
                at[l] = (at_real)(t->from + c + l);
            x = at - centre[i];
            v_store(s + c, v_load(s + c) * v_exp2_below(unit * x * x));
        }
        fence(s, a, b, 0);
    }
}

void AT_ISA_NAME(at_tile_by_offset)(const tile *t, const int32_t *position, int64_t reach, at_real *sums,
                                    int64_t sums_row)
{
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t a, b;
        if (!row_columns(t, i, &a, &b))
            continue;
        const at_real *s = t->s + i * t->s_row;
        at_real *sum = sums + i * sums_row;
        /* Columns below `left` lie at or beyond -reach, those from `right` on at or beyond +reach. */
        int64_t middle = position[i] - t->from, left = middle - reach + 1, right = middle + reach;
        left = left < a ? a : left > b ? b : left;
        right = right < left ? left : right > b ? b : right;
        vec below = v_set(0), above = below;
        int64_t c = a;
        for (; c + LANES <= left; c += LANES)
            below += v_load(s + c);
        at_real low = v_sum(below), high = 0;
        for (; c < left; c++)
            low += s[c];
        for (; c < right; c++)
            sum[c - middle + reach] += s[c];
        for (; c + LANES <= b; c += LANES)
            above += v_load(s + c);
        for (; c < b; c++)
            high += s[c];
        sum[0] += low;
        sum[2 * reach] += v_sum(above) + high;
    }
}
