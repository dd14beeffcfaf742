/* Operations that depend on positions: query i at position start + i, key j at position j. */
#include <math.h>
#include <string.h>

#include "kernels/rows.h"
#include "tape/block.h"
#include "tape/ops.h"

/* ---- Rows by clipped offset ---- */

/* Along a row of keys the entry r = clip(j - position, -R, R) + R stays 0 up to key `first`, then rises by one with
 * each key up to key `last`, and stays 2R from there on. */
typedef struct ramp {
    int64_t first, last; /* keys [first, last) are on the ramp; both within 0..keys */
    int64_t entry;       /* r of key `first` */
} ramp;

static int64_t within(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

static ramp ramp_of(int64_t position, int64_t reach, int64_t keys)
{
    ramp p = {.first = within(position - reach, 0, keys), .last = within(position + reach + 1, 0, keys)};
    p.entry = p.first - position + reach;
    return p;
}

/* out_j = table_r(j) */
static void row_by_offset(at_real *out, const at_real *table, int64_t position, int64_t reach, int64_t keys)
{
    ramp p = ramp_of(position, reach, keys);
    for (int64_t j = 0; j < p.first; j++)
        out[j] = table[0];
    for (int64_t j = p.first; j < p.last; j++)
        out[j] = table[p.entry + j - p.first];
    for (int64_t j = p.last; j < keys; j++)
        out[j] = table[2 * reach];
}

/* table_r += the sum of x_j over the keys j with r(j) = r */
static void row_sum_by_offset(at_real *table, const at_real *x, int64_t position, int64_t reach, int64_t keys)
{
    ramp p = ramp_of(position, reach, keys);
    table[0] += (at_real)at_sum_numbers(x, p.first);
    for (int64_t j = p.first; j < p.last; j++)
        table[p.entry + j - p.first] += x[j];
    table[2 * reach] += (at_real)at_sum_numbers(x + p.last, keys - p.last);
}

typedef struct offsets {
    int64_t queries, keys, start, reach;
    bool shared;     /* one row of the table for all queries */
    at_real *table;  /* [blocks, queries or 1, 2R+1] */
    at_real *matrix; /* [blocks, queries, keys] */
} offsets;

static at_real *table_row(const offsets *o, int64_t row)
{
    return o->table + (o->shared ? row / o->queries : row) * (2 * o->reach + 1);
}

static void look_up_range(void *context, int64_t from, int64_t to)
{
    const offsets *o = context;
    for (int64_t row = from; row < to; row++) {
        at_real *out = o->matrix + row * o->keys;
        row_by_offset(out, table_row(o, row), o->start + row % o->queries, o->reach, o->keys);
    }
}

static void sum_up_range(void *context, int64_t from, int64_t to)
{
    const offsets *o = context;
    for (int64_t row = from; row < to; row++) {
        const at_real *x = o->matrix + row * o->keys;
        row_sum_by_offset(table_row(o, row), x, o->start + row % o->queries, o->reach, o->keys);
    }
}

/* ---- by_offset: y_ij = table_i[clip(j - (start + i), -R, R) + R] ---- */

/* dtable_ir = the sum of g_ij over the keys with r(j) = r, and over the queries when they share a row */
static void by_offset_backward(at_node *node)
{
    offsets o = *(const offsets *)node->saved;
    o.table = at_tensor_grad(node->inputs[0]);
    o.matrix = node->outputs[0]->grad;
    if (!o.table || o.keys == 0)
        return;
    int64_t rows = at_shape_count(node->outputs[0]->shape) / o.keys;
    if (o.shared)
        sum_up_range(&o, 0, rows);
    else
        at_ranges(rows, o.keys, sum_up_range, &o);
}

static const at_op by_offset_op = {"by_offset", by_offset_backward};

at_tensor *at_by_offset(at_tensor *table, int64_t queries, int64_t keys, int64_t start)
{
    if (!table)
        return NULL;
    at_shape t = table->shape;
    if (t.rank != 4 || t.dim[3] % 2 != 1)
        return AT_REFUSE(table->tape, AT_SHAPE, "by_offset: the table is %s and must be [B,H,Q,2R+1]", AT_TEXT(t));
    if (t.dim[2] != 1 && t.dim[2] != queries)
        return AT_REFUSE(table->tape, AT_SHAPE, "by_offset: the table %s has rows for %lld queries and there are %lld",
                         AT_TEXT(t), (long long)t.dim[2], (long long)queries);
    at_tensor *y = at_tensor_make(table->tape, AT_SHAPE(t.dim[0], t.dim[1], queries, keys));
    if (!y)
        return NULL;
    offsets o = {.queries = queries, .keys = keys, .start = start, .reach = t.dim[3] / 2, .shared = t.dim[2] == 1};
    void *saved = at_keep(table->tape, &o, sizeof o);
    o.table = table->value;
    o.matrix = y->value;
    at_ranges(t.dim[0] * t.dim[1] * queries, keys, look_up_range, &o);
    return at_record_one(&by_offset_op, y, &table, 1, saved);
}

/* ---- sum_by_offset: y_ir = the sum of w_ij over the keys with clip(j - (start + i), -R, R) + R = r ---- */

static void look_up_add_range(void *context, int64_t from, int64_t to)
{
    const offsets *o = context;
    for (int64_t row = from; row < to; row++) {
        const at_real *table = table_row(o, row);
        at_real *x = o->matrix + row * o->keys;
        int64_t position = o->start + row % o->queries;
        for (int64_t j = 0; j < o->keys; j++)
            x[j] += table[within(j - position, -o->reach, o->reach) + o->reach];
    }
}

/* dw_ij = g_i at r(j) */
static void sum_by_offset_backward(at_node *node)
{
    offsets o = *(const offsets *)node->saved;
    o.matrix = at_tensor_grad(node->inputs[0]);
    o.table = node->outputs[0]->grad;
    if (o.matrix && o.keys > 0)
        at_ranges(at_shape_count(node->inputs[0]->shape) / o.keys, o.keys, look_up_add_range, &o);
}

static const at_op sum_by_offset_op = {"sum_by_offset", sum_by_offset_backward};

at_tensor *at_sum_by_offset(at_tensor *w, int64_t reach, int64_t start)
{
    if (!w)
        return NULL;
    at_shape s = w->shape;
    if (s.rank != 4 || reach < 0)
        return AT_REFUSE(w->tape, AT_SHAPE,
                         "sum_by_offset: the weights are %s and must be [B,H,Q,K], the reach %lld and 0 or more",
                         AT_TEXT(s), (long long)reach);
    at_tensor *y = at_tensor_make(w->tape, AT_SHAPE(s.dim[0], s.dim[1], s.dim[2], 2 * reach + 1));
    if (!y)
        return NULL;
    offsets o = {.queries = s.dim[2], .keys = s.dim[3], .start = start, .reach = reach};
    void *saved = at_keep(w->tape, &o, sizeof o);
    o.matrix = w->value;
    o.table = y->value;
    memset(y->value, 0, (size_t)at_shape_count(y->shape) * sizeof *y->value);
    at_ranges(s.dim[0] * s.dim[1] * s.dim[2], s.dim[3], sum_up_range, &o);
    return at_record_one(&sum_by_offset_op, y, &w, 1, saved);
}

/* ---- gaussian: y_s = exp(-(s - p)^2 / (2 sigma^2)) for s = 0 .. keys-1 ---- */

typedef struct bells {
    int64_t keys;
    at_real sigma;
    const at_real *p, *g;
    at_real *y, *p_grad;
} bells;

static void bell_range(void *context, int64_t from, int64_t to)
{
    const bells *b = context;
    for (int64_t row = from; row < to; row++) {
        at_real *y = b->y + row * b->keys;
        for (int64_t s = 0; s < b->keys; s++) {
            at_real z = ((at_real)s - b->p[row]) / b->sigma;
            y[s] = -z * z / 2;
        }
        at_rows_exp(y, y, b->keys);
    }
}

/* dp = sum_s g_s y_s (s - p) / sigma^2 */
static void bell_back_range(void *context, int64_t from, int64_t to)
{
    const bells *b = context;
    for (int64_t row = from; row < to; row++) {
        const at_real *y = b->y + row * b->keys, *g = b->g + row * b->keys;
        at_real sum = 0;
        for (int64_t s = 0; s < b->keys; s++)
            sum += g[s] * y[s] * ((at_real)s - b->p[row]);
        b->p_grad[row] += sum / (b->sigma * b->sigma);
    }
}

static void gaussian_backward(at_node *node)
{
    at_tensor *p = node->inputs[0], *y = node->outputs[0];
    bells b = {.keys = y->shape.dim[y->shape.rank - 1],
               .sigma = *(const at_real *)node->saved,
               .p = p->value,
               .g = y->grad,
               .y = y->value,
               .p_grad = at_tensor_grad(p)};
    if (b.p_grad)
        at_ranges(at_shape_count(p->shape), b.keys, bell_back_range, &b);
}

static const at_op gaussian_op = {"gaussian", gaussian_backward};

at_tensor *at_gaussian(at_tensor *p, int64_t keys, at_real sigma)
{
    if (!p)
        return NULL;
    at_shape shape = p->shape;
    if (shape.rank == AT_MAX_RANK || !(sigma > 0))
        return AT_REFUSE(p->tape, sigma > 0 ? AT_SHAPE : AT_USAGE,
                         "gaussian: the centres are %s and must be [B,H,Q], sigma %g and above 0", AT_TEXT(shape),
                         (double)sigma);
    shape.dim[shape.rank++] = keys;
    at_tensor *y = at_tensor_make(p->tape, shape);
    if (!y)
        return NULL;
    bells b = {.keys = keys, .sigma = sigma, .p = p->value, .y = y->value};
    at_ranges(at_shape_count(p->shape), keys, bell_range, &b);
    return at_record_one(&gaussian_op, y, &p, 1, at_keep(p->tape, &sigma, sizeof sigma));
}
