/* The normalisers: scores e [B,H,Q,K] become weights w of the same shape, row by row, over the keys of the row's span.
 * Outside the span w is 0 and e is never read, so a NaN there stays there; an empty span has zeros and no
 * gradient.
 * Sums run in double whatever at_real is: the fused path is tested against these rows. */
#include <math.h>

#include "tape/block.h"
#include "tape/ops.h"

at_tensor *at_normalise(const at_op *op, at_tensor *e, const at_spans *spans, at_row_rule *row)
{
    if (!e || !at_spans_fit(op->name, e, spans))
        return NULL;
    at_spans *saved = at_keep(e->tape, spans, sizeof *saved);
    at_tensor *w = at_tensor_make(e->tape, e->shape);
    if (!w || !saved)
        return NULL;
    const int64_t B = e->shape.dim[0], H = e->shape.dim[1], Q = e->shape.dim[2], K = e->shape.dim[3];
    int64_t at = 0;
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < H; h++)
            for (int64_t i = 0; i < Q; i++, at += K) {
                int64_t r = at_span_row(spans, b, h, i);
                for (int64_t j = 0; j < K; j++)
                    w->value[at + j] = 0;
                if (spans->hi[r] > spans->lo[r])
                    row(e->value + at + spans->lo[r], w->value + at + spans->lo[r], spans->hi[r] - spans->lo[r]);
            }
    return at_record(e->tape, op, &w, 1, &e, 1, saved);
}

void at_normalise_back(at_node *node, at_row_rule_back *row)
{
    const at_spans *spans = node->saved;
    at_tensor *e = node->inputs[0], *w = node->outputs[0];
    const at_real *dw = w->grad;
    at_real *de = at_tensor_grad(e);
    if (!de || !dw)
        return;
    const int64_t B = e->shape.dim[0], H = e->shape.dim[1], Q = e->shape.dim[2], K = e->shape.dim[3];
    int64_t at = 0;
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < H; h++)
            for (int64_t i = 0; i < Q; i++, at += K) {
                int64_t r = at_span_row(spans, b, h, i), first = at + spans->lo[r], n = spans->hi[r] - spans->lo[r];
                if (n > 0)
                    row(e->value + first, w->value + first, dw + first, de + first, n);
            }
}

static double largest(const at_real *e, int64_t n)
{
    double most = e[0];
    for (int64_t j = 1; j < n; j++)
        most = e[j] > most ? e[j] : most;
    return most;
}

/* ---- softmax: w_j = exp(e_j - m) / sum_k exp(e_k - m), m = max e ---------------------------------------------------
 */

static void softmax_row(const at_real *e, at_real *w, int64_t n)
{
    double most = largest(e, n), sum = 0;
    for (int64_t j = 0; j < n; j++)
        sum += w[j] = AT_REAL(exp)((at_real)(e[j] - most));
    for (int64_t j = 0; j < n; j++)
        w[j] = (at_real)(w[j] / sum);
}

/* The Jacobian is diag(w) - w w^T:  de_j = w_j (dw_j - sum_k dw_k w_k). */
static void softmax_row_back(const at_real *e, const at_real *w, const at_real *dw, at_real *de, int64_t n)
{
    (void)e;
    double dot = 0;
    for (int64_t j = 0; j < n; j++)
        dot += (double)dw[j] * w[j];
    for (int64_t j = 0; j < n; j++)
        de[j] += (at_real)(w[j] * (dw[j] - dot));
}

static void softmax_backward(at_node *node)
{
    at_normalise_back(node, softmax_row_back);
}

static const at_op softmax_op = {"softmax", softmax_backward};

at_tensor *at_softmax(at_tensor *e, const at_spans *spans)
{
    return at_normalise(&softmax_op, e, spans, softmax_row);
}

/* ---- sparsemax: w_j = max(0, e_j - tau), tau such that sum w = 1 ---------------------------------------------------
 * Michelot's algorithm: tau of all candidates, drop those below it, again until none is dropped. Every pass but the
 * last drops at least one key, so it ends, and the end is exact. The largest score is 0 after the shift and its weight
 * at most 1, so tau >= -1 and only scores above -1 are candidates at all. */

static void sparsemax_row(const at_real *e, at_real *w, int64_t n)
{
    double most = largest(e, n), tau = -1;
    int64_t before, count = n + 1;
    do {
        before = count;
        count = 0;
        double sum = 0;
        for (int64_t j = 0; j < n; j++)
            if (e[j] - most > tau) {
                sum += e[j] - most;
                count++;
            }
        if (count > 0) /* only NaN scores leave no candidate */
            tau = (sum - 1) / (double)count;
    } while (0 < count && count < before);
    for (int64_t j = 0; j < n; j++) {
        double p = e[j] - most - tau;
        w[j] = p < 0 ? 0 : (at_real)p;
    }
}

/* On the support S = {w > 0}:  de_j = dw_j - mean_S dw. */
static void sparsemax_row_back(const at_real *e, const at_real *w, const at_real *dw, at_real *de, int64_t n)
{
    (void)e;
    double sum = 0;
    int64_t count = 0;
    for (int64_t j = 0; j < n; j++)
        if (w[j] > 0) {
            sum += dw[j];
            count++;
        }
    for (int64_t j = 0; j < n; j++)
        if (w[j] > 0)
            de[j] += (at_real)(dw[j] - sum / (double)count);
}

static void sparsemax_backward(at_node *node)
{
    at_normalise_back(node, sparsemax_row_back);
}

static const at_op sparsemax_op = {"sparsemax", sparsemax_backward};

at_tensor *at_sparsemax(at_tensor *e, const at_spans *spans)
{
    return at_normalise(&sparsemax_op, e, spans, sparsemax_row);
}

/* ---- entmax15: w_j = max(0, z_j - tau)^2, z = e/2, tau such that sum w = 1 -----------------------------------------
 * f(tau) = sum_j max(0, z_j - tau)^2 - 1 is convex and falls, so Newton's steps from a tau left of the root climb to it
 * without overshoot; once the support is right they converge quadratically. With max z shifted to 0, f(-1) >= 0. */

static void entmax15_row(const at_real *e, at_real *w, int64_t n)
{
    enum { MOST_STEPS = 200 }; /* far more than the some 30 that a million keys take */
    double most = largest(e, n), tau = -1;
    for (int step = 0; step < MOST_STEPS; step++) {
        double squares = 0, sum = 0;
        for (int64_t j = 0; j < n; j++) {
            double s = (e[j] - most) / 2 - tau;
            if (s > 0) {
                squares += s * s;
                sum += s;
            }
        }
        double next = tau + (squares - 1) / (2 * sum);
        if (!(next > tau))
            break;
        tau = next;
    }
    for (int64_t j = 0; j < n; j++) {
        double s = (e[j] - most) / 2 - tau;
        w[j] = s < 0 ? 0 : (at_real)(s * s);
    }
}

/* With s = sqrt(w):  de_j = s_j (dw_j - sum_k s_k dw_k / sum_k s_k). */
static void entmax15_row_back(const at_real *e, const at_real *w, const at_real *dw, at_real *de, int64_t n)
{
    (void)e;
    double dot = 0, sum = 0;
    for (int64_t j = 0; j < n; j++) {
        double s = sqrt((double)w[j]);
        dot += s * dw[j];
        sum += s;
    }
    for (int64_t j = 0; j < n; j++)
        de[j] += (at_real)(sqrt((double)w[j]) * (dw[j] - dot / sum));
}

static void entmax15_backward(at_node *node)
{
    at_normalise_back(node, entmax15_row_back);
}

static const at_op entmax15_op = {"entmax15", entmax15_backward};

at_tensor *at_entmax15(at_tensor *e, const at_spans *spans)
{
    return at_normalise(&entmax15_op, e, spans, entmax15_row);
}

/* ---- sigmoid: w_j = 1 / (1 + exp(-e_j)), each key for itself
 * --------------------------------------------------------- */

static void sigmoid_row(const at_real *e, at_real *w, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        w[j] = 1 / (1 + AT_REAL(exp)(-e[j]));
}

/* de_j = dw_j w_j (1 - w_j) */
static void sigmoid_row_back(const at_real *e, const at_real *w, const at_real *dw, at_real *de, int64_t n)
{
    (void)e;
    for (int64_t j = 0; j < n; j++)
        de[j] += dw[j] * w[j] * (1 - w[j]);
}

static void sigmoid_backward(at_node *node)
{
    at_normalise_back(node, sigmoid_row_back);
}

static const at_op sigmoid_span_op = {"sigmoid_span", sigmoid_backward};

at_tensor *at_sigmoid_span(at_tensor *e, const at_spans *spans)
{
    return at_normalise(&sigmoid_span_op, e, spans, sigmoid_row);
}

/* ---- relu: w_j = max(0, e_j) / sum_k max(0, e_k); a row without a positive score stays zero
 * -------------------------- */

static double positive_sum(const at_real *e, int64_t n)
{
    double sum = 0;
    for (int64_t j = 0; j < n; j++)
        sum += e[j] < 0 ? 0 : e[j];
    return sum;
}

static void relu_row(const at_real *e, at_real *w, int64_t n)
{
    double sum = positive_sum(e, n);
    if (sum == 0)
        return;
    for (int64_t j = 0; j < n; j++)
        w[j] = e[j] < 0 ? 0 : (at_real)(e[j] / sum);
}

/* Where e_j > 0:  de_j = (dw_j - sum_k dw_k w_k) / sum_k max(0, e_k). */
static void relu_row_back(const at_real *e, const at_real *w, const at_real *dw, at_real *de, int64_t n)
{
    double sum = positive_sum(e, n), dot = 0;
    if (sum == 0)
        return;
    for (int64_t j = 0; j < n; j++)
        dot += (double)dw[j] * w[j];
    for (int64_t j = 0; j < n; j++)
        if (e[j] > 0)
            de[j] += (at_real)((dw[j] - dot) / sum);
}

static void relu_backward(at_node *node)
{
    at_normalise_back(node, relu_row_back);
}

static const at_op relu_span_op = {"relu_span", relu_backward};

at_tensor *at_relu_span(at_tensor *e, const at_spans *spans)
{
    return at_normalise(&relu_span_op, e, spans, relu_row);
}

/* ---- hard: w is one-hot at c; log_prob = e_c - log sum_k exp(e_k) ----
 * c = argmax_j e_j, or argmax_j (e_j + g_j) with g_j = -log(-log(u_j)), u_j uniform: then c is a sample of the softmax.
 * Where the softmax is NaN, because a score is, there is no such choice: w_c and log_prob are NaN, c the first NaN.
 * The one-hot passes no gradient, so only log_prob is recorded:
 *   de_j += dlog_prob ([j = c] - softmax(e)_j) */

typedef struct hard_saved {
    at_spans spans;
    int32_t *chosen; /* [B,H,Q], -1 in an empty row */
} hard_saved;

static void hard_backward(at_node *node)
{
    const hard_saved *saved = node->saved;
    at_tensor *e = node->inputs[0];
    const at_real *dlog = node->outputs[0]->grad;
    at_real *de = at_tensor_grad(e);
    if (!de || !dlog)
        return;
    const int64_t H = e->shape.dim[1], Q = e->shape.dim[2], K = e->shape.dim[3];
    for (int64_t row = 0; row < e->shape.dim[0] * H * Q; row++) {
        int64_t r = at_span_row(&saved->spans, row / (H * Q), row / Q % H, row % Q);
        int64_t lo = saved->spans.lo[r], hi = saved->spans.hi[r];
        if (hi <= lo)
            continue;
        const at_real *s = e->value + row * K;
        double most = largest(s + lo, hi - lo), sum = 0;
        for (int64_t j = lo; j < hi; j++)
            sum += exp(s[j] - most);
        for (int64_t j = lo; j < hi; j++)
            de[row * K + j] += (at_real)(dlog[row] * ((j == saved->chosen[row]) - exp(s[j] - most) / sum));
    }
}

static const at_op hard_op = {"hard", hard_backward};

at_tensor *at_hard(at_tensor *e, const at_spans *spans, bool sample, uint64_t seed, at_tensor **log_prob)
{
    if (log_prob)
        *log_prob = NULL;
    if (!e || !at_spans_fit("hard", e, spans))
        return NULL;
    const int64_t B = e->shape.dim[0], H = e->shape.dim[1], Q = e->shape.dim[2], K = e->shape.dim[3];
    hard_saved *saved = at_room(e->tape, sizeof *saved);
    int32_t *chosen = at_room(e->tape, (size_t)(B * H * Q) * sizeof *chosen);
    at_tensor *w = at_tensor_make(e->tape, e->shape);
    at_tensor *logs = at_tensor_make(e->tape, AT_SHAPE(B, H, Q));
    if (!saved || !chosen || !w || !logs)
        return NULL;
    *saved = (hard_saved){.spans = *spans, .chosen = chosen};
    for (int64_t row = 0; row < B * H * Q; row++) {
        int64_t r = at_span_row(spans, row / (H * Q), row / Q % H, row % Q);
        int64_t lo = spans->lo[r], hi = spans->hi[r];
        const at_real *s = e->value + row * K;
        for (int64_t j = 0; j < K; j++)
            w->value[row * K + j] = 0;
        logs->value[row] = 0;
        chosen[row] = -1;
        if (hi <= lo)
            continue;
        double best = 0;
        for (int64_t j = lo; j < hi; j++) {
            double g = sample ? -log(-log(at_uniform_at(seed, (uint64_t)row, (uint64_t)j))) : 0, value = s[j] + g;
            if (j == lo || value > best || (isnan(value) && !isnan(best))) {
                best = value;
                chosen[row] = (int32_t)j;
            }
        }
        double most = largest(s + lo, hi - lo), sum = 0;
        for (int64_t j = lo; j < hi; j++)
            sum += exp(s[j] - most);
        w->value[row * K + chosen[row]] = isnan(sum) ? (at_real)sum : 1;
        logs->value[row] = (at_real)(s[chosen[row]] - most - log(sum));
    }
    at_tensor *recorded = at_record(e->tape, &hard_op, &logs, 1, &e, 1, saved);
    if (log_prob)
        *log_prob = recorded;
    return recorded ? w : NULL;
}
