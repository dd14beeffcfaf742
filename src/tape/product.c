/* Products of matrices, forward and backward, all by the one gemm. */
#include <string.h>

#include "kernels/activate.h"
#include "kernels/isa.h"
#include "tape/block.h"
#include "tape/ops.h"
#include "tape/params.h"

bool at_product(at_tape *tape, const at_gemm *gemm)
{
    return at_gemm_run(gemm, at_tape_arena(tape)) ||
           at_no_memory(at_tape_error(tape), "a product of %lld x %lld by %lld x %lld", (long long)gemm->m,
                        (long long)gemm->k, (long long)gemm->k, (long long)gemm->n);
}

/* ---- matmul: C = op(A) op(B) for every batch; op transposes or not, batch dimensions broadcast ---- */

typedef struct matmul {
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col; /* op(A)[i,p] = a[i a_row + p a_col], op(B)[p,j] = b[p b_row + j b_col] */
    bool transpose_a, transpose_b;
    int rank; /* batch dimensions, the first the outermost; steps in numbers, 0 where a side is repeated */
    int64_t dim[AT_MAX_RANK], a_step[AT_MAX_RANK], b_step[AT_MAX_RANK], c_step[AT_MAX_RANK];
} matmul;

/* Runs `gemm` for every batch. The innermost batch dimension goes to the kernel as a whole, unless its results fall on
 * one another: those are added up one after the other. */
static bool for_batches(at_tape *tape, const matmul *x, at_gemm gemm, const int64_t *a_step, const int64_t *b_step,
                        const int64_t *c_step, int depth)
{
    if (depth == x->rank)
        return at_product(tape, &gemm);
    if (depth == x->rank - 1 && c_step[depth] != 0)
        return at_gemm_batch(&gemm, x->dim[depth], a_step[depth], b_step[depth], c_step[depth], at_tape_arena(tape)) ||
               at_no_memory(at_tape_error(tape), "a batch of %lld products", (long long)x->dim[depth]);
    for (int64_t i = 0; i < x->dim[depth]; i++) {
        if (!for_batches(tape, x, gemm, a_step, b_step, c_step, depth + 1))
            return false;
        gemm.a += a_step[depth];
        gemm.b += b_step[depth];
        gemm.c += c_step[depth];
    }
    return true;
}

/* Whether several batches read the same matrix, so that its gradient is a sum over them. */
static bool repeats(const matmul *x, const int64_t *step)
{
    for (int i = 0; i < x->rank; i++)
        if (step[i] == 0)
            return true;
    return false;
}

/* dA = dC op(B)^T in A's own layout; dB = op(A)^T dC in B's. */
static void matmul_backward(at_node *node)
{
    const matmul *x = node->saved;
    at_tensor *a = node->inputs[0], *b = node->inputs[1], *c = node->outputs[0];
    bool a_add = true, b_add = true;
    at_real *a_grad = repeats(x, x->a_step) ? at_tensor_grad(a) : at_tensor_grad_whole(a, &a_add);
    at_real *b_grad = repeats(x, x->b_step) ? at_tensor_grad(b) : at_tensor_grad_whole(b, &b_add);
    if (a_grad && !x->transpose_a) { /* [m,k] += dC [m,n] op(B)^T [n,k] */
        at_gemm gemm = {.m = x->m,
                        .n = x->k,
                        .k = x->n,
                        .a = c->grad,
                        .a_row = x->n,
                        .a_col = 1,
                        .b = b->value,
                        .b_row = x->b_col,
                        .b_col = x->b_row,
                        .c = a_grad,
                        .c_row = x->k,
                        .accumulate = a_add};
        for_batches(c->tape, x, gemm, x->c_step, x->b_step, x->a_step, 0);
    } else if (a_grad) { /* [k,m] += op(B) [k,n] dC^T [n,m] */
        at_gemm gemm = {.m = x->k,
                        .n = x->m,
                        .k = x->n,
                        .a = b->value,
                        .a_row = x->b_row,
                        .a_col = x->b_col,
                        .b = c->grad,
                        .b_row = 1,
                        .b_col = x->n,
                        .c = a_grad,
                        .c_row = x->m,
                        .accumulate = a_add};
        for_batches(c->tape, x, gemm, x->b_step, x->c_step, x->a_step, 0);
    }
    if (b_grad && !x->transpose_b) { /* [k,n] += op(A)^T [k,m] dC [m,n] */
        at_gemm gemm = {.m = x->k,
                        .n = x->n,
                        .k = x->m,
                        .a = a->value,
                        .a_row = x->a_col,
                        .a_col = x->a_row,
                        .b = c->grad,
                        .b_row = x->n,
                        .b_col = 1,
                        .c = b_grad,
                        .c_row = x->n,
                        .accumulate = b_add};
        for_batches(c->tape, x, gemm, x->a_step, x->c_step, x->b_step, 0);
    } else if (b_grad) { /* [n,k] += dC^T [n,m] op(A) [m,k] */
        at_gemm gemm = {.m = x->n,
                        .n = x->k,
                        .k = x->m,
                        .a = c->grad,
                        .a_row = 1,
                        .a_col = x->n,
                        .b = a->value,
                        .b_row = x->a_row,
                        .b_col = x->a_col,
                        .c = b_grad,
                        .c_row = x->k,
                        .accumulate = b_add};
        for_batches(c->tape, x, gemm, x->c_step, x->a_step, x->b_step, 0);
    }
}

static const at_op matmul_op = {"matmul", matmul_backward};

static int64_t batch_dim(at_shape shape, int from_right)
{
    int i = shape.rank - 3 - from_right;
    return i >= 0 ? shape.dim[i] : 1;
}

/* The result's shape and the batch plan. Batch dimensions that all three cross in one stride are merged. */
static bool plan_batches(matmul *x, at_tensor *a, at_tensor *b, at_shape *shape)
{
    shape->rank = a->shape.rank > b->shape.rank ? a->shape.rank : b->shape.rank;
    int64_t stride[3] = {x->m * x->k, x->k * x->n, x->m * x->n};
    int rank = 0;
    int64_t dim[AT_MAX_RANK], step[3][AT_MAX_RANK];
    for (int i = 0; i < shape->rank - 2; i++) {
        int64_t own[2] = {batch_dim(a->shape, i), batch_dim(b->shape, i)};
        if (own[0] != own[1] && own[0] != 1 && own[1] != 1)
            return at_fail(at_tape_error(a->tape), AT_SHAPE,
                           "matmul: batch sizes %lld and %lld do not broadcast (%s x %s); they must be equal or one of "
                           "them 1",
                           (long long)own[0], (long long)own[1], AT_TEXT(a->shape), AT_TEXT(b->shape));
        int64_t size = own[0] == 1 ? own[1] : own[0], now[3];
        shape->dim[shape->rank - 3 - i] = size;
        for (int s = 0; s < 3; s++)
            now[s] = s < 2 && own[s] == 1 ? 0 : stride[s];
        for (int s = 0; s < 3; s++)
            stride[s] *= s < 2 ? own[s] : size;
        if (size == 1)
            continue;
        bool merges = rank > 0;
        for (int s = 0; merges && s < 3; s++)
            merges = now[s] == step[s][rank - 1] * dim[rank - 1];
        if (merges) {
            dim[rank - 1] *= size;
            continue;
        }
        dim[rank] = size;
        for (int s = 0; s < 3; s++)
            step[s][rank] = now[s];
        rank++;
    }
    x->rank = rank;
    for (int i = 0; i < rank; i++) { /* reversed: outermost first */
        x->dim[i] = dim[rank - 1 - i];
        x->a_step[i] = step[0][rank - 1 - i];
        x->b_step[i] = step[1][rank - 1 - i];
        x->c_step[i] = step[2][rank - 1 - i];
    }
    /* Many matrices times one matrix are one tall matrix times that matrix. */
    if (rank > 0 && x->b_step[rank - 1] == 0 && !x->transpose_a && x->a_step[rank - 1] == x->m * x->k) {
        x->m *= x->dim[rank - 1];
        x->rank--;
    }
    return true;
}

at_tensor *at_matmul(at_tensor *a, at_tensor *b, bool transpose_a, bool transpose_b)
{
    if (!a || !b)
        return NULL;
    const char *mark_a = transpose_a ? "ᵀ" : "", *mark_b = transpose_b ? "ᵀ" : "";
    if (a->shape.rank < 2 || b->shape.rank < 2)
        return AT_REFUSE(a->tape, AT_SHAPE, "matmul: both sides need two dimensions or more (%s%s x %s%s)",
                         AT_TEXT(a->shape), mark_a, AT_TEXT(b->shape), mark_b);
    const int64_t *da = a->shape.dim + a->shape.rank - 2, *db = b->shape.dim + b->shape.rank - 2;
    matmul x = {.m = da[transpose_a], .k = da[!transpose_a], .n = db[!transpose_b]};
    x.transpose_a = transpose_a;
    x.transpose_b = transpose_b;
    if (db[transpose_b] != x.k)
        return AT_REFUSE(a->tape, AT_SHAPE, "matmul: inner sizes %lld and %lld differ (%s%s x %s%s)", (long long)x.k,
                         (long long)db[transpose_b], AT_TEXT(a->shape), mark_a, AT_TEXT(b->shape), mark_b);
    x.a_row = transpose_a ? 1 : x.k;
    x.a_col = transpose_a ? x.m : 1;
    x.b_row = transpose_b ? 1 : x.n;
    x.b_col = transpose_b ? x.k : 1;
    at_shape shape;
    int64_t rows = x.m;
    if (!plan_batches(&x, a, b, &shape))
        return NULL;
    shape.dim[shape.rank - 2] = rows;
    shape.dim[shape.rank - 1] = x.n;
    at_tensor *c = at_tensor_make(a->tape, shape);
    if (!c)
        return NULL;
    at_gemm gemm = {.m = x.m,
                    .n = x.n,
                    .k = x.k,
                    .a = a->value,
                    .a_row = x.a_row,
                    .a_col = x.a_col,
                    .b = b->value,
                    .b_row = x.b_row,
                    .b_col = x.b_col,
                    .c = c->value,
                    .c_row = x.n};
    if (!for_batches(a->tape, &x, gemm, x.a_step, x.b_step, x.c_step, 0))
        return NULL;
    c->spare = true;
    return at_record_one(&matmul_op, c, (at_tensor *[]){a, b}, 2, at_keep(a->tape, &x, sizeof x));
}

/* ---- linear: y = act(x w^T + b), x [...,in], w [out,in], b [out] ---- */

/* Weights that are a whole parameter are packed once and serve every product until they change. */
const at_real *at_weights_packed(at_tensor *w, bool transposed)
{
    return w->params ? at_params_packed(w->params, w->param, transposed) : NULL;
}

/* gz = g act'(z) overwriting g, and the sum of its rows for the bias: a sum for each block of rows, then the sum of
 * those in order, whatever the threads. */
enum { BLOCK = 32 };

typedef struct act_job {
    int64_t rows, size;
    at_act act;
    at_real *g, *sums; /* [rows,size], [blocks,size] or NULL */
    const at_real *y;
} act_job;

static void act_back_blocks(void *context, int64_t from, int64_t to)
{
    const act_job *j = context;
    for (int64_t block = from; block < to; block++) {
        int64_t first = block * BLOCK, rows = j->rows - first < BLOCK ? j->rows - first : BLOCK;
        at_real *sums = j->sums ? j->sums + block * j->size : NULL;
        if (sums)
            memset(sums, 0, (size_t)j->size * sizeof *sums);
        at_isa()->acts->back(j->g + first * j->size, j->y + first * j->size, rows, j->size, j->act, sums);
    }
}

void at_act_grad(at_tensor *y, int64_t rows, int64_t size, at_act act, at_real *b_grad)
{
    act_job job = {.rows = rows, .size = size, .act = act, .g = y->grad, .y = y->value};
    int64_t blocks = (rows + BLOCK - 1) / BLOCK;
    at_mark mark = at_arena_mark(at_tape_arena(y->tape));
    if (b_grad)
        job.sums = at_room(y->tape, (size_t)(blocks * size) * sizeof *job.sums);
    if (job.sums || (!b_grad && act != AT_ACT_NONE))
        at_ranges(blocks, BLOCK * size, act_back_blocks, &job);
    for (int64_t block = 0; job.sums && block < blocks; block++)
        for (int64_t j = 0; j < size; j++)
            b_grad[j] += job.sums[block * size + j];
    at_arena_release(at_tape_arena(y->tape), mark);
}

/* The gradient of weights that a loop uses step by step, dW += dz^T x, is deferred until all steps are known and then
 * made as one product: a step's few rows would read and write all of dW for little work. */
typedef struct step {
    struct step *next;
    const at_real *dz, *x; /* [rows,out], [rows,in] */
    int64_t rows;
} step;

typedef struct deferred {
    struct deferred *next;
    at_real *w_grad;
    int64_t in, out, rows;
    step *first, **last;
} deferred;

enum { FEW_ROWS = 256 }; /* with more, a product pays by itself */

void at_weights_product(at_tape *tape, at_real *w_grad, int64_t in, int64_t out, int64_t rows, const at_real *dz,
                        const at_real *x)
{
    at_gemm gemm = {.m = out,
                    .n = in,
                    .k = rows,
                    .a = dz,
                    .a_row = 1,
                    .a_col = out,
                    .b = x,
                    .b_row = in,
                    .b_col = 1,
                    .c = w_grad,
                    .c_row = in,
                    .accumulate = true};
    at_product(tape, &gemm);
}

/* Steps side by side, in the order they came, then one product for each matrix of weights. */
static void make_up(at_tape *tape, void *kept)
{
    for (deferred *w = kept; w && at_tape_ok(tape); w = w->next) {
        at_mark mark = at_arena_mark(at_tape_arena(tape));
        at_real *dz = at_room(tape, (size_t)(w->rows * w->out) * sizeof *dz);
        at_real *x = at_room(tape, (size_t)(w->rows * w->in) * sizeof *x);
        int64_t row = 0;
        for (const step *s = w->first; dz && x && s; row += s->rows, s = s->next) {
            memcpy(dz + row * w->out, s->dz, (size_t)(s->rows * w->out) * sizeof *dz);
            memcpy(x + row * w->in, s->x, (size_t)(s->rows * w->in) * sizeof *x);
        }
        if (dz && x)
            at_weights_product(tape, w->w_grad, w->in, w->out, w->rows, dz, x);
        at_arena_release(at_tape_arena(tape), mark);
    }
}

bool at_weights_wait(const at_tensor *weights, int64_t rows)
{
    return weights->wants_grad && weights->params && rows < FEW_ROWS;
}

void at_weights_grad(at_tape *tape, at_tensor *weights, int64_t rows, const at_real *dz, const at_real *x)
{
    at_real *w_grad = at_tensor_grad(weights);
    int64_t in = weights->shape.dim[1], out = weights->shape.dim[0];
    if (!w_grad)
        return;
    if (!at_weights_wait(weights, rows)) {
        at_weights_product(tape, w_grad, in, out, rows, dz, x);
        return;
    }
    deferred **at = (deferred **)at_tape_defer(tape, make_up);
    while (*at && (*at)->w_grad != w_grad)
        at = &(*at)->next;
    step *here = at_room(tape, sizeof *here);
    deferred *w = *at ? *at : at_room(tape, sizeof *w);
    if (!here || !w)
        return;
    if (!*at) {
        *w = (deferred){.w_grad = w_grad, .in = in, .out = out};
        w->last = &w->first;
        *at = w;
    }
    *here = (step){.dz = dz, .x = x, .rows = rows};
    *w->last = here;
    w->last = &here->next;
    w->rows += rows;
}

/* dx = gz w,  dw = gz^T x,  db = the sum of gz's rows */
static void linear_backward(at_node *node)
{
    const at_act *act = node->saved;
    at_tensor *x = node->inputs[0], *w = node->inputs[1], *b = node->inputs[2], *y = node->outputs[0];
    bool x_add;
    at_real *x_grad = at_tensor_grad_whole(x, &x_add), *b_grad = at_tensor_grad(b);
    int64_t in = w->shape.dim[1], out = w->shape.dim[0], rows = out ? at_shape_count(y->shape) / out : 0;
    at_tape *tape = y->tape;
    at_act_grad(y, rows, out, *act, b_grad);
    const at_real *gz = y->grad; /* [rows,out] */
    if (x_grad) {
        at_gemm gemm = {.m = rows,
                        .n = in,
                        .k = out,
                        .a = gz,
                        .a_row = out,
                        .a_col = 1,
                        .b = at_weights_wide(w),
                        .b_row = in,
                        .b_col = 1,
                        .packed = at_weights_packed(w, false),
                        .c = x_grad,
                        .c_row = in,
                        .accumulate = x_add};
        if (gemm.b)
            at_product(tape, &gemm);
    }
    at_weights_grad(tape, w, rows, gz, x->value);
}

static const at_op linear_op = {"linear", linear_backward};

at_tensor *at_linear(at_tensor *x, at_tensor *w, at_tensor *b, at_act act)
{
    if (!x || !w)
        return NULL;
    if (w->shape.rank != 2)
        return AT_REFUSE(x->tape, AT_SHAPE, "linear: the weights are %s and must be [out,in]", AT_TEXT(w->shape));
    int64_t out = w->shape.dim[0], in = w->shape.dim[1];
    int last = x->shape.rank - 1;
    if (last < 0 || x->shape.dim[last] != in)
        return AT_REFUSE(x->tape, AT_SHAPE, "linear: the input %s must end in %lld, the second size of the weights %s",
                         AT_TEXT(x->shape), (long long)in, AT_TEXT(w->shape));
    if (b && (b->shape.rank != 1 || b->shape.dim[0] != out))
        return AT_REFUSE(x->tape, AT_SHAPE,
                         "linear: the bias is %s and must be [%lld], the first size of the weights %s",
                         AT_TEXT(b->shape), (long long)out, AT_TEXT(w->shape));
    at_shape shape = x->shape;
    shape.dim[last] = 1;
    int64_t rows = at_shape_count(shape);
    shape.dim[last] = out;
    at_tensor *y = at_tensor_make(x->tape, shape);
    if (!y)
        return NULL;
    at_gemm gemm = {.m = rows,
                    .n = out,
                    .k = in,
                    .a = x->value,
                    .a_row = in,
                    .a_col = 1,
                    .b = w->value,
                    .b_row = 1,
                    .b_col = in,
                    .packed = at_weights_packed(w, true),
                    .narrow = w->value ? (at_narrow){0} : at_params_narrow(w->params, w->param),
                    .c = y->value,
                    .c_row = out,
                    .bias = b ? b->value : NULL,
                    .act = act};
    if (!at_product(x->tape, &gemm))
        return NULL;
    y->spare = act == AT_ACT_NONE;
    return at_record_one(&linear_op, y, (at_tensor *[]){x, w, b}, 3, at_keep(x->tape, &act, sizeof act));
}
