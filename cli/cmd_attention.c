/* attend attention: the operator on arrays in files. Check everything, compute, then write everything. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arrays.h"
#include "commands.h"
#include "outputs.h"
#include "summary.h"

typedef struct attention_options {
    cli_common common;
    const char *query, *key, *value, *grad_out;
    const char *score, *normaliser, *window, *position;
    int64_t heads, kv_heads, query_start, sample;
    at_counts lengths, rows;
    at_pairs parameters;
    bool plain;
    const char *out, *weights, *summary, *grads;
} attention_options;

static const at_setting table[] = {
    {AT_SETTING_HEADING, .help = "Arrays in, each FILE.npy or FILE.safetensors:NAME"},
    {AT_SETTING_TEXT, "query", "FILE", offsetof(attention_options, query),
     .help = "[B,Q,H·D], or [Q,H·D] for a batch of one"},
    {AT_SETTING_TEXT, "key", "FILE", offsetof(attention_options, key),
     .help = "[B,K,G·D] (default: the query, which is self-attention)"},
    {AT_SETTING_TEXT, "value", "FILE", offsetof(attention_options, value),
     .help = "[B,K,G·Dv] (default: the key, which is soft attention)"},
    {AT_SETTING_PAIRS, "param", "NAME=FILE", offsetof(attention_options, parameters),
     .help = "a parameter of the score, window or position, as attend list names it, or a projection WQ, WK, WV, WO; "
             "may be repeated"},
    {AT_SETTING_COUNTS, "lengths", "N,N,...", offsetof(attention_options, lengths),
     .help = "valid keys of each batch row; keys beyond them are never read (default: all K)"},
    {AT_SETTING_TEXT, "grad-out", "FILE", offsetof(attention_options, grad_out),
     .help = "dL/d out, shaped like the output; --grads names the folder for the gradients"},

    {AT_SETTING_HEADING, .help = "The five choices"},
    {AT_SETTING_TEXT, "score", "NAME", offsetof(attention_options, score), "scaled", .axis = "score",
     .help = "how alike query and key are"},
    {AT_SETTING_TEXT, "normaliser", "NAME", offsetof(attention_options, normaliser), "softmax", .axis = "normaliser",
     .help = "how scores become weights"},
    {AT_SETTING_TEXT, "window", "NAME", offsetof(attention_options, window), "global", .axis = "window",
     .help = "which keys a query sees"},
    {AT_SETTING_TEXT, "position", "NAME", offsetof(attention_options, position), "none", .axis = "position",
     .help = "how distance counts inside attention"},
    {AT_SETTING_COUNT, "heads", "H", offsetof(attention_options, heads), "1", 1, 1 << 20, .help = "query heads"},
    {AT_SETTING_COUNT, "kv-heads", "G", offsetof(attention_options, kv_heads), NULL, 1, 1 << 20,
     .help = "key and value heads, which H must be a multiple of (default: as many as --heads)"},
    {AT_SETTING_COUNT, "query-start", "N", offsetof(attention_options, query_start), "0",
     .help = "position of the first query, for decoding step by step"},
    {AT_SETTING_COUNT, "sample", "SEED", offsetof(attention_options, sample),
     .help = "with --normaliser hard: draw each row's key from the softmax (default: take the most likely key)"},
    {AT_SETTING_SWITCH, "plain", .offset = offsetof(attention_options, plain),
     .help = "take the step-by-step reference path, which holds all [B,H,Q,K] weights in memory"},

    {AT_SETTING_HEADING, .help = "Files out; either all are written or none"},
    {AT_SETTING_TEXT, "out", "FILE", offsetof(attention_options, out),
     .help = "the output [B,Q,H·Dv] as .npy, float32 like all arrays out"},
    {AT_SETTING_TEXT, "weights", "FILE", offsetof(attention_options, weights), .help = "the weights [B,H,Q,K] as .npy"},
    {AT_SETTING_COUNTS, "rows", "I,I,...", offsetof(attention_options, rows),
     .help = "the query rows whose weights are written: [B,H,rows,K] (default: all Q)"},
    {AT_SETTING_TEXT, "summary", "FILE", offsetof(attention_options, summary),
     .help =
         "for every row of weights the largest key and the entropy in nats, and for every key the sum of its weights, "
         "as JSON"},
    {AT_SETTING_TEXT, "grads", "DIR", offsetof(attention_options, grads),
     .help = "with --grad-out: a folder for query.npy, key.npy, value.npy and NAME.npy for each parameter; in "
             "self-attention dL/dX is the sum of the first three"},
    {0},
};

/* Everything one run holds. The arrays in `own` are released at the end; the named ones point to them. */
enum { MOST_ARRAYS = 64, MOST_PARAMETERS = 16 };
typedef struct attention_job {
    const attention_options *options;
    at_error *error;
    at_array *own[MOST_ARRAYS];
    int own_count;
    at_array *query, *key, *value, *grad_out;
    at_parameter parameters[MOST_PARAMETERS];
    at_array *parameter_arrays[MOST_PARAMETERS];
    int64_t heads, kv_heads;
    bool batched; /* 3-D in, so 3-D out */
    at_call call;
    cli_summary summary;
    cli_outputs outputs;
} attention_job;

static at_array *keep(attention_job *job, at_array *array)
{
    if (array && job->own_count < MOST_ARRAYS)
        job->own[job->own_count++] = array;
    return array;
}

/* ---- Options that depend on each other ---------------------------------------------------------------------------- */

static bool check_options(attention_job *job)
{
    const attention_options *o = job->options;
    at_error *error = job->error;
    if (!o->query)
        return fail(error, AT_USAGE, "attend attention needs --query FILE");
    if (!o->out && !o->weights && !o->summary && !o->grads)
        return fail(error, AT_USAGE, "nothing to write: give --out, --weights, --summary or --grads");
    if (o->grads && !o->grad_out)
        return fail(error, AT_USAGE,
                    "--grads needs --grad-out FILE, the gradient of the loss with respect to the output");
    if (o->grad_out && !o->grads)
        return fail(error, AT_USAGE, "--grad-out needs --grads DIR, the folder for the gradients");
    if (o->rows.count && !o->weights)
        return fail(error, AT_USAGE, "--rows chooses rows of --weights, which is not asked for");
    if (o->sample != UNSET && strcmp(o->normaliser, "hard") != 0)
        return fail(error, AT_USAGE, "--sample draws for --normaliser hard; %s draws nothing", o->normaliser);
    if (o->parameters.count > MOST_PARAMETERS)
        return fail(error, AT_USAGE, "more --param than there are parameters: %d", o->parameters.count);
    job->heads = o->heads;
    job->kv_heads = o->kv_heads == UNSET ? o->heads : o->kv_heads;
    if (job->heads % job->kv_heads != 0)
        return fail(error, AT_SHAPE, "--heads %lld is not a multiple of --kv-heads %lld", (long long)job->heads,
                    (long long)job->kv_heads);
    return true;
}

/* ---- Arrays in ------------------------------------------------------------------------------------------------ */

static bool read_arrays(attention_job *job)
{
    const attention_options *o = job->options;
    job->query = keep(job, array_read("--query", o->query, job->error));
    job->key = o->key ? keep(job, array_read("--key", o->key, job->error)) : job->query;
    job->value = o->value ? keep(job, array_read("--value", o->value, job->error)) : job->key;
    if (o->grad_out)
        job->grad_out = keep(job, array_read("--grad-out", o->grad_out, job->error));
    for (int i = 0; i < o->parameters.count; i++) {
        char label[100];
        snprintf(label, sizeof label, "--param %s", o->parameters.name[i]);
        at_array *array = keep(job, array_read(label, o->parameters.file[i], job->error));
        if (!array)
            return false;
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

/* The width of the output: H·Dv, or what WO makes of it. */
static int64_t out_width(const attention_job *job)
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
                grad->dim[grad->rank - 2] == call->queries && grad->dim[grad->rank - 1] == out_width(job);
    if (!fits)
        return fail(job->error, AT_SHAPE, "--grad-out is %s but must be shaped like the output, [%s%lld,%lld]",
                    array_shape(grad, shape), batch_text(job, batch), (long long)call->queries,
                    (long long)out_width(job));
    job->call.grad_out = grad->data;
    return true;
}

static bool check_shapes(attention_job *job)
{
    return check_query(job) && check_key(job) && check_value(job) && check_lengths(job) && check_rows(job) &&
           check_grad_out(job);
}

/* ---- Arrays out ----------------------------------------------------------------------------------------------- */

/* An array of zeros [B, a, b (, c)], without the B when the query came without; c < 0: none. NULL once an error is set.
 */
static at_array *make(attention_job *job, at_dtype dtype, int64_t a, int64_t b, int64_t c)
{
    int64_t dim[4] = {job->call.batch, a, b, c};
    int rank = c < 0 ? 3 : 4;
    return keep(job, at_array_new(dtype, rank - !job->batched, dim + !job->batched, job->error));
}

static at_array *make_like(attention_job *job, const at_array *array)
{
    return keep(job, at_array_new(AT_F32, array->rank, array->dim, job->error));
}

/* Assigns the array to that file; returns its memory for the operator to fill. */
static void *send_to(at_array *array, cli_output *file)
{
    if (!array || !file)
        return NULL;
    file->array = array;
    return array->data;
}

static void make_gradients(attention_job *job)
{
    const attention_options *o = job->options;
    cli_outputs *outputs = &job->outputs;
    if (!o->grads || !outputs_folder(outputs, "--grads", o->grads, job->error))
        return;
    job->call.grad_query = send_to(make_like(job, job->query), outputs_add_in_folder(outputs, "query", job->error));
    job->call.grad_key = send_to(make_like(job, job->key), outputs_add_in_folder(outputs, "key", job->error));
    job->call.grad_value = send_to(make_like(job, job->value), outputs_add_in_folder(outputs, "value", job->error));
    for (int i = 0; i < o->parameters.count; i++)
        job->parameters[i].grad = send_to(make_like(job, job->parameter_arrays[i]),
                                          outputs_add_in_folder(outputs, job->parameters[i].name, job->error));
}

static void make_summary(attention_job *job)
{
    at_call *call = &job->call;
    cli_summary *summary = &job->summary;
    cli_output *file = outputs_add(&job->outputs, "--summary", job->options->summary, job->error);
    summary->argmax = make(job, AT_I32, job->heads, call->queries, -1);
    summary->entropy = make(job, AT_F32, job->heads, call->queries, -1);
    summary->key_sums = make(job, AT_F32, job->heads, call->keys, -1);
    if (strcmp(job->options->normaliser, "hard") == 0)
        summary->log_prob = make(job, AT_F32, job->heads, call->queries, -1);
    if (job->error->code != AT_OK)
        return;
    file->write = summary_write;
    file->context = summary;
    call->argmax = summary->argmax->data;
    call->entropy = summary->entropy->data;
    call->key_sums = summary->key_sums->data;
    call->log_prob = summary->log_prob ? summary->log_prob->data : NULL;
}

static bool make_outputs(attention_job *job)
{
    const attention_options *o = job->options;
    at_call *call = &job->call;
    int64_t rows = call->rows ? call->row_count : call->queries;
    if (o->out)
        call->out = send_to(make(job, AT_F32, call->queries, out_width(job), -1),
                            outputs_add(&job->outputs, "--out", o->out, job->error));
    if (o->weights)
        call->weights = send_to(make(job, AT_F32, job->heads, rows, call->keys),
                                outputs_add(&job->outputs, "--weights", o->weights, job->error));
    if (o->summary)
        make_summary(job);
    make_gradients(job);
    return job->error->code == AT_OK;
}

/* ---- The run -------------------------------------------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool compute(attention_job *job)
{
    const attention_options *o = job->options;
    at_call *call = &job->call;
    at_settings settings = {.score = o->score,
                            .normaliser = o->normaliser,
                            .window = o->window,
                            .position = o->position,
                            .heads = (int)job->heads,
                            .kv_heads = (int)job->kv_heads,
                            .plain = o->plain};
    call->query_start = o->query_start;
    call->sample = o->sample != UNSET;
    call->seed = call->sample ? (uint64_t)o->sample : 0;
    call->parameters = job->parameters;
    call->parameter_count = o->parameters.count;
    double start = seconds();
    if (!at_attend(&settings, call, job->error))
        return false;
    if (o->common.verbose && !o->common.quiet)
        fprintf(stderr,
                "attend: batch %lld, queries %lld, keys %lld, heads %lld: %.3f ms with threads %d, %.3f MB of memory\n",
                (long long)call->batch, (long long)call->queries, (long long)call->keys, (long long)job->heads,
                1e3 * (seconds() - start), at_threads(), 1e-6 * (double)call->memory_used);
    return true;
}

static int run(void *given, int word_count, char **words)
{
    (void)word_count, (void)words;
    at_error error = {0};
    attention_job job = {.options = given, .error = &error};
    bool good = check_options(&job) && read_arrays(&job) && check_shapes(&job) && make_outputs(&job) && compute(&job) &&
                outputs_write(&job.outputs, &error);
    outputs_free(&job.outputs);
    for (int i = 0; i < job.own_count; i++)
        at_array_free(job.own[i]);
    return good ? EXIT_DONE : report(&error);
}

const cli_command command_attention = {
    .name = "attention",
    .words = "",
    .line = "run the operator on arrays: .npy or .safetensors in, .npy out",
    .text = "Runs the attention operator on arrays, forward and, with --grad-out, backward:\n\n"
            "    out_i = Σ_j w_ij v_j,  w_i = normalise_j(score(q_i, k_j) + position)\n\n"
            "with j over the keys of the window. Score, normaliser, window, position and heads are chosen freely; a "
            "combination that makes no sense is refused with the reason. B is the batch, Q queries, K keys, H query "
            "heads, G key and value heads, D the size of a head, Dv the size of a head's values.",
    .examples =
        "  attend attention --query x.npy --score dot --out z.npy --weights w.npy\n"
        "  attend attention --query q.npy --key k.npy --value v.npy --heads 8 --window causal --out c.npy\n"
        "  attend attention --query x.npy --position shaw:16 --param wK=wk.npy --param wV=wv.npy --out c.npy \\\n"
        "      --grad-out g.npy --grads grads",
    .options = table,
    .size = sizeof(attention_options),
    .run = run,
};
