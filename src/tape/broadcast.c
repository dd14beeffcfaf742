/* Two-sided operations. The shapes are aligned at the right, and a dimension of 1, or one that is not
 * there, is repeated. */
#include "tape/block.h"
#include "tape/ops.h"

/* ---- What they share ---- */

/* The result's dimensions with each side's steps through its memory, 0 where the side is repeated. Neighbouring
 * dimensions that both sides cross in one stride are merged, so that equal shapes are one long row; the steps of the
 * last dimension are 0 or 1. */
typedef struct walk {
    int rank;
    int64_t count; /* numbers of the result */
    int64_t dim[AT_MAX_RANK];
    int64_t step[2][AT_MAX_RANK];
} walk;

static int64_t dim_from_right(at_shape shape, int i)
{
    return i < shape.rank ? shape.dim[shape.rank - 1 - i] : 1;
}

static bool broadcast(const char *name, at_tensor *a, at_tensor *b, at_shape *shape)
{
    shape->rank = a->shape.rank > b->shape.rank ? a->shape.rank : b->shape.rank;
    for (int i = 0; i < shape->rank; i++) {
        int64_t x = dim_from_right(a->shape, i), y = dim_from_right(b->shape, i);
        if (x != y && x != 1 && y != 1)
            return at_fail(at_tape_error(a->tape), AT_SHAPE,
                           "%s: sizes %lld and %lld do not broadcast (%s with %s); they must be equal or one of them 1",
                           name, (long long)x, (long long)y, AT_TEXT(a->shape), AT_TEXT(b->shape));
        shape->dim[shape->rank - 1 - i] = x == 1 ? y : x;
    }
    return true;
}

static walk plan_walk(at_shape shape, at_shape a, at_shape b)
{
    /* From the right, in reversed order first. */
    const at_shape side[2] = {a, b};
    int64_t stride[2] = {1, 1};
    walk w = {.rank = 0, .count = at_shape_count(shape)};
    for (int i = 0; i < shape.rank; i++) {
        int64_t size = dim_from_right(shape, i), step[2];
        for (int s = 0; s < 2; s++) {
            int64_t own = dim_from_right(side[s], i);
            step[s] = own == 1 ? 0 : stride[s];
            stride[s] *= own;
        }
        if (size == 1)
            continue;
        int last = w.rank - 1;
        if (last >= 0 && step[0] == w.step[0][last] * w.dim[last] && step[1] == w.step[1][last] * w.dim[last]) {
            w.dim[last] *= size;
            continue;
        }
        w.dim[w.rank] = size;
        w.step[0][w.rank] = step[0];
        w.step[1][w.rank] = step[1];
        w.rank++;
    }
    if (w.rank == 0) {
        w.dim[0] = 1;
        w.step[0][0] = w.step[1][0] = 1;
        w.rank = 1;
    }
    return w; /* dimension 0 is the innermost */
}

/* The offset of each side at the start of the result's row. */
static void row_start(const walk *w, int64_t row, int64_t at[2])
{
    at[0] = at[1] = 0;
    for (int d = 1; d < w->rank; d++) {
        int64_t i = row % w->dim[d];
        row /= w->dim[d];
        at[0] += i * w->step[0][d];
        at[1] += i * w->step[1][d];
    }
}

typedef void pair_row(at_real *out, const at_real *a, int64_t a_step, const at_real *b, int64_t b_step, int64_t count);

typedef struct pair_job {
    walk walk;
    pair_row *row;
    at_real *out;
    const at_real *a, *b;
} pair_job;

static void pair_range(void *context, int64_t from, int64_t to)
{
    const pair_job *job = context;
    int64_t width = job->walk.dim[0], as = job->walk.step[0][0], bs = job->walk.step[1][0];
    for (int64_t i = from, length; i < to; i += length) {
        int64_t column = i % width, at[2];
        length = width - column < to - i ? width - column : to - i;
        row_start(&job->walk, i / width, at);
        job->row(job->out + i, job->a + at[0] + column * as, as, job->b + at[1] + column * bs, bs, length);
    }
}

static at_tensor *pair(at_tensor *a, at_tensor *b, const at_op *op, pair_row *row)
{
    at_shape shape;
    if (!a || !b || !broadcast(op->name, a, b, &shape))
        return NULL;
    at_tensor *out = at_tensor_make(a->tape, shape);
    if (!out)
        return NULL;
    pair_job job = {
        .walk = plan_walk(shape, a->shape, b->shape), .row = row, .out = out->value, .a = a->value, .b = b->value};
    at_ranges(job.walk.count, 1, pair_range, &job);
    return at_record_one(op, out, (at_tensor *[]){a, b}, 2, NULL);
}

/* target += factor * g * other, where the target may be repeated: then its number gets the sum over the repeats. */
typedef struct back_job {
    walk walk; /* side 0 the target, side 1 the other factor */
    at_real *target;
    const at_real *g, *other; /* other NULL: 1 */
    at_real factor;
} back_job;

static void back_row(at_real *target, int64_t t_step, const at_real *g, const at_real *other, int64_t o_step,
                     at_real factor, int64_t count)
{
    at_real sum = 0;
    if (!other && t_step) {
        for (int64_t i = 0; i < count; i++)
            target[i] += factor * g[i];
    } else if (!other) {
        for (int64_t i = 0; i < count; i++)
            sum += g[i];
        *target += factor * sum;
    } else if (t_step) {
        for (int64_t i = 0; i < count; i++)
            target[i] += factor * g[i] * other[i * o_step];
    } else {
        for (int64_t i = 0; i < count; i++)
            sum += g[i] * other[i * o_step];
        *target += factor * sum;
    }
}

static void back_range(void *context, int64_t from, int64_t to)
{
    const back_job *job = context;
    int64_t width = job->walk.dim[0], ts = job->walk.step[0][0], os = job->walk.step[1][0];
    for (int64_t i = from, length; i < to; i += length) {
        int64_t column = i % width, at[2];
        length = width - column < to - i ? width - column : to - i;
        row_start(&job->walk, i / width, at);
        back_row(job->target + at[0] + column * ts, ts, job->g + i,
                 job->other ? job->other + at[1] + column * os : NULL, os, job->factor, length);
    }
}

static void pair_back(at_node *node, int side, bool times_other, at_real factor)
{
    at_tensor *target = node->inputs[side], *other = node->inputs[1 - side], *out = node->outputs[0];
    at_real *grad = at_tensor_grad(target);
    if (!grad)
        return;
    back_job job = {.walk = plan_walk(out->shape, target->shape, times_other ? other->shape : out->shape),
                    .target = grad,
                    .g = out->grad,
                    .other = times_other ? other->value : NULL,
                    .factor = factor};
    if (at_shape_count(target->shape) == job.walk.count)
        at_ranges(job.walk.count, 1, back_range, &job);
    else /* a repeated target is a sum: one thread, in order */
        back_range(&job, 0, job.walk.count);
}

/* The three kinds of row: both sides advance, or one of them is repeated. */
#define PAIR_LOOPS(sign)                                                                                               \
    if (a_step && b_step) {                                                                                            \
        for (int64_t i = 0; i < count; i++)                                                                            \
            out[i] = a[i] sign b[i];                                                                                   \
    } else if (a_step) {                                                                                               \
        const at_real still = *b;                                                                                      \
        for (int64_t i = 0; i < count; i++)                                                                            \
            out[i] = a[i] sign still;                                                                                  \
    } else {                                                                                                           \
        const at_real still = *a;                                                                                      \
        for (int64_t i = 0; i < count; i++)                                                                            \
            out[i] = still sign b[i];                                                                                  \
    }

/* ---- y = a + b ---- */

static void add_row(at_real *out, const at_real *a, int64_t a_step, const at_real *b, int64_t b_step, int64_t count)
{
    PAIR_LOOPS(+)
}

/* da = g, db = g */
static void add_backward(at_node *node)
{
    pair_back(node, 0, false, 1);
    pair_back(node, 1, false, 1);
}

static const at_op add_op = {"add", add_backward};

at_tensor *at_add(at_tensor *a, at_tensor *b)
{
    return pair(a, b, &add_op, add_row);
}

/* ---- y = a - b ---- */

static void sub_row(at_real *out, const at_real *a, int64_t a_step, const at_real *b, int64_t b_step, int64_t count)
{
    PAIR_LOOPS(-)
}

/* da = g, db = -g */
static void sub_backward(at_node *node)
{
    pair_back(node, 0, false, 1);
    pair_back(node, 1, false, -1);
}

static const at_op sub_op = {"sub", sub_backward};

at_tensor *at_sub(at_tensor *a, at_tensor *b)
{
    return pair(a, b, &sub_op, sub_row);
}

/* ---- y = a b ---- */

static void mul_row(at_real *out, const at_real *a, int64_t a_step, const at_real *b, int64_t b_step, int64_t count)
{
    PAIR_LOOPS(*)
}

/* da = g b, db = g a */
static void mul_backward(at_node *node)
{
    pair_back(node, 0, true, 1);
    pair_back(node, 1, true, 1);
}

static const at_op mul_op = {"mul", mul_backward};

at_tensor *at_mul(at_tensor *a, at_tensor *b)
{
    return pair(a, b, &mul_op, mul_row);
}
