/* Products between queries and keys, row by row over each row's span. A key outside the span is neither read nor given
 * a gradient, so whatever lies there (padding, NaN) stays there. G key heads serve H query heads: head h reads key head
 * h / (H/G). Plain loops: the fused path is tested against them. */
#include "kernels/activate.h"
#include "tape/block.h"
#include "tape/ops.h"

/* Do the spans cover e's rows and stay inside its keys? e is [B,H,Q,K]. */
bool at_spans_fit(const char *op, at_tensor *e, const at_spans *spans)
{
    at_error *error = at_tape_error(e->tape);
    const char *shape = AT_TEXT(e->shape);
    if (e->shape.rank != 4)
        return at_fail(error, AT_SHAPE, "%s: needs [B,H,Q,K], has %s", op, shape);
    const int64_t *dim = e->shape.dim;
    if (spans->batch != dim[0] || (spans->heads != 1 && spans->heads != dim[1]) || spans->rows != dim[2])
        return at_fail(error, AT_SHAPE, "%s: spans [%lld,%lld,%lld] do not cover the rows of %s", op,
                       (long long)spans->batch, (long long)spans->heads, (long long)spans->rows, shape);
    for (int64_t r = 0; r < spans->batch * spans->heads * spans->rows; r++)
        if (spans->hi[r] > spans->lo[r] && (spans->lo[r] < 0 || spans->hi[r] > dim[3]))
            return at_fail(error, AT_SHAPE, "%s: the span [%d,%d) exceeds the %lld keys", op, (int)spans->lo[r],
                           (int)spans->hi[r], (long long)dim[3]);
    return true;
}

/* The sizes every product here shares, and a walk over its rows. */
typedef struct sizes {
    int64_t B, H, G, Q, K;
    at_spans spans;
} sizes;

/* One query row: its index in [B,H,Q], its head, the index of its key head in [B,G], its span. */
typedef struct query_row {
    int64_t row, head, key_head, lo, hi;
} query_row;

static int64_t row_count(const sizes *s)
{
    return s->B * s->H * s->Q;
}

static query_row query_row_of(const sizes *s, int64_t row)
{
    int64_t b = row / (s->H * s->Q), h = row / s->Q % s->H;
    int64_t r = at_span_row(&s->spans, b, h, row % s->Q);
    return (query_row){row, h, b * s->G + h / (s->H / s->G), s->spans.lo[r], s->spans.hi[r]};
}

/* x [B,H,Q,·] against y [B,G,K,·]: B equal, G divides H, the spans fit [B,H,Q,K]. NULL with an error message if not. */
static sizes *sizes_of(const char *op, at_tensor *x, at_tensor *y, const at_spans *spans)
{
    at_tape *tape = x->tape;
    if (x->shape.rank != 4 || y->shape.rank != 4)
        return AT_REFUSE(tape, AT_SHAPE, "%s: needs [B,H,Q,size] and [B,G,K,size], has %s and %s", op,
                         AT_TEXT(x->shape), AT_TEXT(y->shape));
    const int64_t *dx = x->shape.dim, *dy = y->shape.dim;
    if (dx[0] != dy[0] || dy[1] < 1 || dx[1] % dy[1] != 0)
        return AT_REFUSE(tape, AT_SHAPE,
                         "%s: the batches must be equal and the key heads divide the query heads (%s with %s)", op,
                         AT_TEXT(x->shape), AT_TEXT(y->shape));
    at_tensor rows = {.tape = tape, .shape = AT_SHAPE(dx[0], dx[1], dx[2], dy[2])};
    if (!at_spans_fit(op, &rows, spans))
        return NULL;
    return at_keep(tape, &(sizes){dx[0], dx[1], dy[1], dx[2], dy[2], *spans}, sizeof(sizes));
}

/* ---- span_dot: e_ij = q_i . k_j inside the span, 0 outside ---- */

static void span_dot_backward(at_node *node)
{
    const sizes *s = node->saved;
    at_tensor *q = node->inputs[0], *k = node->inputs[1];
    const int64_t D = q->shape.dim[3];
    at_real *dq = at_tensor_grad(q), *dk = at_tensor_grad(k);
    /* dq_i += de_ij k_j,  dk_j += de_ij q_i */
    for (int64_t row = 0; row < row_count(s); row++) {
        query_row p = query_row_of(s, row);
        const at_real *de = node->outputs[0]->grad + row * s->K, *qi = q->value + row * D;
        for (int64_t j = p.lo; j < p.hi; j++) {
            int64_t key = (p.key_head * s->K + j) * D;
            for (int64_t d = 0; dq && d < D; d++)
                dq[row * D + d] += de[j] * k->value[key + d];
            for (int64_t d = 0; dk && d < D; d++)
                dk[key + d] += de[j] * qi[d];
        }
    }
}

static const at_op span_dot_op = {"span_dot", span_dot_backward};

at_tensor *at_span_dot(at_tensor *q, at_tensor *k, const at_spans *spans)
{
    if (!q || !k)
        return NULL;
    const sizes *s = sizes_of("span_dot", q, k, spans);
    if (!s)
        return NULL;
    const int64_t D = q->shape.dim[3];
    if (k->shape.dim[3] != D) {
        at_fail(at_tape_error(q->tape), AT_SHAPE, "span_dot: query size %lld and key size %lld differ", (long long)D,
                (long long)k->shape.dim[3]);
        return NULL;
    }
    at_tensor *e = at_tensor_make(q->tape, AT_SHAPE(s->B, s->H, s->Q, s->K));
    if (!e)
        return NULL;
    for (int64_t row = 0; row < row_count(s); row++) {
        query_row p = query_row_of(s, row);
        for (int64_t j = 0; j < s->K; j++) {
            at_real sum = 0;
            if (p.lo <= j && j < p.hi)
                for (int64_t d = 0; d < D; d++)
                    sum += q->value[row * D + d] * k->value[(p.key_head * s->K + j) * D + d];
            e->value[row * s->K + j] = sum;
        }
    }
    return at_record(q->tape, &span_dot_op, &e, 1, (at_tensor *[]){q, k}, 2, (void *)s);
}

/* ---- span_sum: c_i = sum_j w_ij v_j over the span ---- */

static void span_sum_backward(at_node *node)
{
    const sizes *s = node->saved;
    at_tensor *w = node->inputs[0], *v = node->inputs[1];
    const int64_t Dv = v->shape.dim[3];
    at_real *dw = at_tensor_grad(w), *dv = at_tensor_grad(v);
    /* dw_ij += dc_i . v_j,  dv_j += w_ij dc_i */
    for (int64_t row = 0; row < row_count(s); row++) {
        query_row p = query_row_of(s, row);
        const at_real *dc = node->outputs[0]->grad + row * Dv;
        for (int64_t j = p.lo; j < p.hi; j++) {
            int64_t key = (p.key_head * s->K + j) * Dv;
            at_real sum = 0, wij = w->value[row * s->K + j];
            for (int64_t d = 0; dw && d < Dv; d++)
                sum += dc[d] * v->value[key + d];
            if (dw)
                dw[row * s->K + j] += sum;
            for (int64_t d = 0; dv && d < Dv; d++)
                dv[key + d] += wij * dc[d];
        }
    }
}

static const at_op span_sum_op = {"span_sum", span_sum_backward};

at_tensor *at_span_sum(at_tensor *w, at_tensor *v, const at_spans *spans)
{
    if (!w || !v)
        return NULL;
    const sizes *s = sizes_of("span_sum", w, v, spans);
    if (!s)
        return NULL;
    const int64_t Dv = v->shape.dim[3];
    if (w->shape.dim[3] != s->K) {
        at_fail(at_tape_error(w->tape), AT_SHAPE, "span_sum: weights of %lld keys meet %lld values",
                (long long)w->shape.dim[3], (long long)s->K);
        return NULL;
    }
    at_tensor *c = at_tensor_make(w->tape, AT_SHAPE(s->B, s->H, s->Q, Dv));
    if (!c)
        return NULL;
    for (int64_t row = 0; row < row_count(s); row++) {
        query_row p = query_row_of(s, row);
        at_real *ci = c->value + row * Dv;
        for (int64_t d = 0; d < Dv; d++)
            ci[d] = 0;
        for (int64_t j = p.lo; j < p.hi; j++)
            for (int64_t d = 0; d < Dv; d++)
                ci[d] += w->value[row * s->K + j] * v->value[(p.key_head * s->K + j) * Dv + d];
    }
    return at_record(w->tape, &span_sum_op, &c, 1, (at_tensor *[]){w, v}, 2, (void *)s);
}

/* ---- additive: e_ij = sum_a v_a act(qa_ia + ka_ja), without the [Q,K,A] tensor ---- */

typedef struct additive_saved {
    sizes s;
    at_act act;
} additive_saved;

static void additive_backward(at_node *node)
{
    const additive_saved *saved = node->saved;
    const sizes *s = &saved->s;
    at_tensor *qa = node->inputs[0], *ka = node->inputs[1], *v = node->inputs[2];
    const int64_t A = qa->shape.dim[3];
    at_real *dqa = at_tensor_grad(qa), *dka = at_tensor_grad(ka), *dv = at_tensor_grad(v);
    /* with y = act(qa_ia + ka_ja):  dv_a += de_ij y,  dqa_ia += de_ij v_a act'(y),  dka_ja the same */
    for (int64_t row = 0; row < row_count(s); row++) {
        query_row p = query_row_of(s, row);
        int64_t vh = v->shape.rank == 2 ? p.head * A : 0;
        for (int64_t j = p.lo; j < p.hi; j++) {
            at_real de = node->outputs[0]->grad[row * s->K + j];
            int64_t key = (p.key_head * s->K + j) * A;
            for (int64_t a = 0; a < A; a++) {
                at_real y = at_act_value(saved->act, qa->value[row * A + a] + ka->value[key + a]);
                at_real dx = de * v->value[vh + a] * at_act_slope(saved->act, y);
                if (dv)
                    dv[vh + a] += de * y;
                if (dqa)
                    dqa[row * A + a] += dx;
                if (dka)
                    dka[key + a] += dx;
            }
        }
    }
}

static const at_op additive_op = {"additive", additive_backward};

at_tensor *at_additive(at_tensor *qa, at_tensor *ka, at_tensor *v, at_act act, const at_spans *spans)
{
    if (!qa || !ka || !v)
        return NULL;
    const sizes *s = sizes_of("additive", qa, ka, spans);
    if (!s)
        return NULL;
    const int64_t A = qa->shape.dim[3];
    const at_shape one = AT_SHAPE(A), each = AT_SHAPE(s->H, A);
    if (ka->shape.dim[3] != A || (!at_shape_same(v->shape, one) && !at_shape_same(v->shape, each)))
        return AT_REFUSE(qa->tape, AT_SHAPE,
                         "additive: the last sizes of %s, %s and v %s must be equal, v [A] or [H,A]",
                         AT_TEXT(qa->shape), AT_TEXT(ka->shape), AT_TEXT(v->shape));
    additive_saved *saved = at_keep(qa->tape, &(additive_saved){*s, act}, sizeof *saved);
    at_tensor *e = at_tensor_make(qa->tape, AT_SHAPE(s->B, s->H, s->Q, s->K));
    if (!saved || !e)
        return NULL;
    for (int64_t row = 0; row < row_count(s); row++) {
        query_row p = query_row_of(s, row);
        const at_real *vh = v->value + (v->shape.rank == 2 ? p.head * A : 0);
        for (int64_t j = 0; j < s->K; j++) {
            at_real sum = 0;
            if (p.lo <= j && j < p.hi)
                for (int64_t a = 0; a < A; a++)
                    sum +=
                        vh[a] * at_act_value(act, qa->value[row * A + a] + ka->value[(p.key_head * s->K + j) * A + a]);
            e->value[row * s->K + j] = sum;
        }
    }
    return at_record(qa->tape, &additive_op, &e, 1, (at_tensor *[]){qa, ka, v}, 3, saved);
}

/* ---- seen: the keys that some row sees, zeros for the others ----
 * A product with a parameter (U k, W_K k) multiplies every key in the parameter's gradient: 0 x NaN would leak from a
 * key that nobody sees. Zeroed first, it cannot. */

static void seen_backward(at_node *node)
{
    const bool *seen = node->saved;
    at_tensor *x = node->inputs[0];
    at_real *dx = at_tensor_grad(x);
    const int64_t rows = x->shape.dim[0] * x->shape.dim[1], width = at_shape_count(x->shape) / rows;
    for (int64_t r = 0; dx && r < rows; r++)
        for (int64_t d = 0; seen[r] && d < width; d++)
            dx[r * width + d] += node->outputs[0]->grad[r * width + d];
}

static const at_op seen_op = {"seen", seen_backward};

at_tensor *at_seen(at_tensor *x, const at_spans *spans)
{
    if (!x)
        return NULL;
    if (x->shape.rank < 2 || x->shape.dim[0] != spans->batch)
        return AT_REFUSE(x->tape, AT_SHAPE, "seen: needs [%lld,K,...], has %s", (long long)spans->batch,
                         AT_TEXT(x->shape));
    const int64_t B = x->shape.dim[0], K = x->shape.dim[1], each = spans->heads * spans->rows;
    at_arena *arena = at_tape_arena(x->tape);
    bool *seen = at_room(x->tape, (size_t)(B * K) + 1);
    at_mark mark = at_arena_mark(arena);
    int64_t *rises = at_room(x->tape, (size_t)(K + 1) * sizeof *rises);
    if (!seen || !rises)
        return NULL;
    /* Every span raises the count of its keys by one: +1 where it starts, -1 where it ends, then the running sum. */
    int64_t missing = 0;
    for (int64_t b = 0; b < B; b++) {
        for (int64_t j = 0; j <= K; j++)
            rises[j] = 0;
        for (int64_t r = b * each; r < (b + 1) * each; r++)
            if (spans->hi[r] > spans->lo[r]) {
                rises[spans->lo[r]]++;
                rises[spans->hi[r]]--;
            }
        for (int64_t j = 0, count = 0; j < K; j++) {
            count += rises[j];
            seen[b * K + j] = count > 0;
            missing += count == 0;
        }
    }
    at_arena_release(arena, mark);
    if (missing == 0)
        return x;
    at_tensor *y = at_tensor_make(x->tape, x->shape);
    if (!y)
        return NULL;
    const int64_t width = at_shape_count(x->shape) / (B * K);
    for (int64_t r = 0; r < B * K; r++)
        for (int64_t d = 0; d < width; d++)
            y->value[r * width + d] = seen[r] ? x->value[r * width + d] : 0;
    return at_record(x->tape, &seen_op, &y, 1, &x, 1, seen);
}
