/* Everything that can be wrong with a call, checked once, before anything is computed. */
#include "attention/axes_internal.h"

/* ---- Arrays and projections ---- */

/* The width after the optional projection w [out, in]; -1 with an error message if its shape does not fit. */
static int64_t projected(const at_job *j, const char *array, const at_tensor *x, const char *name, const at_tensor *w)
{
    if (!w)
        return x->shape.dim[2];
    char has[200];
    if (w->shape.rank == 2 && w->shape.dim[1] == x->shape.dim[2] && w->shape.dim[0] > 0)
        return w->shape.dim[0];
    at_fail(at_tape_error(j->tape), AT_SHAPE, "parameter '%s' has shape %s but needs [out,%lld] for %s's width %lld",
            name, at_shape_text(w->shape, has, sizeof has), (long long)x->shape.dim[2], array,
            (long long)x->shape.dim[2]);
    return -1;
}

static bool check_arrays(at_job *j)
{
    at_error *error = at_tape_error(j->tape);
    const struct {
        const char *name, *needs;
        const at_tensor *tensor;
    } arrays[] = {{"query", "[B,Q,width]", j->in.query},
                  {"key", "[B,K,width]", j->in.key},
                  {"value", "[B,K,width]", j->in.value}};
    char has[200];
    for (int i = 0; i < 3; i++) {
        if (!arrays[i].tensor)
            return at_fail(error, AT_USAGE, "%s %s is not given", arrays[i].name, arrays[i].needs);
        const at_shape *s = &arrays[i].tensor->shape;
        if (s->rank != 3 || s->dim[0] < 0 || s->dim[1] < 0 || s->dim[2] < 1)
            return at_fail(error, AT_SHAPE, "%s has shape %s but needs %s with a width of at least 1", arrays[i].name,
                           at_shape_text(*s, has, sizeof has), arrays[i].needs);
    }
    j->B = j->in.query->shape.dim[0], j->Q = j->in.query->shape.dim[1], j->K = j->in.key->shape.dim[1];
    if (j->in.key->shape.dim[0] != j->B)
        return at_fail(error, AT_SHAPE, "key has shape %s but needs [%lld,K,width], as many batch rows as the query",
                       at_shape_text(j->in.key->shape, has, sizeof has), (long long)j->B);
    if (j->in.value->shape.dim[0] != j->B || j->in.value->shape.dim[1] != j->K)
        return at_fail(error, AT_SHAPE, "value has shape %s but needs [%lld,%lld,width], a row for each key",
                       at_shape_text(j->in.value->shape, has, sizeof has), (long long)j->B, (long long)j->K);
    if (j->B > INT32_MAX || j->K > INT32_MAX || j->Q > INT32_MAX)
        return at_fail(error, AT_SHAPE, "batch %lld, queries %lld and keys %lld may each be at most %d",
                       (long long)j->B, (long long)j->Q, (long long)j->K, INT32_MAX);
    return true;
}

static bool check_heads(at_job *j)
{
    at_error *error = at_tape_error(j->tape);
    int64_t q = projected(j, "query", j->in.query, "WQ", j->in.WQ);
    int64_t k = q < 0 ? -1 : projected(j, "key", j->in.key, "WK", j->in.WK);
    int64_t v = k < 0 ? -1 : projected(j, "value", j->in.value, "WV", j->in.WV);
    if (v < 0)
        return false;
    j->H = j->attention.heads, j->G = j->attention.kv_heads;
    if (q % j->H)
        return at_fail(error, AT_SHAPE, "`heads` is %lld and does not divide the %s width %lld", (long long)j->H,
                       j->in.WQ ? "projected query" : "query", (long long)q);
    j->D = q / j->H;
    if (k != j->G * j->D)
        return at_fail(error, AT_SHAPE,
                       "the %s width is %lld but must be %lld: `kv-heads` %lld times the query's head size %lld",
                       j->in.WK ? "projected key" : "key", (long long)k, (long long)(j->G * j->D), (long long)j->G,
                       (long long)j->D);
    if (v % j->G)
        return at_fail(error, AT_SHAPE, "`kv-heads` is %lld and does not divide the %s width %lld", (long long)j->G,
                       j->in.WV ? "projected value" : "value", (long long)v);
    j->Dv = v / j->G;
    return true;
}

static bool check_sizes(const at_job *j)
{
    at_error *error = at_tape_error(j->tape);
    if (j->in.WO &&
        (j->in.WO->shape.rank != 2 || j->in.WO->shape.dim[1] != j->H * j->Dv || j->in.WO->shape.dim[0] < 1)) {
        char has[200];
        return at_fail(error, AT_SHAPE, "parameter 'WO' has shape %s but needs [out,%lld] for %lld heads of size %lld",
                       at_shape_text(j->in.WO->shape, has, sizeof has), (long long)(j->H * j->Dv), (long long)j->H,
                       (long long)j->Dv);
    }
    if (j->attention.position->rotates && j->D % 2)
        return at_fail(error, AT_SHAPE,
                       "position '%s' rotates pairs of numbers, so the head size must be even, and it is %lld",
                       j->attention.position->entry.name, (long long)j->D);
    return true;
}

static bool check_numbers(const at_job *j)
{
    at_error *error = at_tape_error(j->tape);
    for (int64_t b = 0; j->in.lengths && b < j->B; b++)
        if (j->in.lengths[b] < 0 || j->in.lengths[b] > j->K)
            return at_fail(error, AT_SHAPE, "length %lld of batch row %lld is outside 0 to %lld, the number of keys",
                           (long long)j->in.lengths[b], (long long)b, (long long)j->K);
    if (j->in.query_start < 0 || j->in.query_start > INT32_MAX - j->Q)
        return at_fail(error, AT_SHAPE, "`query-start` is %lld, which is outside 0 to %lld",
                       (long long)j->in.query_start, (long long)(INT32_MAX - j->Q));
    if (j->asked->rows && j->asked->row_count < 0)
        return at_fail(error, AT_SHAPE, "the number of rows asked for is %lld", (long long)j->asked->row_count);
    for (int64_t r = 0; j->asked->rows && r < j->asked->row_count; r++)
        if (j->asked->rows[r] < 0 || j->asked->rows[r] >= j->Q)
            return at_fail(error, AT_SHAPE, "row %lld is asked for, and there are %lld queries, counted from 0",
                           (long long)j->asked->rows[r], (long long)j->Q);
    if (!(j->in.drop.share >= 0 && j->in.drop.share < 1))
        return at_fail(error, AT_USAGE, "the share of the weights to drop is %g and must be from 0 to below 1",
                       (double)j->in.drop.share);
    const bool samples = at_attention_samples(&j->attention);
    const char *normaliser = j->attention.normaliser->entry.name;
    if (j->in.drop.share > 0 && samples)
        return at_fail(error, AT_UNSUPPORTED,
                       "normaliser '%s' has one weight per row, of which no share can be dropped", normaliser);
    if (j->in.sample && !samples)
        return at_fail(error, AT_UNSUPPORTED, "normaliser '%s' has nothing to sample; 'hard' does", normaliser);
    if (j->in.prepared && !at_attention_prepares(&j->attention))
        return at_fail(error, AT_UNSUPPORTED, "score '%s' does not take prepared queries and keys",
                       j->attention.score->entry.name);
    return true;
}

bool at_attention_check(at_job *j)
{
    if (!at_tape_ok(j->tape) || !(j->in.packed ? at_packed_check(j) : check_arrays(j) && check_heads(j)))
        return false;
    return check_sizes(j) && check_numbers(j) && at_parameters_check(j);
}
