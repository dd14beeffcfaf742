/* Operations on rows: the last dimension of a tensor, or the rows of a table. */
#include <math.h>
#include <string.h>

#include "block.h"
#include "ops.h"
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

/* ---- layer_norm: y = gain (x - mean) r + bias, r = 1 / sqrt(variance + eps), over each row ---- */

typedef struct row_norm {
    double mean, r;
} row_norm;

typedef struct norm_job {
    int64_t size;
    at_real eps;
    row_norm *norms; /* [rows] */
    const at_real *x, *gain, *bias, *g;
    at_real *y, *x_grad;
} norm_job;

static void norm_range(void *context, int64_t from, int64_t to)
{
    const norm_job *job = context;
    int64_t size = job->size;
    for (int64_t row = from; row < to; row++) {
        const at_real *x = job->x + row * size;
        at_real *y = job->y + row * size;
        at_real mean = (at_real)(at_sum_numbers(x, size) / (double)size);
        for (int64_t j = 0; j < size; j++)
            y[j] = (x[j] - mean) * (x[j] - mean);
        double variance = at_sum_numbers(y, size) / (double)size;
        at_real r = (at_real)(1 / sqrt(variance + (double)job->eps));
        for (int64_t j = 0; j < size; j++)
            y[j] = (x[j] - mean) * r * job->gain[j] + job->bias[j];
        job->norms[row] = (row_norm){.mean = mean, .r = r};
    }
}

/* With h = g gain and z = (x - mean) r:  dx = r (h - mean(h) - z mean(h z)) */
static void norm_back_range(void *context, int64_t from, int64_t to)
{
    const norm_job *job = context;
    int64_t size = job->size;
    for (int64_t row = from; row < to; row++) {
        const at_real *x = job->x + row * size, *g = job->g + row * size, *gain = job->gain;
        at_real *x_grad = job->x_grad + row * size;
        at_real mean = (at_real)job->norms[row].mean, r = (at_real)job->norms[row].r;
        double sum = 0, along = 0;
        for (int64_t j = 0; j < size; j++) {
            at_real h = g[j] * gain[j];
            sum += h;
            along += h * ((x[j] - mean) * r);
        }
        at_real mean_h = (at_real)(sum / (double)size), mean_hz = (at_real)(along / (double)size);
        for (int64_t j = 0; j < size; j++)
            x_grad[j] += r * (g[j] * gain[j] - mean_h - (x[j] - mean) * r * mean_hz);
    }
}

/* dgain = sum over the rows of g z,  dbias = sum over the rows of g */
static void layer_norm_backward(at_node *node)
{
    at_tensor *x = node->inputs[0], *gain = node->inputs[1], *bias = node->inputs[2], *y = node->outputs[0];
    int64_t size = gain->shape.dim[0], rows = size ? at_shape_count(x->shape) / size : 0;
    at_real *gain_grad = at_tensor_grad(gain), *bias_grad = at_tensor_grad(bias);
    norm_job job = {.size = size,
                    .norms = node->saved,
                    .x = x->value,
                    .gain = gain->value,
                    .g = y->grad,
                    .x_grad = at_tensor_grad(x)};
    if (job.x_grad)
        at_ranges(rows, size, norm_back_range, &job);
    for (int64_t row = 0; row < rows; row++) {
        const at_real *in = job.x + row * size, *g = job.g + row * size;
        at_real mean = (at_real)job.norms[row].mean, r = (at_real)job.norms[row].r;
        for (int64_t j = 0; gain_grad && j < size; j++)
            gain_grad[j] += g[j] * ((in[j] - mean) * r);
        for (int64_t j = 0; bias_grad && j < size; j++)
            bias_grad[j] += g[j];
    }
}

static const at_op layer_norm_op = {"layer_norm", layer_norm_backward};

at_tensor *at_layer_norm(at_tensor *x, at_tensor *gain, at_tensor *bias, at_real eps)
{
    if (!x || !gain || !bias)
        return NULL;
    int64_t size = x->shape.rank > 0 ? x->shape.dim[x->shape.rank - 1] : 0;
    if (size < 1 || gain->shape.rank != 1 || gain->shape.dim[0] != size || !at_shape_same(gain->shape, bias->shape))
        return AT_REFUSE(x->tape, "layer_norm: the input is %s, so gain and bias must be [%lld]; they are %s and %s",
                         AT_TEXT(x->shape), (long long)size, AT_TEXT(gain->shape), AT_TEXT(bias->shape));
    int64_t rows = at_shape_count(x->shape) / size;
    at_tensor *y = at_tensor_make(x->tape, x->shape);
    row_norm *norms = y ? at_room(x->tape, (size_t)rows * sizeof *norms) : NULL;
    if (!norms)
        return NULL;
    norm_job job = {.size = size,
                    .eps = eps,
                    .norms = norms,
                    .x = x->value,
                    .gain = gain->value,
                    .bias = bias->value,
                    .y = y->value};
    at_ranges(rows, size, norm_range, &job);
    return at_record_one(&layer_norm_op, y, (at_tensor *[]){x, gain, bias}, 3, norms);
}

/* ---- dropout: y = x / keep with probability keep, else 0 ---- */

/* Which numbers stay is a function of (seed, counter, index), so any thread can tell, and the way back draws again
 * instead of storing it. */
typedef struct dropping {
    uint64_t seed, counter;
    at_real keep;
    bool add; /* on the way back: to += */
    int64_t count;
    at_real *to;
    const at_real *from;
} dropping;

/* Four numbers share the four words of one lane; a range is in fours. */
static void drop_range(void *context, int64_t first, int64_t last)
{
    const dropping *d = context;
    const at_real scale = 1 / d->keep;
    const uint64_t limit = (uint64_t)((double)d->keep * 0x1p32);
    for (int64_t four = first; four < last; four++) {
        uint32_t word[4];
        at_philox(d->seed, d->counter, (uint64_t)four, word);
        for (int64_t i = 4 * four; i < 4 * four + 4 && i < d->count; i++) {
            at_real y = word[i % 4] < limit ? d->from[i] * scale : 0;
            d->to[i] = d->add ? d->to[i] + y : y;
        }
    }
}

/* dx = g / keep where x stayed */
static void dropout_backward(at_node *node)
{
    dropping d = *(const dropping *)node->saved;
    d.add = true;
    d.to = at_tensor_grad(node->inputs[0]);
    d.from = node->outputs[0]->grad;
    if (d.to)
        at_ranges((d.count + 3) / 4, 4, drop_range, &d);
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
    dropping d = {.seed = rng->seed,
                  .counter = rng->counter++,
                  .keep = keep,
                  .count = at_shape_count(x->shape),
                  .to = y->value,
                  .from = x->value};
    at_ranges((d.count + 3) / 4, 4, drop_range, &d);
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
