/* Group norm of pictures. */
#include "tape/block.h"
#include "tape/grid.h"
#include "tape/ops.h"

#include <math.h>
#include <string.h>

/* ---- group_norm: y = act(gain (x - mean) r + bias), r = 1 / sqrt(variance + eps), act none or relu ----
 *
 * Mean and variance of one group: all cells of one picture, channels g C/G .. (g+1) C/G - 1. A picture is the work of
 * one thread, in the order of its cells, so it does not see its neighbours. Sums are made in double, one for each
 * channel, and then added up in the order of the channels. */

typedef struct norms {
    at_grids grids;
    int64_t channels, groups;
    at_real eps;
    bool relu;
    const at_real *x, *gain, *bias;
    at_real *y;
    double *stats; /* [pictures, groups, 2]: mean, r */
    double *sums;  /* [pictures, 2, channels]: sums of a picture; in the backward pass gradients of gain and bias */
    /* the backward pass */
    at_real *y_grad; /* becomes that before relu */
    at_real *x_grad;
    bool x_add; /* add to x_grad, or write it; then it may be x itself */
} norms;

static int64_t cells_of(const norms *j, int64_t picture)
{
    return j->grids.first[picture + 1] - j->grids.first[picture];
}

/* mean and r of every group of a picture: first the sums of x, then of (x - mean)^2 */
static void measure(const norms *j, int64_t p, const at_real *x, double *stats)
{
    const int64_t C = j->channels, wide = C / j->groups, cells = cells_of(j, p);
    double *sum = j->sums + p * 2 * C;
    for (int square = 0; square < 2; square++) {
        memset(sum, 0, (size_t)C * sizeof *sum);
        double *mean = sum + C; /* of the channel's group */
        for (int64_t cell = 0; cell < cells; cell++)
            for (int64_t c = 0; c < C; c++) {
                const double d = square ? x[cell * C + c] - mean[c] : x[cell * C + c];
                sum[c] += square ? d * d : d;
            }
        for (int64_t g = 0; g < j->groups; g++) {
            double total = 0;
            for (int64_t c = g * wide; c < (g + 1) * wide; c++)
                total += sum[c];
            total /= (double)(cells * wide);
            stats[2 * g + square] = square ? 1 / sqrt(total + j->eps) : total;
            for (int64_t c = g * wide; c < (g + 1) * wide && !square; c++)
                mean[c] = total;
        }
    }
}

static void norm_pictures(void *context, int64_t from, int64_t to)
{
    const norms *j = context;
    const int64_t C = j->channels, wide = C / j->groups;
    for (int64_t p = from; p < to; p++) {
        const at_real *x = j->x + j->grids.first[p] * C;
        at_real *y = j->y + j->grids.first[p] * C;
        double *stats = j->stats + p * 2 * j->groups;
        measure(j, p, x, stats);
        for (int64_t cell = 0; cell < cells_of(j, p); cell++, x += C, y += C)
            for (int64_t g = 0; g < j->groups; g++) {
                const at_real mean = (at_real)stats[2 * g], r = (at_real)stats[2 * g + 1];
                for (int64_t c = g * wide; c < (g + 1) * wide; c++)
                    y[c] = j->gain[c] * ((x[c] - mean) * r) + j->bias[c];
                for (int64_t c = g * wide; c < (g + 1) * wide && j->relu; c++)
                    y[c] = y[c] < 0 ? 0 : y[c]; /* a NaN stays one */
            }
    }
}

/* With n = (x - mean) r, N numbers in the group, and g = 0 where relu is flat:
 *   dgain = sum over cells of g n,  dbias = sum over cells of g,
 *   dx = r (gain g - m1 - n m2),  m1 = (sum of gain dbias) / N,  m2 = (sum of gain dgain) / N */
static void norm_back_pictures(void *context, int64_t from, int64_t to)
{
    const norms *j = context;
    const int64_t C = j->channels, wide = C / j->groups;
    for (int64_t p = from; p < to; p++) {
        const int64_t cells = cells_of(j, p), at = j->grids.first[p] * C;
        const double *stats = j->stats + p * 2 * j->groups;
        double *gain_grad = j->sums + p * 2 * C, *bias_grad = gain_grad + C;
        memset(gain_grad, 0, (size_t)(2 * C) * sizeof *gain_grad);
        for (int64_t g = 0; g < j->groups; g++) {
            const double mean = stats[2 * g], r = stats[2 * g + 1];
            double m1 = 0, m2 = 0;
            for (int64_t cell = 0; cell < cells; cell++) {
                const at_real *y = j->y + at + cell * C;
                at_real *y_grad = j->y_grad + at + cell * C;
                for (int64_t c = g * wide; c < (g + 1) * wide && j->relu; c++)
                    y_grad[c] = y[c] > 0 ? y_grad[c] : 0;
                for (int64_t c = g * wide; c < (g + 1) * wide; c++) {
                    const double grad = y_grad[c];
                    gain_grad[c] += grad * ((j->x[at + cell * C + c] - mean) * r);
                    bias_grad[c] += grad;
                }
            }
            for (int64_t c = g * wide; c < (g + 1) * wide; c++) {
                m1 += j->gain[c] * bias_grad[c];
                m2 += j->gain[c] * gain_grad[c];
            }
            m1 /= (double)(cells * wide);
            m2 /= (double)(cells * wide);
            for (int64_t cell = 0; cell < cells && j->x_grad; cell++)
                for (int64_t c = g * wide; c < (g + 1) * wide; c++) {
                    const int64_t i = at + cell * C + c;
                    const at_real grad = (at_real)(r * (j->gain[c] * j->y_grad[i] - m1 - (j->x[i] - mean) * r * m2));
                    j->x_grad[i] = j->x_add ? j->x_grad[i] + grad : grad;
                }
        }
    }
}

static int64_t work_of(const norms *j)
{
    return j->grids.count ? 4 * j->grids.first[j->grids.count] / j->grids.count * j->channels : 0;
}

static void group_norm_backward(at_node *node)
{
    norms j = *(const norms *)node->saved;
    const int64_t C = j.channels;
    at_real *gain_grad = at_tensor_grad(node->inputs[1]), *bias_grad = at_tensor_grad(node->inputs[2]);
    j.x_grad = at_tensor_grad_over(node->inputs[0], &j.x_add);
    j.y_grad = node->outputs[0]->grad;
    at_ranges(j.grids.count, work_of(&j), norm_back_pictures, &j);
    for (int64_t p = 0; p < j.grids.count; p++)
        for (int64_t c = 0; c < C; c++) {
            if (gain_grad)
                gain_grad[c] += (at_real)j.sums[p * 2 * C + c];
            if (bias_grad)
                bias_grad[c] += (at_real)j.sums[p * 2 * C + C + c];
        }
}

static const at_op group_norm_op = {"group_norm", group_norm_backward};

at_tensor *at_group_norm(at_tensor *x, const at_grids *grids, int64_t groups, at_tensor *gain, at_tensor *bias,
                         at_real eps, bool relu)
{
    if (!x || !gain || !bias || !grids->first)
        return NULL;
    const int64_t cells = grids->first[grids->count], C = x->shape.rank == 2 ? x->shape.dim[1] : 0;
    if (C < 1 || x->shape.dim[0] != cells)
        return AT_REFUSE(x->tape, AT_SHAPE,
                         "group_norm: the input is %s and must be [%lld,channels], a row for each cell",
                         AT_TEXT(x->shape), (long long)cells);
    if (groups < 1 || C % groups)
        return AT_REFUSE(x->tape, AT_SHAPE, "group_norm: %lld channels cannot be divided into %lld groups",
                         (long long)C, (long long)groups);
    if (gain->shape.rank != 1 || gain->shape.dim[0] != C || !at_shape_same(gain->shape, bias->shape))
        return AT_REFUSE(x->tape, AT_SHAPE,
                         "group_norm: the input is %s, so gain and bias must be [%lld]; they are %s and %s",
                         AT_TEXT(x->shape), (long long)C, AT_TEXT(gain->shape), AT_TEXT(bias->shape));
    norms j = {.grids = *grids, .channels = C, .groups = groups, .eps = eps, .relu = relu};
    j.x = x->value;
    j.gain = gain->value;
    j.bias = bias->value;
    at_tensor *y = at_tensor_make(x->tape, x->shape);
    j.stats = at_room(x->tape, (size_t)(grids->count * 2 * groups) * sizeof *j.stats);
    j.sums = at_room(x->tape, (size_t)(grids->count * 2 * C) * sizeof *j.sums);
    if (!y || !j.stats || !j.sums)
        return NULL;
    j.y = y->value;
    at_ranges(grids->count, work_of(&j), norm_pictures, &j);
    y->spare = !relu;
    return at_record_one(&group_norm_op, y, (at_tensor *[]){x, gain, bias}, 3, at_keep(x->tape, &j, sizeof j));
}
