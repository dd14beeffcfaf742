/* Cross-entropy of a softmax. */
#include <math.h>
#include <string.h>

#include "kernels/isa.h"
#include "kernels/passes.h"
#include "tape/block.h"
#include "tape/ops.h"

/* ---- cross_entropy: the sum over the rows n of -sum_v t_nv log p_nv, p_n = softmax(z_n), target v = c(n) ----
 *
 * t_nv = (1 - s) [v = c] + s / V, so a row's loss is
 *   log sum_v e^(z_v - max) + (1 - s) (max - z_c) + s (max - mean_v z_v),
 * which cannot overflow; large logits that differ by little lose nothing in the first two terms. A row that is not finite
 * has a loss of NaN. Rows with target -1 are not read.
 *
 * There is no larger tensor than the logits, so their gradient overwrites them where nothing else needs them. */

typedef struct entropy_row {
    at_real max, sum; /* of e^(z - max) */
} entropy_row;

typedef struct entropy_job {
    int64_t size;
    at_real smoothing;
    const int32_t *targets;
    entropy_row *rows; /* [N] */
    double *losses;    /* [N] */
    const at_real *z;
    at_real g;
    at_real *z_grad;
    bool add;
} entropy_job;

static void entropy_range(void *context, int64_t from, int64_t to)
{
    const entropy_job *job = context;
    const double s = job->smoothing;
    for (int64_t row = from; row < to; row++) {
        const at_real *z = job->z + row * job->size;
        job->losses[row] = 0;
        if (job->targets[row] < 0)
            continue;
        log_sum_row l = at_isa()->passes->log_sum(z, job->size);
        job->rows[row] = (entropy_row){l.max, (at_real)l.sum};
        job->losses[row] = log(l.sum) + (1 - s) * ((double)l.max - (double)z[job->targets[row]]);
        if (s != 0)
            job->losses[row] += s * ((double)l.max - l.total / (double)job->size);
    }
}

/* dz_v = g (p_v - s / V - (1 - s) [v = c]) */
static void entropy_back_range(void *context, int64_t from, int64_t to)
{
    const entropy_job *job = context;
    const at_real each = job->g * job->smoothing / (at_real)job->size;
    for (int64_t row = from; row < to; row++) {
        const at_real *z = job->z + row * job->size;
        at_real *grad = job->z_grad + row * job->size;
        if (job->targets[row] < 0) {
            if (!job->add)
                memset(grad, 0, (size_t)job->size * sizeof *grad);
            continue;
        }
        at_isa()->passes->softmax_back(grad, z, job->size, job->rows[row].max, job->g / job->rows[row].sum, each,
                                       job->add);
        grad[job->targets[row]] -= job->g * (1 - job->smoothing);
    }
}

static void cross_entropy_backward(at_node *node)
{
    entropy_job job = *(const entropy_job *)node->saved;
    at_shape shape = node->inputs[0]->shape;
    job.g = *node->outputs[0]->grad;
    job.z_grad = at_tensor_grad_over(node->inputs[0], &job.add);
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
        return AT_REFUSE(tape, AT_SHAPE, "cross_entropy: the logits are %s and must be [N,V]", AT_TEXT(logits->shape));
    int64_t rows = logits->shape.dim[0], size = logits->shape.dim[1];
    for (int64_t i = 0; i < rows; i++) {
        if (targets[i] < -1 || targets[i] >= size)
            return AT_REFUSE(tape, AT_FAILED, "cross_entropy: target %d of row %lld is not among the %lld classes",
                             (int)targets[i], (long long)i, (long long)size);
    }
    at_tensor *loss = at_tensor_make(tape, AT_SHAPE(1));
    entropy_job job = {.size = size,
                       .smoothing = smoothing,
                       .targets = at_keep(tape, targets, (size_t)rows * sizeof *targets),
                       .rows = at_room(tape, (size_t)rows * sizeof *job.rows),
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
