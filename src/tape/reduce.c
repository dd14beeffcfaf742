/* Sums and means. x is [outer, n, inner] around the axis; every sum is one thread's, in one order. */
#include <string.h>

#include "tape/block.h"
#include "tape/ops.h"

/* ---- What they share: y = factor * sum over the axis ---- */

typedef struct reduction {
    int64_t outer, n, inner;
    at_real factor; /* 1, or 1/n for the mean */
    at_real *to;
    const at_real *from;
} reduction;

static void reduce_range(void *context, int64_t from, int64_t to)
{
    const reduction *r = context;
    for (int64_t o = from; o < to; o++) {
        const at_real *x = r->from + o * r->n * r->inner;
        at_real *y = r->to + o * r->inner;
        if (r->inner == 1) {
            *y = (at_real)(at_sum_numbers(x, r->n) * (double)r->factor);
            continue;
        }
        memset(y, 0, (size_t)r->inner * sizeof *y);
        for (int64_t i = 0; i < r->n; i++) {
            for (int64_t j = 0; j < r->inner; j++)
                y[j] += x[i * r->inner + j];
        }
        for (int64_t j = 0; j < r->inner; j++)
            y[j] *= r->factor;
    }
}

static void spread_range(void *context, int64_t from, int64_t to)
{
    const reduction *r = context;
    for (int64_t o = from; o < to; o++) {
        for (int64_t i = 0; i < r->n; i++) {
            at_real *gx = r->to + (o * r->n + i) * r->inner;
            for (int64_t j = 0; j < r->inner; j++)
                gx[j] += r->factor * r->from[o * r->inner + j];
        }
    }
}

/* dx_i = factor g for every i along the axis */
static void reduce_backward(at_node *node)
{
    reduction r = *(const reduction *)node->saved;
    r.to = at_tensor_grad(node->inputs[0]);
    r.from = node->outputs[0]->grad;
    if (r.to)
        at_ranges(r.outer, r.n * r.inner, spread_range, &r);
}

static at_tensor *reduce(at_tensor *x, int axis, bool mean, const at_op *op)
{
    if (!x)
        return NULL;
    if (axis < -1 || axis >= x->shape.rank)
        return AT_REFUSE(x->tape, AT_SHAPE, "%s: %s has no axis %d", op->name, AT_TEXT(x->shape), axis);
    reduction r = {.outer = 1, .n = 1, .inner = 1, .factor = 1, .from = x->value};
    at_shape shape = {.rank = 1, .dim = {1}};
    if (axis == -1) {
        r.n = at_shape_count(x->shape);
    } else {
        shape = (at_shape){.rank = 0};
        for (int i = 0; i < x->shape.rank; i++) {
            int64_t dim = x->shape.dim[i];
            *(i < axis ? &r.outer : i > axis ? &r.inner : &r.n) *= dim;
            if (i != axis)
                shape.dim[shape.rank++] = dim;
        }
    }
    if (mean && r.n == 0)
        return AT_REFUSE(x->tape, AT_SHAPE, "mean: there is nothing to take the mean of in %s along axis %d",
                         AT_TEXT(x->shape), axis);
    if (mean)
        r.factor = 1 / (at_real)r.n;
    at_tensor *y = at_tensor_make(x->tape, shape);
    if (!y)
        return NULL;
    r.to = y->value;
    at_ranges(r.outer, r.n * r.inner, reduce_range, &r);
    return at_record_one(op, y, &x, 1, at_keep(x->tape, &r, sizeof r));
}

/* ---- y = sum_i x_i ---- */

static const at_op sum_op = {"sum", reduce_backward};

at_tensor *at_sum(at_tensor *x, int axis)
{
    return reduce(x, axis, false, &sum_op);
}

/* ---- y = (1/n) sum_i x_i ---- */

static const at_op mean_op = {"mean", reduce_backward};

at_tensor *at_mean(at_tensor *x, int axis)
{
    return reduce(x, axis, true, &mean_op);
}
