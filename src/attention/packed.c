/* Packed rows: sequences one after another without padding. The fused operation reads them where they lie; other calls
 * unpack them into [B,n,width] arrays and pack the result again. */
#include <string.h>

#include "attention/axes_internal.h"
#include "tape/block.h"

/* ---- The check ---- */

/* One operand of the call. */
typedef struct operand {
    const char *name;
    const at_tensor *tensor;
    const int64_t *at, *count;
    int64_t column, width; /* of all its heads */
} operand;

/* Marks the rows of every sequence, which must lie inside the tensor and, where each adds to a gradient or an output of
 * its own, apart from each other. */
static bool check_rows(const at_job *j, const operand *x, bool apart)
{
    at_error *error = at_tape_error(j->tape);
    const int64_t rows = x->tensor->shape.dim[0];
    at_arena *arena = at_tape_arena(j->tape);
    at_mark mark = at_arena_mark(arena);
    char *taken = apart ? at_arena_zeros(arena, (size_t)rows + 1) : NULL;
    if (apart && !taken)
        return at_no_memory(error, "the check of %lld rows", (long long)rows);
    bool fits = true;
    for (int64_t b = 0; fits && b < j->B; b++) {
        const int64_t at = x->at[b], count = x->count[b];
        if (at < 0 || count < 0 || at > rows || count > rows - at)
            fits = at_fail(error, AT_SHAPE, "sequence %lld has %lld rows of %s from row %lld on, and there are %lld",
                           (long long)b, (long long)count, x->name, (long long)at, (long long)rows);
        if (!fits || !apart)
            continue;
        if (memchr(taken + at, 1, (size_t)count))
            fits = at_fail(error, AT_SHAPE, "sequence %lld shares rows of %s with another; each needs its own",
                           (long long)b, x->name);
        memset(taken + at, 1, (size_t)count);
    }
    at_arena_release(arena, mark);
    return fits;
}

static bool check_columns(const at_job *j, const operand *x)
{
    if (!x->tensor)
        return at_fail(at_tape_error(j->tape), AT_USAGE, "%s [rows,width] is not given", x->name);
    const at_shape *s = &x->tensor->shape;
    if (s->rank != 2 || s->dim[0] < 0)
        return at_fail(at_tape_error(j->tape), AT_SHAPE, "%s has shape %s but packed rows need [rows,width]", x->name,
                       AT_TEXT(*s));
    if (x->column < 0 || x->width > s->dim[1] || x->column > s->dim[1] - x->width)
        return at_fail(at_tape_error(j->tape), AT_SHAPE,
                       "%s has shape %s, which does not hold %lld columns from column %lld on", x->name, AT_TEXT(*s),
                       (long long)x->width, (long long)x->column);
    return true;
}

static bool check_key_rows(const at_job *j, const at_packed *p)
{
    at_error *error = at_tape_error(j->tape);
    if (j->in.key || j->in.value)
        return at_fail(error, AT_USAGE, "keys are given by their rows, so key and value must not be given as well");
    if (j->in.query->wants_grad && at_tape_records(j->tape))
        return at_fail(error, AT_UNSUPPORTED,
                       "keys given by their rows have no backward pass, and the query wants a gradient");
    if (p->k_column < 0 || p->v_column < 0)
        return at_fail(error, AT_SHAPE, "keys start at column %lld and values at %lld; neither may be negative",
                       (long long)p->k_column, (long long)p->v_column);
    for (int64_t b = 0; b < p->batch; b++)
        if (p->query_count[b] > 1 || p->key_count[b] < 0 || p->key_count[b] > p->key_row_stride)
            return at_fail(
                error, AT_SHAPE,
                "sequence %lld has %lld queries and %lld keys given by their rows; it may have one query and "
                "%lld keys",
                (long long)b, (long long)p->query_count[b], (long long)p->key_count[b], (long long)p->key_row_stride);
    return true;
}

bool at_packed_check(at_job *j)
{
    const at_packed *p = j->in.packed;
    at_error *error = at_tape_error(j->tape);
    j->B = p->batch, j->H = j->attention.heads, j->G = j->attention.kv_heads, j->D = p->size, j->Dv = p->value_size;
    if (j->B < 0 || j->D < 1 || j->Dv < 1)
        return at_fail(error, AT_SHAPE, "packed rows of %lld sequences have heads of size %lld and %lld",
                       (long long)j->B, (long long)j->D, (long long)j->Dv);
    if (j->in.lengths || j->in.WQ || j->in.WK || j->in.WV)
        return at_fail(error, AT_USAGE, "packed rows have their own lengths and are projected already: they take no %s",
                       j->in.lengths ? "lengths"
                       : j->in.WQ    ? "parameter 'WQ'"
                       : j->in.WK    ? "parameter 'WK'"
                                     : "parameter 'WV'");
    if (!p->query_at || !p->query_count || !p->key_count || (!p->key_row && !p->key_at))
        return at_fail(error, AT_USAGE,
                       "packed rows need the first row and the number of each sequence's queries and keys");
    const operand query = {"query", j->in.query, p->query_at, p->query_count, p->q_column, j->H * j->D};
    const operand key = {"key", j->in.key, p->key_at, p->key_count, p->k_column, j->G * j->D};
    const operand value = {"value", j->in.value, p->key_at, p->key_count, p->v_column, j->G * j->Dv};
    if (!check_columns(j, &query) || !check_rows(j, &query, true))
        return false;
    if (p->key_row
            ? !check_key_rows(j, p)
            : !check_columns(j, &key) || !check_columns(j, &value) || !check_rows(j, &key, key.tensor->wants_grad) ||
                  !check_rows(j, &value, value.tensor->wants_grad))
        return false;
    j->Q = at_largest_count(p->query_count, j->B), j->K = at_largest_count(p->key_count, j->B);
    if (j->B > INT32_MAX || j->K > INT32_MAX || j->Q > INT32_MAX)
        return at_fail(error, AT_SHAPE, "batch %lld, queries %lld and keys %lld may each be at most %d",
                       (long long)j->B, (long long)j->Q, (long long)j->K, INT32_MAX);
    return true;
}

bool at_packed_direct(const at_job *j)
{
    const at_attention *a = &j->attention;
    if (!j->in.packed || !at_fused_can(a) || a->position->rotates || (a->score->prepare && !j->in.prepared))
        return false;
    return !j->in.packed->key_row || at_fused_takes_rows(j);
}

/* ---- Unpacking and packing ---- */

/* Rows of [rows, width] at `column` against rows of [B, most, size]. */
typedef struct moved {
    int64_t batch, most, row, column, size;
    const int64_t *at, *count;
} moved;

/* to += from over all sequences, in either direction. */
static void add_moved(const moved *m, const at_real *from, at_real *to, bool unpack)
{
    for (int64_t b = 0; b < m->batch; b++)
        for (int64_t i = 0; i < m->count[b]; i++) {
            const int64_t packed = (m->at[b] + i) * m->row + m->column, whole = (b * m->most + i) * m->size;
            const at_real *x = from + (unpack ? packed : whole);
            at_real *y = to + (unpack ? whole : packed);
            for (int64_t d = 0; d < m->size; d++)
                y[d] += x[d];
        }
}

static void unpack_backward(at_node *node)
{
    if (node->inputs[0]->wants_grad)
        add_moved(node->saved, node->outputs[0]->grad, at_tensor_grad(node->inputs[0]), false);
}

static void pack_backward(at_node *node)
{
    if (node->inputs[0]->wants_grad)
        add_moved(node->saved, node->outputs[0]->grad, at_tensor_grad(node->inputs[0]), true);
}

static const at_op unpack_op = {"unpack", unpack_backward};
static const at_op pack_op = {"pack", pack_backward};

static at_tensor *move(at_tensor *x, const moved *m, at_shape shape, bool unpack)
{
    moved *kept = at_keep(x->tape, m, sizeof *m);
    at_tensor *out = at_tensor_make(x->tape, shape);
    if (!kept || !out)
        return NULL;
    memset(out->value, 0, (size_t)at_shape_count(shape) * sizeof(at_real));
    add_moved(m, x->value, out->value, unpack);
    return at_record_one(unpack ? &unpack_op : &pack_op, out, &x, 1, kept);
}

static at_tensor *unpack(at_tensor *x, int64_t batch, int64_t most, const int64_t *at, const int64_t *count,
                         int64_t column, int64_t size)
{
    if (!x)
        return NULL;
    const moved m = {batch, most, x->shape.dim[1], column, size, at, count};
    return move(x, &m, AT_SHAPE(batch, most, size), true);
}

at_tensor *at_unpack_queries(const at_job *j)
{
    const at_packed *p = j->in.packed;
    return unpack(j->in.query, j->B, j->Q, p->query_at, p->query_count, p->q_column, j->H * j->D);
}

/* [B,K,size] from the rows that key_row points to. */
static at_tensor *collect_rows(const at_job *j, int64_t column, int64_t size)
{
    const at_packed *p = j->in.packed;
    at_tensor *out = at_tensor_make(j->tape, AT_SHAPE(j->B, j->K, size));
    if (!out)
        return NULL;
    memset(out->value, 0, (size_t)at_shape_count(out->shape) * sizeof(at_real));
    for (int64_t b = 0; b < j->B; b++)
        for (int64_t key = 0; key < p->key_count[b]; key++)
            memcpy(out->value + (b * j->K + key) * size, p->key_row[b * p->key_row_stride + key] + column,
                   (size_t)size * sizeof(at_real));
    return out;
}

void at_unpack(at_job *j)
{
    const at_packed *p = j->in.packed;
    const int64_t k = j->G * j->D, v = j->G * j->Dv;
    j->in.query = at_unpack_queries(j);
    j->in.key = p->key_row ? collect_rows(j, p->k_column, k)
                           : unpack(j->in.key, j->B, j->K, p->key_at, p->key_count, p->k_column, k);
    j->in.value = p->key_row ? collect_rows(j, p->v_column, v)
                             : unpack(j->in.value, j->B, j->K, p->key_at, p->key_count, p->v_column, v);
}

at_tensor *at_pack(const at_job *j, at_tensor *x, int64_t rows)
{
    if (!x)
        return NULL;
    const at_packed *p = j->in.packed;
    const moved m = {j->B, j->Q, x->shape.dim[2], 0, x->shape.dim[2], p->query_at, p->query_count};
    return move(x, &m, AT_SHAPE(rows, x->shape.dim[2]), false);
}
