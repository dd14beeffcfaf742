/* Layer norm, alone and around a residual. */
#include <string.h>

#include "kernels/isa.h"
#include "kernels/passes.h"
#include "tape/block.h"
#include "tape/ops.h"

/* ---- layer_norm, residual_norm: LN(s), s = x or x + dropout(y) ----
 *
 * Over each row: out = gain (s - mean) r + bias, r = 1 / sqrt(variance + eps). Saved for the backward pass are s and a
 * mean and an r for each row; the dropout mask is drawn again. */

enum { BLOCK = 32 }; /* rows whose gradients of gain and bias are one sum, whatever the threads */

typedef struct row_norm {
    at_real mean, r;
} row_norm;

typedef struct norm_job {
    int64_t size, rows;
    uint64_t seed, counter; /* of the mask */
    at_real keep;           /* 1: there is none */
    at_real eps;
    row_norm *norms; /* [rows] */
    const at_real *x, *y, *gain, *bias;
    at_real *s, *out;
    /* the backward pass */
    norm_back back; /* pointers of the first row */
    at_real *parts; /* [blocks, 3, size]: sums for gain and bias, a mask */
} norm_job;

static void norm_range(void *context, int64_t from, int64_t to)
{
    const norm_job *j = context;
    const pass_kernels *k = at_isa()->passes;
    for (int64_t row = from; row < to; row++) {
        int64_t at = row * j->size;
        norm_row n = {.size = j->size, .x = j->x + at, .gain = j->gain, .bias = j->bias, .eps = j->eps};
        n.out = j->out + at;
        if (j->y) {
            n.y = j->y + at;
            n.sum = j->s + at;
        }
        if (j->y && j->keep != 1) { /* the output's memory holds the mask until it is written */
            k->mask(n.out, j->seed, j->counter, at, j->size, j->keep);
            n.mask = n.out;
        }
        k->norm(&n);
        if (j->norms)
            j->norms[row] = (row_norm){n.mean, n.r};
    }
}

static void norm_back_blocks(void *context, int64_t from, int64_t to)
{
    const norm_job *j = context;
    const pass_kernels *k = at_isa()->passes;
    for (int64_t block = from; block < to; block++) {
        at_real *gain_grad = j->parts + block * 3 * j->size, *bias_grad = gain_grad + j->size;
        at_real *mask = bias_grad + j->size;
        memset(gain_grad, 0, 2 * (size_t)j->size * sizeof *gain_grad);
        for (int64_t row = block * BLOCK; row < j->rows && row < (block + 1) * BLOCK; row++) {
            norm_back b = j->back;
            int64_t at = row * j->size;
            b.s += at;
            b.g += at;
            b.mean = j->norms[row].mean;
            b.r = j->norms[row].r;
            b.g_sum = b.g_sum ? b.g_sum + at : NULL;
            b.x_grad = b.x_grad ? b.x_grad + at : NULL;
            b.y_grad = b.y_grad ? b.y_grad + at : NULL;
            b.gain_grad = b.gain_grad ? gain_grad : NULL;
            b.bias_grad = b.bias_grad ? bias_grad : NULL;
            if (b.y_grad && j->keep != 1) {
                k->mask(mask, j->seed, j->counter, at, j->size, j->keep);
                b.mask = mask;
            }
            k->norm_back(&b);
        }
    }
}

/* The blocks' sums, in the order of the blocks. */
static void add_parts(at_real *grad, const at_real *parts, int64_t blocks, int64_t size)
{
    for (int64_t block = 0; grad && block < blocks; block++)
        for (int64_t j = 0; j < size; j++)
            grad[j] += parts[block * 3 * size + j];
}

static void norm_backward(at_node *node)
{
    norm_job job = *(const norm_job *)node->saved;
    at_tensor *x = node->inputs[0], *y = node->inputs[1], *gain = node->inputs[2], *bias = node->inputs[3];
    int64_t blocks = (job.rows + BLOCK - 1) / BLOCK;
    job.back.size = job.size;
    job.back.s = job.s;
    job.back.g = node->outputs[0]->grad;
    job.back.g_sum = node->output_count > 1 ? node->outputs[1]->grad : NULL;
    job.back.gain = job.gain;
    job.back.gain_grad = at_tensor_grad(gain);
    job.back.bias_grad = at_tensor_grad(bias);
    job.back.x_grad = at_tensor_grad_whole(x, &job.back.x_add);
    job.back.y_grad = at_tensor_grad_whole(y, &job.back.y_add);
    at_mark mark = at_arena_mark(at_tape_arena(x->tape));
    job.parts = at_room(x->tape, (size_t)(blocks * 3 * job.size) * sizeof *job.parts);
    if (!job.parts)
        return;
    /* Gradients in the same memory are added one after the other. */
    bool shared = job.back.x_grad && job.back.y_grad && (x->base ? x->base : x) == (y->base ? y->base : y);
    norm_job second = job;
    if (shared)
        job.back.y_grad = NULL;
    at_ranges(blocks, BLOCK * job.size, norm_back_blocks, &job);
    add_parts(job.back.gain_grad, job.parts, blocks, job.size);
    add_parts(job.back.bias_grad, job.parts + job.size, blocks, job.size);
    second.back.x_grad = second.back.gain_grad = second.back.bias_grad = NULL;
    if (shared)
        at_ranges(blocks, BLOCK * job.size, norm_back_blocks, &second);
    at_arena_release(at_tape_arena(x->tape), mark);
}

static const at_op layer_norm_op = {"layer_norm", norm_backward};
static const at_op residual_norm_op = {"residual_norm", norm_backward};

/* The part the two share. y NULL: LN(x). */
static at_tensor *norm(const at_op *op, at_tensor *x, at_tensor *y, at_tensor *gain, at_tensor *bias, norm_job job,
                       at_tensor **sum)
{
    at_tape *tape = x->tape;
    int64_t size = x->shape.rank > 0 ? x->shape.dim[x->shape.rank - 1] : 0;
    if (size < 1 || gain->shape.rank != 1 || gain->shape.dim[0] != size || !at_shape_same(gain->shape, bias->shape))
        return AT_REFUSE(tape, AT_SHAPE, "%s: the input is %s, so gain and bias must be [%lld]; they are %s and %s",
                         op->name, AT_TEXT(x->shape), (long long)size, AT_TEXT(gain->shape), AT_TEXT(bias->shape));
    at_tensor *out[2] = {at_tensor_make(tape, x->shape), NULL};
    bool keeps = at_tape_records(tape), apart = y && (keeps || sum);
    if (apart)
        out[1] = at_tensor_make(tape, x->shape);
    if (!out[0] || (apart && !out[1]))
        return NULL;
    job.size = size;
    job.rows = at_shape_count(x->shape) / size;
    job.x = x->value;
    job.y = y ? y->value : NULL;
    job.gain = gain->value;
    job.bias = bias->value;
    job.out = out[0]->value;
    job.s = !y ? x->value : apart ? out[1]->value : out[0]->value;
    job.norms = keeps ? at_room(tape, (size_t)job.rows * sizeof *job.norms) : NULL;
    void *saved = at_keep(tape, &job, sizeof job);
    if (!saved || (keeps && !job.norms))
        return NULL;
    at_ranges(job.rows, size, norm_range, &job);
    if (sum)
        *sum = out[1];
    return at_record(tape, op, out, sum ? 2 : 1, (at_tensor *[]){x, y, gain, bias}, 4, saved);
}

at_tensor *at_layer_norm(at_tensor *x, at_tensor *gain, at_tensor *bias, at_real eps)
{
    if (!x || !gain || !bias)
        return NULL;
    return norm(&layer_norm_op, x, NULL, gain, bias, (norm_job){.eps = eps, .keep = 1}, NULL);
}

at_tensor *at_residual_norm(at_tensor *x, at_tensor *y, at_tensor *gain, at_tensor *bias, at_real eps, at_real keep,
                            at_rng *rng, at_tensor **sum)
{
    if (sum)
        *sum = NULL;
    if (!x || !y || !gain || !bias)
        return NULL;
    if (!at_shape_same(x->shape, y->shape))
        return AT_REFUSE(x->tape, AT_SHAPE, "residual_norm: %s and %s are added, so they must be of the same shape",
                         AT_TEXT(x->shape), AT_TEXT(y->shape));
    if (!(keep > 0 && keep <= 1))
        return AT_REFUSE(x->tape, AT_USAGE, "residual_norm: the share to keep is %g and must be above 0 and at most 1",
                         (double)keep);
    norm_job job = {.eps = eps, .keep = keep};
    if (keep != 1) {
        job.seed = rng->seed;
        job.counter = rng->counter++;
    }
    return norm(&residual_norm_op, x, y, gain, bias, job, sum);
}
