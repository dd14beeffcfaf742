/* The windows: which keys a query sees. Every one of them, cut to the keys there are, is one interval per row. */
#include <math.h>

#include "attention/axes.h"

static void everything(int64_t position, int64_t reach, int64_t *lo, int64_t *hi)
{
    (void)position, (void)reach;
    *lo = 0;
    *hi = INT32_MAX;
}

/* j <= i */
static void up_to_here(int64_t position, int64_t reach, int64_t *lo, int64_t *hi)
{
    (void)reach;
    *lo = 0;
    *hi = position + 1;
}

/* |i - j| <= reach */
static void around_here(int64_t position, int64_t reach, int64_t *lo, int64_t *hi)
{
    *lo = position - reach;
    *hi = position + reach + 1;
}

static const at_window_record records[] = {
    [AT_GLOBAL] = {{"window", "global", "", "every key", "", ""}, everything},
    [AT_CAUSAL] = {{"window", "causal", "", "j ≤ i", "", "Vaswani et al. 2017"}, up_to_here},
    [AT_SLIDING] = {{"window", "sliding", "W", "|i − j| ≤ W", "", "Beltagy, Peters, Cohan 2020"}, around_here},
    [AT_LOCAL_M] = {{"window", "local-m", "D", "j in [t − D, t + D]", "", "Luong, Pham, Manning 2015"}, around_here},
    [AT_LOCAL_P] = {{"window", "local-p", "D", "|j − p| ≤ D, w_j ∘ exp(−(j − p)² / (2(D/2)²)), p = S σ(vpᵀ tanh(Wp q))",
                     "Wp [A,D], vp [A]", "Luong, Pham, Manning 2015"},
                    NULL},
};

const at_window_record *at_window_at(int index)
{
    return index >= 0 && index < (int)(sizeof records / sizeof *records) ? &records[index] : NULL;
}

static int64_t length_of(const at_operands *o, int64_t b)
{
    return o->in->packed ? o->in->packed->key_count[b] : o->in->lengths ? o->in->lengths[b] : o->K;
}

/* p = S sigmoid(vp^T tanh(Wp q)), S the keys of the batch row: [B,H,Q] */
static at_tensor *centres(const at_operands *o)
{
    at_real *length = at_arena_take(at_tape_arena(o->tape), (size_t)o->B * sizeof *length);
    if (!length) {
        at_fail(at_tape_error(o->tape), AT_FAILED, "memory is out: no room for the lengths");
        return NULL;
    }
    for (int64_t b = 0; b < o->B; b++)
        length[b] = (at_real)length_of(o, b);
    at_tensor *S = at_leaf(o->tape, AT_SHAPE(o->B, 1, 1), length, NULL, false);
    at_tensor *hidden = at_tanh(at_heads_product(o->q, o->in->Wp, o->H, true)); /* [B,Q,H,A] */
    at_tensor *place = at_sigmoid(at_sum(at_mul(hidden, o->in->vp), 3));        /* [B,Q,H]; vp [A] or [H,A] */
    place = at_reshape(place, AT_SHAPE(o->B, o->Q, o->H, 1));
    return at_mul(at_reshape(at_swap_heads(place), AT_SHAPE(o->B, o->H, o->Q)), S);
}

/* |s - p| <= reach for whole s. A NaN centre sees every key, so that it shows in the output instead of hiding as zeros.
 */
static void around_centre(double centre, int64_t reach, int64_t *lo, int64_t *hi)
{
    everything(0, 0, lo, hi);
    if (isnan(centre))
        return;
    *lo = (int64_t)ceil(centre - (double)reach);
    *hi = (int64_t)floor(centre + (double)reach) + 1;
}

bool at_spans_build(at_operands *o)
{
    const at_attention *a = o->attention;
    const at_window_record *window = at_window_at((int)a->window);
    const bool predicted = !window->interval;
    o->centre = predicted ? centres(o) : NULL;
    if (predicted && !o->centre)
        return false;
    o->spans = (at_spans){.batch = o->B, .heads = predicted ? o->H : 1, .rows = o->Q};
    const int64_t count = o->spans.batch * o->spans.heads * o->spans.rows;
    o->spans.lo = at_arena_take(at_tape_arena(o->tape), (size_t)count * sizeof *o->spans.lo);
    o->spans.hi = at_arena_take(at_tape_arena(o->tape), (size_t)count * sizeof *o->spans.hi);
    if (!o->spans.lo || !o->spans.hi)
        return at_fail(at_tape_error(o->tape), AT_FAILED, "memory is out: no room for %lld spans", (long long)count);
    for (int64_t r = 0; r < count; r++) {
        const int64_t b = r / (o->spans.heads * o->Q);
        int64_t lo, hi, length = length_of(o, b);
        if (o->in->packed && r % o->Q >= o->in->packed->query_count[b])
            length = 0; /* there is no such query */
        if (predicted)
            around_centre((double)o->centre->value[r], a->reach, &lo, &hi);
        else
            window->interval(o->in->query_start + r % o->Q, a->reach, &lo, &hi);
        if (a->causal && hi > o->in->query_start + r % o->Q + 1)
            hi = o->in->query_start + r % o->Q + 1;
        o->spans.lo[r] = (int32_t)(lo < 0 ? 0 : lo > length ? length : lo);
        o->spans.hi[r] = (int32_t)(hi < 0 ? 0 : hi > length ? length : hi);
    }
    return true;
}
