/* The arrays that attend attention reads, and whether they fit together. */
#include <string.h>

#include "arrays.h"
#include "attention_job.h"

at_array *attention_keep(attention_job *job, at_array *array)
{
    if (array && job->own_count < MOST_ARRAYS)
        job->own[job->own_count++] = array;
    return array;
}

/* ---- Arrays in ------------------------------------------------------------------------------------------------ */

/* Whether the chosen score, window or position declares this parameter with one dimension, as in "v [A]". */
static bool is_vector(const attention_options *o, const char *name)
{
    const char *const chosen[][2] = {{"score", o->score}, {"window", o->window}, {"position", o->position}};
    const at_entry *entry;
    char begin[40];
    snprintf(begin, sizeof begin, "%s [", name);
    for (int i = 0; (entry = at_catalogue(i)); i++)
        for (int c = 0; c < 3; c++) {
            const size_t length = strcspn(chosen[c][1], ":");
            const char *declared = strcmp(entry->axis, chosen[c][0]) == 0 && strlen(entry->name) == length &&
                                           strncmp(entry->name, chosen[c][1], length) == 0
                                       ? entry->parameters
                                       : "";
            for (; *declared; declared += strcspn(declared, "]"), declared += strspn(declared, "]?, "))
                if (strncmp(declared, begin, strlen(begin)) == 0)
                    return strcspn(declared + strlen(begin), ",]") == strcspn(declared + strlen(begin), "]");
        }
    return false;
}

/* Text is always a matrix; its only row is the vector that some parameters are. */
static void make_vector(const attention_options *o, const char *name, at_array *array)
{
    if (array->rank != 2 || array->dim[0] != 1 || !is_vector(o, name))
        return;
    array->rank = 1;
    array->dim[0] = array->dim[1];
}

bool attention_read(attention_job *job)
{
    const attention_options *o = job->options;
    job->query = attention_keep(job, array_read("--query", o->query, job->error));
    job->key = o->key ? attention_keep(job, array_read("--key", o->key, job->error)) : job->query;
    job->value = o->value ? attention_keep(job, array_read("--value", o->value, job->error)) : job->key;
    if (o->grad_out)
        job->grad_out = attention_keep(job, array_read("--grad-out", o->grad_out, job->error));
    for (int i = 0; i < o->parameters.count; i++) {
        char label[100];
        snprintf(label, sizeof label, "--param %s", o->parameters.name[i]);
        at_array *array = attention_keep(job, array_read(label, o->parameters.file[i], job->error));
        if (!array)
            return false;
        if (array_is_text(o->parameters.file[i]))
            make_vector(o, o->parameters.name[i], array);
        at_parameter *parameter = &job->parameters[i];
        *parameter = (at_parameter){.name = o->parameters.name[i], .rank = array->rank, .value = array->data};
        memcpy(parameter->dim, array->dim, sizeof parameter->dim);
        job->parameter_arrays[i] = array;
    }
    return job->error->code == AT_OK;
}

/* A projection's matrix [to, from], or NULL if it was not given. */
static const at_parameter *projection(const attention_job *job, const char *name)
{
    for (int i = 0; i < job->options->parameters.count; i++)
        if (strcmp(job->parameters[i].name, name) == 0 && job->parameters[i].rank == 2)
            return &job->parameters[i];
    return NULL;
}

/* The width that is split into heads: that of the array, or of its projection. */
static int64_t split_width(const attention_job *job, const char *name, int64_t width)
{
    const at_parameter *matrix = projection(job, name);
    return matrix ? matrix->dim[0] : width;
}

/* "--key is [2,5,12]", or for one that was left out "--key, left out and so the query, is [2,5,12]". */
static void describe(const char *option, const char *given, const char *instead, const at_array *array, char *out,
                     size_t size)
{
    char shape[SHAPE_TEXT];
    if (given)
        snprintf(out, size, "%s is %s", option, array_shape(array, shape));
    else
        snprintf(out, size, "%s, left out and so the %s, is %s", option, instead, array_shape(array, shape));
}

static bool check_query(attention_job *job)
{
    char shape[SHAPE_TEXT];
    const at_array *query = job->query;
    if (query->rank != 2 && query->rank != 3)
        return fail(job->error, AT_SHAPE, "--query is %s but must be [B,Q,H·D] or [Q,H·D]", array_shape(query, shape));
    int64_t width = query->dim[query->rank - 1], split = split_width(job, "WQ", width);
    if (width == 0)
        return fail(job->error, AT_SHAPE, "--query is %s, and its rows must hold at least one number",
                    array_shape(query, shape));
    if (split % job->heads != 0)
        return fail(job->error, AT_SHAPE, "--query is %s%s, whose width %lld is not a multiple of --heads %lld",
                    array_shape(query, shape), split == width ? "" : " and projected by WQ", (long long)split,
                    (long long)job->heads);
    job->batched = query->rank == 3;
    at_call *call = &job->call;
    call->batch = job->batched ? query->dim[0] : 1;
    call->queries = query->dim[query->rank - 2];
    call->query_width = width;
    call->query = query->data;
    return true;
}

/* The batch as it begins a shape: "2," or nothing. */
static const char *batch_text(const attention_job *job, char out[32])
{
    snprintf(out, 32, "%lld,", (long long)job->call.batch);
    return job->batched ? out : "";
}

/* The key must be [B,K,G·D] for the query's B and D. */
static bool check_key(attention_job *job)
{
    char query_shape[SHAPE_TEXT], has[300], batch[32];
    const attention_options *o = job->options;
    const at_array *key = job->key;
    at_call *call = &job->call;
    int64_t width = key->rank ? key->dim[key->rank - 1] : 0, split = split_width(job, "WK", width);
    int64_t needed = split_width(job, "WQ", call->query_width) / job->heads * job->kv_heads;
    bool fits = key->rank == job->query->rank && (!job->batched || key->dim[0] == call->batch) && split == needed;
    if (!fits) {
        describe("--key", o->key, "query", key, has, sizeof has);
        if (projection(job, "WK") || projection(job, "WQ"))
            return fail(job->error, AT_SHAPE, "%s but with --query %s it must be [%sK,width], %lld wide after WK", has,
                        array_shape(job->query, query_shape), batch_text(job, batch), (long long)needed);
        return fail(job->error, AT_SHAPE,
                    "%s but with --query %s, --heads %lld and --kv-heads %lld it must be [%sK,%lld]", has,
                    array_shape(job->query, query_shape), (long long)job->heads, (long long)job->kv_heads,
                    batch_text(job, batch), (long long)needed);
    }
    call->keys = key->dim[key->rank - 2];
    call->key_width = width;
    call->key = key->data;
    return true;
}

/* The value must be [B,K,G·Dv] for the key's B and K and any Dv. */
static bool check_value(attention_job *job)
{
    char key_shape[SHAPE_TEXT], has[300], batch[32];
    const at_array *value = job->value;
    at_call *call = &job->call;
    describe("--value", job->options->value, "key", value, has, sizeof has);
    int64_t width = value->rank ? value->dim[value->rank - 1] : 0, split = split_width(job, "WV", width);
    bool fits = value->rank == job->query->rank && (!job->batched || value->dim[0] == call->batch) &&
                value->dim[value->rank - 2] == call->keys;
    if (!fits)
        return fail(job->error, AT_SHAPE, "%s but with --key %s it must be [%s%lld,G·Dv]", has,
                    array_shape(job->key, key_shape), batch_text(job, batch), (long long)call->keys);
    if (width == 0)
        return fail(job->error, AT_SHAPE, "%s, and its rows must hold at least one number", has);
    if (split % job->kv_heads != 0)
        return fail(job->error, AT_SHAPE, "%s, whose width %lld%s is not a multiple of --kv-heads %lld", has,
                    (long long)split, split == width ? "" : " after WV", (long long)job->kv_heads);
    call->value_width = width;
    call->value = value->data;
    return true;
}

static bool check_lengths(attention_job *job)
{
    char shape[SHAPE_TEXT];
    const at_counts *lengths = &job->options->lengths;
    if (!lengths->count)
        return true;
    if (lengths->count != job->call.batch)
        return fail(job->error, AT_SHAPE, "--lengths has %lld number%s but --query %s needs %lld, one per batch row",
                    (long long)lengths->count, lengths->count == 1 ? "" : "s", array_shape(job->query, shape),
                    (long long)job->call.batch);
    for (int64_t i = 0; i < lengths->count; i++)
        if (lengths->value[i] > job->call.keys)
            return fail(job->error, AT_SHAPE, "--lengths has %lld but --key %s has only %lld keys",
                        (long long)lengths->value[i], array_shape(job->key, shape), (long long)job->call.keys);
    job->call.lengths = lengths->value;
    return true;
}

static bool check_rows(attention_job *job)
{
    char shape[SHAPE_TEXT];
    const at_counts *rows = &job->options->rows;
    for (int64_t i = 0; i < rows->count; i++)
        if (rows->value[i] >= job->call.queries)
            return fail(job->error, AT_SHAPE, "--rows asks for row %lld but --query %s has rows 0 to %lld",
                        (long long)rows->value[i], array_shape(job->query, shape), (long long)job->call.queries - 1);
    job->call.rows = rows->count ? rows->value : NULL;
    job->call.row_count = rows->count;
    return true;
}

int64_t attention_out_width(const attention_job *job)
{
    return split_width(job, "WO", split_width(job, "WV", job->call.value_width) / job->kv_heads * job->heads);
}

static bool check_grad_out(attention_job *job)
{
    char shape[SHAPE_TEXT], batch[32];
    const at_array *grad = job->grad_out;
    const at_call *call = &job->call;
    if (!grad)
        return true;
    bool fits = grad->rank == job->query->rank && (!job->batched || grad->dim[0] == call->batch) &&
                grad->dim[grad->rank - 2] == call->queries && grad->dim[grad->rank - 1] == attention_out_width(job);
    if (!fits)
        return fail(job->error, AT_SHAPE, "--grad-out is %s but must be shaped like the output, [%s%lld,%lld]",
                    array_shape(grad, shape), batch_text(job, batch), (long long)call->queries,
                    (long long)attention_out_width(job));
    job->call.grad_out = grad->data;
    return true;
}

bool attention_check(attention_job *job)
{
    return check_query(job) && check_key(job) && check_value(job) && check_lengths(job) && check_rows(job) &&
           check_grad_out(job);
}
