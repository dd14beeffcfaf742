/* Operations that move numbers without changing them. Where the numbers lie in the right order already, the result is a
 * view: it costs nothing, and needs no backward pass because it shares its base's gradient. */
#include <string.h>

#include "tape/block.h"
#include "tape/ops.h"

/* ---- reshape: the same numbers in the same order under another shape; -1 stands for "what is left" ---- */

at_tensor *at_reshape(at_tensor *x, at_shape shape)
{
    if (!x)
        return NULL;
    int64_t count = at_shape_count(x->shape);
    int open = -1;
    at_shape asked = shape;
    for (int i = 0; i < shape.rank; i++) {
        if (shape.dim[i] >= 0)
            continue;
        if (shape.dim[i] != -1 || open >= 0)
            return AT_REFUSE(x->tape, AT_SHAPE, "reshape: %s has a negative size; only one may be left open as -1",
                             AT_TEXT(asked));
        open = i;
        shape.dim[i] = 1;
    }
    if (open >= 0) {
        int64_t known = at_shape_count(shape);
        shape.dim[open] = known > 0 ? count / known : 0;
    }
    if (at_shape_count(shape) != count)
        return AT_REFUSE(x->tape, AT_SHAPE, "reshape: %s holds %lld numbers and cannot become %s", AT_TEXT(x->shape),
                         (long long)count, AT_TEXT(asked));
    return at_tensor_view(x, 0, shape);
}

/* ---- permute: y[i0,i1,...] = x with its axes reordered, y.dim[i] = x.dim[order[i]] ---- */

typedef struct permutation {
    int rank; /* sizes of 1 are left out and axes that stay neighbours merged; the last is the innermost of y */
    int64_t dim[AT_MAX_RANK], step[AT_MAX_RANK]; /* y's sizes, and x's steps along them */
    at_real *to;
    const at_real *from;
} permutation;

static permutation plan_permutation(at_shape x, const int *order)
{
    int64_t stride[AT_MAX_RANK], size = 1;
    for (int i = x.rank - 1; i >= 0; i--) {
        stride[i] = size;
        size *= x.dim[i];
    }
    permutation p = {.rank = 0};
    for (int i = 0; i < x.rank; i++) {
        int64_t dim = x.dim[order[i]], step = stride[order[i]];
        if (dim == 1)
            continue;
        int last = p.rank - 1;
        if (last >= 0 && p.step[last] == step * dim) {
            p.dim[last] *= dim;
            p.step[last] = step;
            continue;
        }
        p.dim[p.rank] = dim;
        p.step[p.rank++] = step;
    }
    return p;
}

/* The offset in x at the start of y's row. */
static int64_t permuted_row(const permutation *p, int64_t row)
{
    int64_t at = 0;
    for (int d = p->rank - 2; d >= 0; d--) {
        at += row % p->dim[d] * p->step[d];
        row /= p->dim[d];
    }
    return at;
}

static void permute_range(void *context, int64_t from, int64_t to)
{
    const permutation *p = context;
    int64_t width = p->dim[p->rank - 1], step = p->step[p->rank - 1];
    for (int64_t row = from; row < to; row++) {
        at_real *out = p->to + row * width;
        const at_real *in = p->from + permuted_row(p, row);
        if (step == 1) {
            memcpy(out, in, (size_t)width * sizeof *out);
        } else {
            for (int64_t i = 0; i < width; i++)
                out[i] = in[i * step];
        }
    }
}

/* Every number of x has one position in y, so the rows of y write to different numbers of x. */
static void permute_back_range(void *context, int64_t from, int64_t to)
{
    const permutation *p = context;
    int64_t width = p->dim[p->rank - 1], step = p->step[p->rank - 1];
    for (int64_t row = from; row < to; row++) {
        at_real *out = p->to + permuted_row(p, row);
        const at_real *in = p->from + row * width;
        for (int64_t i = 0; i < width; i++)
            out[i * step] += in[i];
    }
}

/* dx = g with the axes put back */
static void permute_backward(at_node *node)
{
    permutation p = *(const permutation *)node->saved;
    int64_t width = p.dim[p.rank - 1];
    p.to = at_tensor_grad(node->inputs[0]);
    p.from = node->outputs[0]->grad;
    if (p.to && width > 0)
        at_ranges(at_shape_count(node->outputs[0]->shape) / width, width, permute_back_range, &p);
}

static const at_op permute_op = {"permute", permute_backward};

at_tensor *at_permute(at_tensor *x, const int *order)
{
    if (!x)
        return NULL;
    at_shape shape = {.rank = x->shape.rank};
    unsigned seen = 0;
    for (int i = 0; i < shape.rank; i++) {
        if (order[i] < 0 || order[i] >= shape.rank || (seen & 1u << order[i]))
            return AT_REFUSE(x->tape, AT_SHAPE,
                             "permute: the order must name each of the %d axes of %s once, and axis %d comes %s",
                             shape.rank, AT_TEXT(x->shape), order[i],
                             order[i] < 0 || order[i] >= shape.rank ? "from outside" : "twice");
        seen |= 1u << order[i];
        shape.dim[i] = x->shape.dim[order[i]];
    }
    permutation p = plan_permutation(x->shape, order);
    if (p.rank == 0 || (p.rank == 1 && p.step[0] == 1))
        return at_tensor_view(x, 0, shape);
    at_tensor *y = at_tensor_make(x->tape, shape);
    if (!y)
        return NULL;
    int64_t width = p.dim[p.rank - 1];
    p.to = y->value;
    p.from = x->value;
    if (width > 0)
        at_ranges(at_shape_count(shape) / width, width, permute_range, &p);
    return at_record_one(&permute_op, y, &x, 1, at_keep(x->tape, &p, sizeof p));
}

/* ---- slice and concat: x as [outer, axis, inner], blocks of neighbouring numbers copied ---- */

static void split_at(at_shape shape, int axis, int64_t *outer, int64_t *inner)
{
    *outer = *inner = 1;
    for (int i = 0; i < axis; i++)
        *outer *= shape.dim[i];
    for (int i = axis + 1; i < shape.rank; i++)
        *inner *= shape.dim[i];
}

/* A block of `width` numbers in each of `outer` rows, between two arrays with rows of their own length. */
typedef struct blocks {
    int64_t outer, width, to_row, from_row;
    at_real *to;
    const at_real *from;
} blocks;

static void copy_range(void *context, int64_t from, int64_t to)
{
    const blocks *b = context;
    for (int64_t i = from; i < to; i++)
        memcpy(b->to + i * b->to_row, b->from + i * b->from_row, (size_t)b->width * sizeof *b->to);
}

static void add_range(void *context, int64_t from, int64_t to)
{
    const blocks *b = context;
    for (int64_t i = from; i < to; i++) {
        at_real *out = b->to + i * b->to_row;
        const at_real *in = b->from + i * b->from_row;
        for (int64_t j = 0; j < b->width; j++)
            out[j] += in[j];
    }
}

static void copy_blocks(blocks b)
{
    if (b.width > 0)
        at_ranges(b.outer, b.width, copy_range, &b);
}

static void add_blocks(blocks b)
{
    if (b.width > 0)
        at_ranges(b.outer, b.width, add_range, &b);
}

/* ---- slice: y = x[..., from:to, ...] along the axis ---- */

typedef struct slicing {
    int axis;
    int64_t from;
} slicing;

/* dx[..., from:to, ...] = g */
static void slice_backward(at_node *node)
{
    const slicing *s = node->saved;
    at_tensor *x = node->inputs[0], *y = node->outputs[0];
    at_real *grad = at_tensor_grad(x);
    int64_t outer, inner;
    split_at(x->shape, s->axis, &outer, &inner);
    int64_t width = y->shape.dim[s->axis] * inner;
    if (grad)
        add_blocks((blocks){.outer = outer,
                            .width = width,
                            .to_row = x->shape.dim[s->axis] * inner,
                            .from_row = width,
                            .to = grad + s->from * inner,
                            .from = y->grad});
}

static const at_op slice_op = {"slice", slice_backward};

at_tensor *at_slice(at_tensor *x, int axis, int64_t from, int64_t to)
{
    if (!x)
        return NULL;
    if (axis < 0 || axis >= x->shape.rank)
        return AT_REFUSE(x->tape, AT_SHAPE, "slice: %s has no axis %d", AT_TEXT(x->shape), axis);
    int64_t size = x->shape.dim[axis], outer, inner;
    if (from < 0 || to < from || to > size)
        return AT_REFUSE(x->tape, AT_SHAPE, "slice: %lld to %lld does not lie in 0 to %lld, axis %d of %s",
                         (long long)from, (long long)to, (long long)size, axis, AT_TEXT(x->shape));
    at_shape shape = x->shape;
    shape.dim[axis] = to - from;
    split_at(x->shape, axis, &outer, &inner);
    if (outer == 1)
        return at_tensor_view(x, from * inner, shape);
    at_tensor *y = at_tensor_make(x->tape, shape);
    if (!y)
        return NULL;
    int64_t width = (to - from) * inner;
    copy_blocks((blocks){.outer = outer,
                         .width = width,
                         .to_row = width,
                         .from_row = size * inner,
                         .to = y->value,
                         .from = x->value + from * inner});
    slicing s = {.axis = axis, .from = from};
    return at_record_one(&slice_op, y, &x, 1, at_keep(x->tape, &s, sizeof s));
}

/* ---- concat: y = [x_0; x_1; ...] along the axis ---- */

/* dx_p = the part of g that came from x_p */
static void concat_backward(at_node *node)
{
    const int *axis = node->saved;
    at_tensor *y = node->outputs[0];
    int64_t outer, inner, at = 0;
    split_at(y->shape, *axis, &outer, &inner);
    for (int p = 0; p < node->input_count; p++) {
        int64_t width = node->inputs[p]->shape.dim[*axis] * inner;
        at_real *grad = at_tensor_grad(node->inputs[p]);
        if (grad)
            add_blocks((blocks){.outer = outer,
                                .width = width,
                                .to_row = width,
                                .from_row = y->shape.dim[*axis] * inner,
                                .to = grad,
                                .from = y->grad + at});
        at += width;
    }
}

static const at_op concat_op = {"concat", concat_backward};

at_tensor *at_concat(at_tensor *const *parts, int count, int axis)
{
    for (int p = 0; p < count; p++) {
        if (!parts[p])
            return NULL;
    }
    if (count < 1)
        return NULL;
    at_tape *tape = parts[0]->tape;
    at_shape shape = parts[0]->shape;
    if (axis < 0 || axis >= shape.rank)
        return AT_REFUSE(tape, AT_SHAPE, "concat: %s has no axis %d", AT_TEXT(shape), axis);
    for (int p = 1; p < count; p++) {
        at_shape other = parts[p]->shape;
        int64_t size = other.rank == shape.rank ? other.dim[axis] : 0;
        if (other.rank == shape.rank)
            other.dim[axis] = shape.dim[axis];
        if (!at_shape_same(other, shape))
            return AT_REFUSE(tape, AT_SHAPE, "concat: %s and %s may differ along axis %d only",
                             AT_TEXT(parts[0]->shape), AT_TEXT(parts[p]->shape), axis);
        shape.dim[axis] += size;
    }
    at_tensor *y = at_tensor_make(tape, shape);
    if (!y)
        return NULL;
    int64_t outer, inner, at = 0;
    split_at(shape, axis, &outer, &inner);
    for (int p = 0; p < count; p++) {
        int64_t width = parts[p]->shape.dim[axis] * inner;
        copy_blocks((blocks){.outer = outer,
                             .width = width,
                             .to_row = shape.dim[axis] * inner,
                             .from_row = width,
                             .to = y->value + at,
                             .from = parts[p]->value});
        at += width;
    }
    return at_record_one(&concat_op, y, parts, count, at_keep(tape, &axis, sizeof axis));
}
