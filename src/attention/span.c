/* The windows: which keys a query sees. Every one of them, cut to the keys there are, is one interval per row. */
#include <math.h>

#include "attention/axes_internal.h"

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

static bool reach_argument(const at_choice *c, at_attention *a, at_error *error)
{
    return at_argument_number(c, 0, -1, &a->argument[AT_WINDOW], error);
}

/* sigma = D/2 must not be 0. */
static bool local_p_argument(const at_choice *c, at_attention *a, at_error *error)
{
    if (!reach_argument(c, a, error))
        return false;
    return a->argument[AT_WINDOW] > 0 ||
           at_fail(error, AT_USAGE, "window '%s' must have D of at least 1, because its Gaussian has sigma D/2",
                   c->text);
}

const at_window_record at_window_global = {.entry = {"window", "global", "", "every key", "", ""},
                                           .interval = everything};

const at_window_record at_window_causal = {.entry = {"window", "causal", "", "j ≤ i", "", "Vaswani et al. 2017"},
                                           .interval = up_to_here};

const at_window_record at_window_sliding = {
    .entry = {"window", "sliding", "W", "|i − j| ≤ W", "", "Beltagy, Peters, Cohan 2020"},
    .argument = reach_argument,
    .interval = around_here};

const at_window_record at_window_local_m = {
    .entry = {"window", "local-m", "D", "j in [t − D, t + D]", "", "Luong, Pham, Manning 2015"},
    .argument = reach_argument,
    .interval = around_here};

const at_window_record at_window_local_p = {
    .entry = {"window", "local-p", "D", "|j − p| ≤ D, w_j ∘ exp(−(j − p)² / (2(D/2)²)), p = S σ(vpᵀ tanh(Wp q))",
              "Wp [A,D], vp [A]", "Luong, Pham, Manning 2015"},
    .argument = local_p_argument};

static int64_t length_of(const at_job *j, int64_t b)
{
    return j->in.packed ? j->in.packed->key_count[b] : j->in.lengths ? j->in.lengths[b] : j->K;
}

/* p = S sigmoid(vp^T tanh(Wp q)), S the keys of the batch row: [B,H,Q] */
static at_tensor *centres(const at_job *j)
{
    at_tensor *const *p = j->in.parameter[AT_WINDOW]; /* Wp, vp */
    at_real *length = at_arena_take(at_tape_arena(j->tape), (size_t)j->B * sizeof *length);
    if (!length) {
        at_no_memory(at_tape_error(j->tape), "%lld lengths", (long long)j->B);
        return NULL;
    }
    for (int64_t b = 0; b < j->B; b++)
        length[b] = (at_real)length_of(j, b);
    at_tensor *S = at_leaf(j->tape, AT_SHAPE(j->B, 1, 1), length, NULL, false);
    at_tensor *hidden = at_tanh(at_heads_product(j->q, p[0], j->H, true)); /* [B,Q,H,A] */
    at_tensor *share = at_sigmoid(at_sum(at_mul(hidden, p[1]), 3));        /* [B,Q,H]; vp [A] or [H,A] */
    share = at_reshape(share, AT_SHAPE(j->B, j->Q, j->H, 1));
    return at_mul(at_reshape(at_swap_heads(share), AT_SHAPE(j->B, j->H, j->Q)), S);
}

/* |s - p| <= reach for whole s. With a NaN centre every key is seen, so that the output is NaN and not zero.
 */
static void around_centre(double centre, int64_t reach, int64_t *lo, int64_t *hi)
{
    everything(0, 0, lo, hi);
    if (isnan(centre))
        return;
    *lo = (int64_t)ceil(centre - (double)reach);
    *hi = (int64_t)floor(centre + (double)reach) + 1;
}

bool at_spans_build(at_job *j)
{
    const at_attention *a = &j->attention;
    const int64_t reach = a->argument[AT_WINDOW];
    const bool predicted = at_attention_predicts(a);
    j->centre = predicted ? centres(j) : NULL;
    j->sigma = predicted ? (at_real)reach / 2 : 0;
    if (predicted && !j->centre)
        return false;
    j->spans = (at_spans){.batch = j->B, .heads = predicted ? j->H : 1, .rows = j->Q};
    const int64_t count = j->spans.batch * j->spans.heads * j->spans.rows;
    j->spans.lo = at_arena_take(at_tape_arena(j->tape), (size_t)count * sizeof *j->spans.lo);
    j->spans.hi = at_arena_take(at_tape_arena(j->tape), (size_t)count * sizeof *j->spans.hi);
    if (!j->spans.lo || !j->spans.hi)
        return at_no_memory(at_tape_error(j->tape), "%lld spans", (long long)count);
    for (int64_t r = 0; r < count; r++) {
        const int64_t b = r / (j->spans.heads * j->Q), position = j->in.query_start + r % j->Q;
        int64_t lo, hi, length = length_of(j, b);
        if (j->in.packed && r % j->Q >= j->in.packed->query_count[b])
            length = 0; /* there is no such query */
        if (predicted)
            around_centre((double)j->centre->value[r], reach, &lo, &hi);
        else
            a->window->interval(position, reach, &lo, &hi);
        if (a->causal && hi > position + 1)
            hi = position + 1;
        j->spans.lo[r] = (int32_t)(lo < 0 ? 0 : lo > length ? length : lo);
        j->spans.hi[r] = (int32_t)(hi < 0 ? 0 : hi > length ? length : hi);
    }
    return true;
}
