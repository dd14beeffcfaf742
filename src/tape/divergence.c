/* The divergence of two softmaxes. */
#include <math.h>

#include "kernels/isa.h"
#include "kernels/passes.h"
#include "tape/block.h"
#include "tape/ops.h"

/* ---- divergence: the sum over the rows n of KL(p || q) + KL(q || p), p = softmax(x_n), q = softmax(y_n) ----
 *
 * With d_v = log p_v - log q_v, K_p = sum_v p_v d_v and K_q = -sum_v q_v d_v, a row's value is K_p + K_q, and
 *
 *     dx_v = g (p_v (d_v - K_p) + p_v - q_v),   dy_v = g (q_v (-d_v - K_q) + q_v - p_v)
 *
 * A row that is not finite has NaN. Rows that do not count are not read. */

typedef struct side {
    at_real max, log_sum, factor; /* log p_v = z_v - max - log_sum, p_v = factor e^(z_v - max) */
    at_real divergence;           /* K */
} side;

typedef struct divergence {
    int64_t size;
    const int32_t *counted; /* [N] not where it is below 0 */
    const at_real *z[2];    /* [N,V] */
    side *sides;            /* [N,2] */
    double *values;         /* [N] */
    at_real g, *grad[2];    /* the backward pass; a side that wants no gradient: NULL */
} divergence;

enum { COLUMNS = 256 }; /* of a row at a time, so that their probabilities need little room */

/* Probabilities p and q, and d, of `count` columns from `from` on. */
typedef struct columns {
    at_real p[COLUMNS], q[COLUMNS], d[COLUMNS];
    int64_t count;
} columns;

static void compute_columns(const divergence *job, int64_t row, int64_t from, columns *c)
{
    const at_real *x = job->z[0] + row * job->size + from, *y = job->z[1] + row * job->size + from;
    const side *a = job->sides + row * 2, *b = a + 1;
    c->count = job->size - from < COLUMNS ? job->size - from : COLUMNS;
    at_isa()->passes->softmax_back(c->p, x, c->count, a->max, a->factor, 0, false);
    at_isa()->passes->softmax_back(c->q, y, c->count, b->max, b->factor, 0, false);
    for (int64_t v = 0; v < c->count; v++)
        c->d[v] = (x[v] - a->max - a->log_sum) - (y[v] - b->max - b->log_sum);
}

static void divergence_range(void *context, int64_t from, int64_t to)
{
    const divergence *job = context;
    columns c;
    for (int64_t row = from; row < to; row++) {
        side *sides = job->sides + row * 2;
        double sum[2] = {0};
        job->values[row] = 0;
        if (job->counted[row] < 0)
            continue;
        for (int i = 0; i < 2; i++) {
            const log_sum_row l = at_isa()->passes->log_sum(job->z[i] + row * job->size, job->size);
            sides[i] = (side){.max = l.max, .log_sum = (at_real)log(l.sum), .factor = (at_real)(1 / l.sum)};
        }
        for (int64_t first = 0; first < job->size; first += c.count) {
            compute_columns(job, row, first, &c);
            for (int64_t v = 0; v < c.count; v++) {
                sum[0] += (double)c.p[v] * (double)c.d[v];
                sum[1] -= (double)c.q[v] * (double)c.d[v];
            }
        }
        sides[0].divergence = (at_real)sum[0];
        sides[1].divergence = (at_real)sum[1];
        job->values[row] = sum[0] + sum[1];
    }
}

static void divergence_back_range(void *context, int64_t from, int64_t to)
{
    const divergence *job = context;
    const at_real g = job->g;
    columns c;
    for (int64_t row = from; row < to; row++) {
        const side *a = job->sides + row * 2, *b = a + 1;
        if (job->counted[row] < 0)
            continue;
        for (int64_t first = 0; first < job->size; first += c.count) {
            at_real *dx = job->grad[0] ? job->grad[0] + row * job->size + first : NULL;
            at_real *dy = job->grad[1] ? job->grad[1] + row * job->size + first : NULL;
            compute_columns(job, row, first, &c);
            for (int64_t v = 0; dx && v < c.count; v++)
                dx[v] += g * (c.p[v] * (c.d[v] - a->divergence) + c.p[v] - c.q[v]);
            for (int64_t v = 0; dy && v < c.count; v++)
                dy[v] += g * (c.q[v] * (-c.d[v] - b->divergence) + c.q[v] - c.p[v]);
        }
    }
}

static void divergence_backward(at_node *node)
{
    divergence job = *(const divergence *)node->saved;
    job.g = *node->outputs[0]->grad;
    for (int i = 0; i < 2; i++)
        job.grad[i] = at_tensor_grad(node->inputs[i]);
    at_ranges(node->inputs[0]->shape.dim[0], 2 * job.size, divergence_back_range, &job);
}

static const at_op divergence_op = {"divergence", divergence_backward};

at_tensor *at_divergence(at_tensor *x, at_tensor *y, const int32_t *counted)
{
    if (!x || !y)
        return NULL;
    at_tape *tape = x->tape;
    if (x->shape.rank != 2 || x->shape.dim[1] < 1 || !at_shape_same(x->shape, y->shape))
        return AT_REFUSE(tape, AT_SHAPE, "divergence: the logits are %s and %s and must both be [N,V]",
                         AT_TEXT(x->shape), AT_TEXT(y->shape));
    const int64_t rows = x->shape.dim[0], size = x->shape.dim[1];
    at_tensor *sum = at_tensor_make(tape, AT_SHAPE(1));
    divergence job = {.size = size,
                      .counted = at_keep(tape, counted, (size_t)rows * sizeof *counted),
                      .z = {x->value, y->value},
                      .sides = at_room(tape, (size_t)rows * 2 * sizeof *job.sides),
                      .values = at_room(tape, (size_t)rows * sizeof *job.values)};
    void *saved = at_keep(tape, &job, sizeof job);
    if (!sum || !saved)
        return NULL;
    at_ranges(rows, 2 * size, divergence_range, &job);
    double total = 0;
    for (int64_t i = 0; i < rows; i++)
        total += job.values[i];
    *sum->value = (at_real)total;
    return at_record_one(&divergence_op, sum, (at_tensor *[]){x, y}, 2, saved);
}
