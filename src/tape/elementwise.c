/* Functions of one number, applied to each. */
#include <math.h>
#include <string.h>

#include "kernels/activate.h"
#include "kernels/isa.h"
#include "kernels/rows.h"
#include "tape/block.h"
#include "tape/ops.h"

/* ---- What they share ---- */

typedef void map_row(at_real *y, const at_real *x, int64_t count);
/* gx += g y'(x) */
typedef void map_back_row(at_real *gx, const at_real *g, const at_real *x, const at_real *y, int64_t count);

typedef struct map_job {
    map_row *row;
    map_back_row *back;
    at_real *y, *gx;
    const at_real *x, *g;
    bool add; /* to gx; else it is written */
} map_job;

static void map_range(void *context, int64_t from, int64_t to)
{
    const map_job *job = context;
    job->row(job->y + from, job->x + from, to - from);
}

static at_tensor *map(at_tensor *x, const at_op *op, map_row *row)
{
    at_tensor *y = x ? at_tensor_make(x->tape, x->shape) : NULL;
    if (!y)
        return NULL;
    map_job job = {.row = row, .y = y->value, .x = x->value};
    at_ranges(at_shape_count(x->shape), 1, map_range, &job);
    return at_record_one(op, y, &x, 1, NULL);
}

static void map_back_range(void *context, int64_t from, int64_t to)
{
    const map_job *job = context;
    if (!job->add) /* a piece stays in the cache until it is added to */
        memset(job->gx + from, 0, (size_t)(to - from) * sizeof *job->gx);
    job->back(job->gx + from, job->g + from, job->x + from, job->y + from, to - from);
}

static void map_back(at_node *node, map_back_row *back)
{
    at_tensor *x = node->inputs[0], *y = node->outputs[0];
    map_job job = {.back = back, .y = y->value, .x = x->value, .g = y->grad};
    job.gx = at_tensor_grad_whole(x, &job.add);
    if (job.gx)
        at_ranges(at_shape_count(x->shape), 1, map_back_range, &job);
}

/* ---- y = factor x ---- */

typedef struct scale_job {
    at_real factor;
    at_real *out;
    const at_real *in;
} scale_job;

static void scale_range(void *context, int64_t from, int64_t to)
{
    const scale_job *job = context;
    for (int64_t i = from; i < to; i++)
        job->out[i] = job->factor * job->in[i];
}

static void scale_back_range(void *context, int64_t from, int64_t to)
{
    const scale_job *job = context;
    for (int64_t i = from; i < to; i++)
        job->out[i] += job->factor * job->in[i];
}

/* dx = factor g */
static void scale_backward(at_node *node)
{
    const at_real *factor = node->saved;
    scale_job job = {.factor = *factor, .out = at_tensor_grad(node->inputs[0]), .in = node->outputs[0]->grad};
    if (job.out)
        at_ranges(at_shape_count(node->inputs[0]->shape), 1, scale_back_range, &job);
}

static const at_op scale_op = {"scale", scale_backward};

at_tensor *at_scale(at_tensor *x, at_real factor)
{
    at_tensor *y = x ? at_tensor_make(x->tape, x->shape) : NULL;
    if (!y)
        return NULL;
    scale_job job = {.factor = factor, .out = y->value, .in = x->value};
    at_ranges(at_shape_count(x->shape), 1, scale_range, &job);
    return at_record_one(&scale_op, y, &x, 1, at_keep(x->tape, &factor, sizeof factor));
}

/* ---- y = tanh x ---- */

static void tanh_back(at_real *gx, const at_real *g, const at_real *x, const at_real *y, int64_t count)
{
    (void)x;
    for (int64_t i = 0; i < count; i++)
        gx[i] += g[i] * at_tanh_slope(y[i]);
}

static void tanh_backward(at_node *node)
{
    map_back(node, tanh_back);
}

static const at_op tanh_op = {"tanh", tanh_backward};

at_tensor *at_tanh(at_tensor *x)
{
    return map(x, &tanh_op, at_rows_tanh);
}

/* ---- y = 1 / (1 + e^-x) ---- */

static void sigmoid_back(at_real *gx, const at_real *g, const at_real *x, const at_real *y, int64_t count)
{
    (void)x;
    for (int64_t i = 0; i < count; i++)
        gx[i] += g[i] * at_sigmoid_slope(y[i]);
}

static void sigmoid_backward(at_node *node)
{
    map_back(node, sigmoid_back);
}

static const at_op sigmoid_op = {"sigmoid", sigmoid_backward};

at_tensor *at_sigmoid(at_tensor *x)
{
    return map(x, &sigmoid_op, at_rows_sigmoid);
}

/* ---- y = max(0, x); a NaN stays one ---- */

static void relu_row(at_real *y, const at_real *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = at_act_value(AT_ACT_RELU, x[i]);
}

/* y' = 1 for x > 0, else 0: where it is 0, so is the product, even if g is not finite */
static void relu_back(at_real *gx, const at_real *g, const at_real *x, const at_real *y, int64_t count)
{
    (void)y;
    for (int64_t i = 0; i < count; i++)
        gx[i] += x[i] > 0 ? g[i] : 0;
}

static void relu_backward(at_node *node)
{
    map_back(node, relu_back);
}

static const at_op relu_op = {"relu", relu_backward};

at_tensor *at_relu(at_tensor *x)
{
    return map(x, &relu_op, relu_row);
}

/* ---- y = e^x ---- */

/* y' = y */
static void exp_back(at_real *gx, const at_real *g, const at_real *x, const at_real *y, int64_t count)
{
    (void)x;
    for (int64_t i = 0; i < count; i++)
        gx[i] += g[i] * y[i];
}

static void exp_backward(at_node *node)
{
    map_back(node, exp_back);
}

static const at_op exp_op = {"exp", exp_backward};

at_tensor *at_exp(at_tensor *x)
{
    return map(x, &exp_op, at_rows_exp);
}

/* ---- y = ln x ---- */

static void log_row(at_real *y, const at_real *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = AT_REAL(log)(x[i]);
}

/* y' = 1 / x */
static void log_back(at_real *gx, const at_real *g, const at_real *x, const at_real *y, int64_t count)
{
    (void)y;
    for (int64_t i = 0; i < count; i++)
        gx[i] += g[i] / x[i];
}

static void log_backward(at_node *node)
{
    map_back(node, log_back);
}

static const at_op log_op = {"log", log_backward};

at_tensor *at_log(at_tensor *x)
{
    return map(x, &log_op, log_row);
}

/* ---- y = x Phi(x), Phi(x) = (1 + erf(x / sqrt 2)) / 2 ---- */

static void gelu_back(at_real *gx, const at_real *g, const at_real *x, const at_real *y, int64_t count)
{
    (void)y;
    at_isa()->acts->gelu_back(gx, g, x, count);
}

static void gelu_backward(at_node *node)
{
    map_back(node, gelu_back);
}

static const at_op gelu_op = {"gelu", gelu_backward};

at_tensor *at_gelu(at_tensor *x)
{
    return map(x, &gelu_op, at_isa()->acts->gelu);
}

/* ---- y = x s, s = sigmoid(x) ---- */

static void swish_back(at_real *gx, const at_real *g, const at_real *x, const at_real *y, int64_t count)
{
    (void)y;
    at_isa()->acts->swish_back(gx, g, x, count);
}

static void swish_backward(at_node *node)
{
    map_back(node, swish_back);
}

static const at_op swish_op = {"swish", swish_backward};

at_tensor *at_swish(at_tensor *x)
{
    return map(x, &swish_op, at_isa()->acts->swish);
}
