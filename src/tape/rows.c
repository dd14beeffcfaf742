/* Operations on rows: the last dimension of a tensor, or the rows of a table. */
#include <math.h>
#include <string.h>

#include "kernels/isa.h"
#include "kernels/passes.h"
#include "kernels/rows.h"
#include "tape/block.h"
#include "tape/ops.h"
#include "tape/params.h"

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
        return AT_REFUSE(tape, AT_SHAPE, "embedding: the table is %s and must be [V,D]; the ids are %s",
                         AT_TEXT(table->shape), AT_TEXT(ids_shape));
    int64_t rows = table->shape.dim[0], size = table->shape.dim[1], count = at_shape_count(ids_shape);
    for (int64_t i = 0; i < count; i++) {
        if (ids[i] < -1 || ids[i] >= rows)
            return AT_REFUSE(tape, AT_FAILED, "embedding: id %d at position %lld is not in the table of %lld rows",
                             (int)ids[i], (long long)i, (long long)rows);
    }
    at_shape shape = ids_shape;
    shape.dim[shape.rank++] = size;
    at_tensor *y = at_tensor_make(tape, shape);
    if (!y)
        return NULL;
    const at_narrow narrow = table->value ? (at_narrow){0} : at_params_narrow(table->params, table->param);
    for (int64_t i = 0; i < count; i++) {
        if (ids[i] < 0)
            memset(y->value + i * size, 0, (size_t)size * sizeof *y->value);
        else if (narrow.numbers)
            at_narrow_row(&narrow, size, ids[i], y->value + i * size);
        else
            memcpy(y->value + i * size, table->value + ids[i] * size, (size_t)size * sizeof *y->value);
    }
    return at_record_one(&embedding_op, y, &table, 1, at_keep(tape, ids, (size_t)count * sizeof *ids));
}

/* ---- dropout: y = x / keep with probability keep, else 0 ---- */

/* Which numbers stay is a function of (seed, counter, index), so any thread can tell, and the backward pass draws again
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
        return AT_REFUSE(x->tape, AT_USAGE, "dropout: the share to keep is %g and must be above 0 and at most 1",
                         (double)keep);
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
        return AT_REFUSE(x->tape, AT_SHAPE,
                         "maxout: the input is %s and must end in an even size, since it takes pairs", AT_TEXT(shape));
    shape.dim[shape.rank - 1] /= 2;
    at_tensor *y = at_tensor_make(x->tape, shape);
    if (!y)
        return NULL;
    int64_t count = at_shape_count(shape);
    for (int64_t i = 0; i < count; i++)
        y->value[i] = x->value[2 * i + second_wins(x->value + 2 * i)];
    return at_record_one(&maxout_op, y, &x, 1, NULL);
}
