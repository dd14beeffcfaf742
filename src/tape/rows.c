/* Operations on rows: the last dimension of a tensor, or the rows of a table. */
#include <math.h>
#include <string.h>

#include "block.h"
#include "isa.h"
#include "ops.h"
#include "passes.h"
#include "rows.h"

/* ---- embedding: y_i = table[id_i], zeros for id -1 ---- */

/* dtable[id_i] += g_i, in the order of i: an id may come many times */
static void embedding_backward(at_node *node)
{
    const int32_t *ids = node->saved;
    at_tensor *table = node->inputs[0], *y = node->outputs[0];
    at_real *grad = at_tensor_grad(table);
    int64_t size = table->shape.dim[1], count = size ? at_shape_count(y->shape) / size : 0;
    for (int64_t i = 0; grad && i < count; i++) {
        if (ids[i] < 0)
            continue;
        at_real *row = grad + ids[i] * size;
        for (int64_t j = 0; j < size; j++)
            row[j] += y->grad[i * size + j];
    }
}

static const at_op embedding_op = {"embedding", embedding_backward};

at_tensor *at_embedding(at_tensor *table, const int32_t *ids, at_shape ids_shape)
{
    if (!table)
        return NULL;
    at_tape *tape = table->tape;
    if (table->shape.rank != 2 || ids_shape.rank >= AT_MAX_RANK)
        return AT_REFUSE(tape, "embedding: the table is %s and must be [V,D]; the ids are %s", AT_TEXT(table->shape),
                         AT_TEXT(ids_shape));
    int64_t rows = table->shape.dim[0], size = table->shape.dim[1], count = at_shape_count(ids_shape);
    for (int64_t i = 0; i < count; i++) {
        if (ids[i] < -1 || ids[i] >= rows)
            return AT_REFUSE(tape, "embedding: id %d at place %lld is not in the table of %lld rows", (int)ids[i],
                             (long long)i, (long long)rows);
    }
    at_shape shape = ids_shape;
    shape.dim[shape.rank++] = size;
    at_tensor *y = at_tensor_make(tape, shape);
    if (!y)
        return NULL;
    for (int64_t i = 0; i < count; i++) {
        if (ids[i] < 0)
            memset(y->value + i * size, 0, (size_t)size * sizeof *y->value);
        else
            memcpy(y->value + i * size, table->value + ids[i] * size, (size_t)size * sizeof *y->value);
    }
    return at_record_one(&embedding_op, y, &table, 1, at_keep(tape, ids, (size_t)count * sizeof *ids));
}

/* ---- dropout: y = x / keep with probability keep, else 0 ---- */

/* Which numbers stay is a function of (seed, counter, index), so any thread can tell, and the way back draws again
 * instead of storing it. */
typedef struct dropping {
    uint64_t seed, counter;
    at_real keep;
    bool add; /* to += */
    at_real *to;
    const at_real *from;
} dropping;

static void drop_range(void *context, int64_t first, int64_t last)
{
    enum { STRETCH = 512 };
    const dropping *d = context;
    const pass_kernels *k = at_isa()->passes;
    at_real mask[STRETCH];
    for (int64_t at = first; at < last; at += STRETCH) {
        int64_t count = last - at < STRETCH ? last - at : STRETCH;
        k->mask(mask, d->seed, d->counter, at, count, d->keep);
        k->masked(d->to + at, d->from + at, mask, count, d->add);
    }
}

/* dx = g / keep where x stayed */
static void dropout_backward(at_node *node)
{
    dropping d = *(const dropping *)node->saved;
    d.to = at_tensor_grad_whole(node->inputs[0], &d.add);
    d.from = node->outputs[0]->grad;
    if (d.to)
        at_ranges(at_shape_count(node->inputs[0]->shape), 1, drop_range, &d);
}

static const at_op dropout_op = {"dropout", dropout_backward};

at_tensor *at_dropout(at_tensor *x, at_real keep, at_rng *rng)
{
    if (!x || keep == 1)
        return x;
    if (!(keep > 0 && keep < 1))
        return AT_REFUSE(x->tape, "dropout: the share to keep is %g and must be above 0 and at most 1", (double)keep);
    at_tensor *y = at_tensor_make(x->tape, x->shape);
    if (!y)
        return NULL;
    dropping d = {.seed = rng->seed, .counter = rng->counter++, .keep = keep, .to = y->value, .from = x->value};
    at_ranges(at_shape_count(x->shape), 1, drop_range, &d);
    return at_record_one(&dropout_op, y, &x, 1, at_keep(x->tape, &d, sizeof d));
}

/* ---- maxout: y_i = max(x_2i, x_2i+1) ---- */

/* Whether the second of a pair is the larger; the first of equals, and a NaN whichever side it is on. */
static bool second_wins(const at_real *pair)
{
    return pair[1] > pair[0] || isnan(pair[1]);
}

/* dx of the larger one = g */
static void maxout_backward(at_node *node)
{
    const at_real *x = node->inputs[0]->value, *g = node->outputs[0]->grad;
    at_real *grad = at_tensor_grad(node->inputs[0]);
    int64_t count = at_shape_count(node->outputs[0]->shape);
    for (int64_t i = 0; grad && i < count; i++)
        grad[2 * i + second_wins(x + 2 * i)] += g[i];
}

static const at_op maxout_op = {"maxout", maxout_backward};

at_tensor *at_maxout(at_tensor *x)
{
    if (!x)
        return NULL;
    at_shape shape = x->shape;
    if (shape.rank < 1 || shape.dim[shape.rank - 1] % 2 != 0)
        return AT_REFUSE(x->tape, "maxout: the input is %s and must end in an even size, since it takes pairs",
                         AT_TEXT(shape));
    shape.dim[shape.rank - 1] /= 2;
    at_tensor *y = at_tensor_make(x->tape, shape);
    if (!y)
        return NULL;
    int64_t count = at_shape_count(shape);
    for (int64_t i = 0; i < count; i++)
        y->value[i] = x->value[2 * i + second_wins(x->value + 2 * i)];
    return at_record_one(&maxout_op, y, &x, 1, NULL);
}

/* ---- cross_entropy: the sum over the rows n of -sum_v t_nv log p_nv, p_n = softmax(z_n), target v = c(n) ----
 *
 * t_nv = (1 - s) [v = c] + s / V, so a row's loss is  L - (1 - s) z_c - (s / V) sum_v z_v,  L = log sum_v e^(z_v),
 * with L = max + log sum_v e^(z_v - max), which cannot overflow. Rows with target -1 are not read. */

enum { STRETCH = 256 }; /* exponentials at a time, on the stack */

typedef struct entropy_job {
    int64_t size;
    at_real smoothing;
    const int32_t *targets;
    double *logs;   /* [N]: L of each row */
    double *losses; /* [N] */
    const at_real *z;
    at_real g;
    at_real *z_grad;
} entropy_job;

static void entropy_range(void *context, int64_t from, int64_t to)
{
    const entropy_job *job = context;
    for (int64_t row = from; row < to; row++) {
        const at_real *z = job->z + row * job->size;
        job->losses[row] = 0;
        if (job->targets[row] < 0)
            continue;
        at_real max = z[0], e[STRETCH];
        for (int64_t v = 1; v < job->size; v++)
            max = z[v] > max ? z[v] : max;
        double sum = 0;
        for (int64_t first = 0; first < job->size; first += STRETCH) {
            int64_t length = job->size - first < STRETCH ? job->size - first : STRETCH;
            for (int64_t i = 0; i < length; i++)
                e[i] = z[first + i] - max;
            at_rows_exp(e, e, length);
            sum += at_sum_numbers(e, length);
        }
        double s = job->smoothing, log_sum = (double)max + log(sum);
        job->logs[row] = log_sum;
        job->losses[row] = log_sum - (1 - s) * (double)z[job->targets[row]];
        if (s != 0)
            job->losses[row] -= s * at_sum_numbers(z, job->size) / (double)job->size;
    }
}

/* dz_v = g (p_v - s / V - (1 - s) [v = c]) */
static void entropy_back_range(void *context, int64_t from, int64_t to)
{
    const entropy_job *job = context;
    const at_real each = job->smoothing / (at_real)job->size;
    for (int64_t row = from; row < to; row++) {
        if (job->targets[row] < 0)
            continue;
        const at_real *z = job->z + row * job->size, log_sum = (at_real)job->logs[row];
        at_real *grad = job->z_grad + row * job->size, p[STRETCH];
        for (int64_t first = 0; first < job->size; first += STRETCH) {
            int64_t length = job->size - first < STRETCH ? job->size - first : STRETCH;
            for (int64_t i = 0; i < length; i++)
                p[i] = z[first + i] - log_sum;
            at_rows_exp(p, p, length);
            for (int64_t i = 0; i < length; i++)
                grad[first + i] += job->g * (p[i] - each);
        }
        grad[job->targets[row]] -= job->g * (1 - job->smoothing);
    }
}

static void cross_entropy_backward(at_node *node)
{
    entropy_job job = *(const entropy_job *)node->saved;
    at_shape shape = node->inputs[0]->shape;
    job.g = *node->outputs[0]->grad;
    job.z_grad = at_tensor_grad(node->inputs[0]);
    if (job.z_grad)
        at_ranges(shape.dim[0], shape.dim[1], entropy_back_range, &job);
}

static const at_op cross_entropy_op = {"cross_entropy", cross_entropy_backward};

at_tensor *at_cross_entropy(at_tensor *logits, const int32_t *targets, at_real smoothing)
{
    if (!logits)
        return NULL;
    at_tape *tape = logits->tape;
    if (logits->shape.rank != 2 || logits->shape.dim[1] < 1)
        return AT_REFUSE(tape, "cross_entropy: the logits are %s and must be [N,V]", AT_TEXT(logits->shape));
    int64_t rows = logits->shape.dim[0], size = logits->shape.dim[1];
    for (int64_t i = 0; i < rows; i++) {
        if (targets[i] < -1 || targets[i] >= size)
            return AT_REFUSE(tape, "cross_entropy: target %d of row %lld is not among the %lld classes",
                             (int)targets[i], (long long)i, (long long)size);
    }
    at_tensor *loss = at_tensor_make(tape, AT_SHAPE(1));
    entropy_job job = {.size = size,
                       .smoothing = smoothing,
                       .targets = at_keep(tape, targets, (size_t)rows * sizeof *targets),
                       .logs = at_room(tape, (size_t)rows * sizeof *job.logs),
                       .losses = at_room(tape, (size_t)rows * sizeof *job.losses),
                       .z = logits->value};
    void *saved = at_keep(tape, &job, sizeof job);
    if (!loss || !saved)
        return NULL;
    at_ranges(rows, size, entropy_range, &job);
    double sum = 0;
    for (int64_t i = 0; i < rows; i++)
        sum += job.losses[i];
    *loss->value = (at_real)sum;
    return at_record_one(&cross_entropy_op, loss, &logits, 1, saved);
}
