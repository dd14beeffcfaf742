/* The additive score of one query, in vectors, with or without a second term of each key that changes from query to query, as
 * coverage has it. */
#include <string.h>

#include "kernels/isa.h"
#include "kernels/tile.h"
#include "tape/block.h"
#include "tape/ops.h"

/* ---- covered: e_bhj = sum_a v_a act(q_bha + k_bhja + f_(first_b + j)ha), one query for each row of the batch ----
 *
 * The terms lie without padding, those of row b from first_b on; there may be none. A key outside the span is neither read nor given a
 * gradient. Rows of the batch are divided among the threads; each has its own sum for dv, and these are added in their order. */

typedef struct covered {
    int64_t B, H, K, A;
    const int64_t *first; /* [B]; NULL: there are no terms */
    at_spans spans;
    at_act act;
    bool shared; /* v [A], not [H,A] */
    const at_real *q, *k, *f, *v;
    at_real *e; /* forward: the scores; backward: their gradient */
    at_real *dq, *dk, *df, *dv;
    bool df_add;
} covered;

/* Head h of row b, its keys from the span's first on. */
static tile_covered job_of(const covered *c, int64_t b, int64_t h, int64_t *lo, int64_t *hi)
{
    const int64_t r = at_span_row(&c->spans, b, h, 0), row = c->H * c->A;
    *lo = c->spans.lo[r];
    *hi = c->spans.hi[r] > *lo ? c->spans.hi[r] : *lo;
    const int64_t q = (b * c->H + h) * c->A, k = (q / c->A * c->K + *lo) * c->A;
    const int64_t f = c->first ? (c->first[b] + *lo) * row + h * c->A : 0;
    return (tile_covered){.keys = *hi - *lo,
                          .size = c->A,
                          .q = c->q + q,
                          .v = c->v + (c->shared ? 0 : h * c->A),
                          .k = c->k + k,
                          .f = c->f ? c->f + f : NULL,
                          .k_row = c->A,
                          .f_row = row,
                          .act = c->act,
                          .dq = c->dq ? c->dq + q : NULL,
                          .dv = c->dv ? c->dv + q : NULL,
                          .dk = c->dk ? c->dk + k : NULL,
                          .df = c->df ? c->df + f : NULL,
                          .df_add = c->df_add};
}

static void score_rows(void *context, int64_t from, int64_t to)
{
    const covered *c = context;
    for (int64_t i = from * c->H; i < to * c->H; i++) {
        int64_t lo, hi;
        const tile_covered job = job_of(c, i / c->H, i % c->H, &lo, &hi);
        at_real *e = c->e + i * c->K;
        memset(e, 0, (size_t)lo * sizeof *e);
        at_isa()->tile->covered(&job, e + lo);
        memset(e + hi, 0, (size_t)(c->K - hi) * sizeof *e);
    }
}

static void score_rows_back(void *context, int64_t from, int64_t to)
{
    const covered *c = context;
    for (int64_t i = from * c->H; i < to * c->H; i++) {
        int64_t lo, hi;
        const tile_covered job = job_of(c, i / c->H, i % c->H, &lo, &hi);
        at_isa()->tile->covered_back(&job, c->e + i * c->K + lo);
    }
}

/* Does every term belong to a key of some span, so that df is written as a whole? */
static bool all_seen(const covered *c, int64_t terms)
{
    int64_t seen = 0;
    for (int64_t b = 0; b < c->B; b++) {
        const int64_t r = at_span_row(&c->spans, b, 0, 0);
        seen += c->spans.hi[r] > c->spans.lo[r] ? c->spans.hi[r] - c->spans.lo[r] : 0;
    }
    return seen == terms && c->spans.heads == 1;
}

static void covered_backward(at_node *node)
{
    covered c = *(const covered *)node->saved;
    at_tensor *q = node->inputs[0], *k = node->inputs[1], *v = node->inputs[2], *f = c.first ? node->inputs[3] : NULL;
    at_tape *tape = q->tape;
    c.q = q->value;
    c.k = k->value;
    c.f = f ? f->value : NULL;
    c.v = v->value;
    c.e = node->outputs[0]->grad;
    c.dq = at_tensor_grad(q);
    c.dk = at_tensor_grad(k);
    c.df_add = true;
    if (f)
        c.df = all_seen(&c, f->shape.dim[0]) ? at_tensor_grad_over(f, &c.df_add) : at_tensor_grad(f);
    at_real *dv = at_tensor_grad(v);
    at_mark mark = at_arena_mark(at_tape_arena(tape));
    const int64_t count = c.B * c.H * c.A;
    c.dv = dv ? at_room(tape, (size_t)count * sizeof *c.dv) : NULL; /* [B,H,A] */
    if (c.dv)
        memset(c.dv, 0, (size_t)count * sizeof *c.dv);
    if (at_tape_ok(tape))
        at_ranges(c.B, c.H * c.K * c.A, score_rows_back, &c);
    for (int64_t i = 0; c.dv && i < count; i++)
        dv[i % (c.shared ? c.A : c.H * c.A)] += c.dv[i];
    at_arena_release(at_tape_arena(tape), mark);
}

static const at_op covered_op = {"covered", covered_backward};

at_tensor *at_covered(at_tensor *q, at_tensor *k, at_tensor *f, const int64_t *first, at_tensor *v, at_act act,
                      const at_spans *spans)
{
    if (!q || !k || (first && !f) || !v)
        return NULL;
    at_tape *tape = q->tape;
    const int64_t *n = k->shape.dim, A = k->shape.rank == 4 ? n[3] : 0;
    const bool shared = at_shape_same(v->shape, AT_SHAPE(A));
    if (k->shape.rank != 4 || !at_shape_same(q->shape, AT_SHAPE(n[0], n[1], 1, A)) ||
        (first && (f->shape.rank != 2 || f->shape.dim[1] != n[1] * A)) ||
        (!shared && !at_shape_same(v->shape, AT_SHAPE(n[1], A))))
        return AT_REFUSE(
            tape, AT_SHAPE,
            "covered: needs q [B,H,1,A], k [B,H,K,A], terms [cells,H*A] and v [A] or [H,A], has %s, %s, %s and %s",
            AT_TEXT(q->shape), AT_TEXT(k->shape), first ? AT_TEXT(f->shape) : "none", AT_TEXT(v->shape));
    at_tensor *e = at_tensor_make(tape, AT_SHAPE(n[0], n[1], 1, n[2]));
    covered c = {
        .B = n[0], .H = n[1], .K = n[2], .A = A, .first = first, .spans = *spans, .act = act, .shared = shared};
    if (!e || !at_spans_fit("covered", e, spans))
        return NULL;
    for (int64_t b = 0; b < c.B && first; b++)
        for (int64_t h = 0; h < c.spans.heads; h++)
            if (first[b] + spans->hi[at_span_row(spans, b, h, 0)] > f->shape.dim[0])
                return AT_REFUSE(tape, AT_SHAPE, "covered: row %lld has keys beyond the %lld terms", (long long)b,
                                 (long long)f->shape.dim[0]);
    void *saved = at_keep(tape, &c, sizeof c);
    c.q = q->value;
    c.k = k->value;
    c.f = first ? f->value : NULL;
    c.v = v->value;
    c.e = e->value;
    at_ranges(c.B, c.H * c.K * A, score_rows, &c);
    return at_record_one(&covered_op, e, (at_tensor *[]){q, k, v, f}, first ? 4 : 3, saved);
}
