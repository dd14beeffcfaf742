/* attend attention: the operator on arrays in files. Check everything, compute, then write everything. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arrays.h"
#include "attention_job.h"
#include "commands.h"
#include "matrix.h"

static const at_setting table[] = {
    {AT_SETTING_HEADING, .help = "Arrays in"},
    {AT_SETTING_TEXT, "query", "ARRAY", offsetof(attention_options, query),
     .help = "[B,Q,H·D], or [Q,H·D] for a batch of one"},
    {AT_SETTING_TEXT, "key", "ARRAY", offsetof(attention_options, key),
     .help = "[B,K,G·D] (default: the query, which is self-attention)"},
    {AT_SETTING_TEXT, "value", "ARRAY", offsetof(attention_options, value),
     .help = "[B,K,G·Dv] (default: the key, which is soft attention)"},
    {AT_SETTING_PAIRS, "param", "NAME=ARRAY", offsetof(attention_options, parameters),
     .help = "a parameter of the score, window or position, as attend list names it, or a projection WQ, WK, WV, WO; "
             "may be repeated"},
    {AT_SETTING_COUNTS, "lengths", "N,N,...", offsetof(attention_options, lengths),
     .help = "valid keys of each batch row; keys beyond them are never read (default: all K)"},
    {AT_SETTING_TEXT, "grad-out", "ARRAY", offsetof(attention_options, grad_out),
     .help = "dL/d out, shaped like the output; --grads names the folder for the gradients"},

    {AT_SETTING_HEADING, .help = "The five choices"},
    {AT_SETTING_TEXT, "score", "NAME", offsetof(attention_options, score), "scaled", .axis = "score",
     .alias = {"concat", "additive"}, .help = "how alike query and key are"},
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
    {AT_SETTING_TEXT, "out", "FILE", offsetof(attention_options, out), .help = "the output [B,Q,H·Dv]"},
    {AT_SETTING_TEXT, "weights", "FILE", offsetof(attention_options, weights), .help = "the weights [B,H,Q,K]"},
    {AT_SETTING_COUNTS, "rows", "I,I,...", offsetof(attention_options, rows),
     .help = "the query rows whose weights are written: [B,H,rows,K] (default: all Q)"},
    {AT_SETTING_TEXT, "summary", "FILE", offsetof(attention_options, summary),
     .help =
         "for every row of weights the largest key and the entropy in nats, and for every key the sum of its weights, "
         "as JSON"},
    {AT_SETTING_TEXT, "grads", "DIR", offsetof(attention_options, grads),
     .help = "with --grad-out: a folder for query.npy, key.npy, value.npy and NAME.npy for each parameter; in "
             "self-attention dL/dX is the sum of the first three"},
    {AT_SETTING_SWITCH, "show", .offset = offsetof(attention_options, show),
     .help = "draw scores and weights in the terminal, -inf for keys outside the window, and print the output"},
    {0},
};

/* ---- Options that depend on each other ---------------------------------------------------------------------------- */

static bool is_standard(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

/* The standard input can be read once. */
static bool check_input(const attention_options *o, at_error *error)
{
    int read = is_standard(o->query) + is_standard(o->key) + is_standard(o->value) + is_standard(o->grad_out);
    for (int i = 0; i < o->parameters.count; i++)
        read += is_standard(o->parameters.file[i]);
    return read <= 1 || fail(error, AT_USAGE, "only one array can come from the standard input");
}

static bool check_options(attention_job *job)
{
    const attention_options *o = job->options;
    at_error *error = job->error;
    if (!o->query)
        return fail(error, AT_USAGE, "attend attention needs --query ARRAY");
    if (!o->out && !o->weights && !o->summary && !o->grads && !o->show)
        return fail(error, AT_USAGE, "nothing to write: give --show, --out, --weights, --summary or --grads");
    if (is_standard(o->out) + is_standard(o->weights) + o->show > 1)
        return fail(error, AT_USAGE, "only one of --show, --out - and --weights - can go to the standard output");
    if (!check_input(o, error))
        return false;
    if (o->grads && !o->grad_out)
        return fail(error, AT_USAGE,
                    "--grads needs --grad-out ARRAY, the gradient of the loss with respect to the output");
    if (o->grad_out && !o->grads)
        return fail(error, AT_USAGE, "--grad-out needs --grads DIR, the folder for the gradients");
    if (o->rows.count && !o->weights)
        return fail(error, AT_USAGE, "--rows chooses rows of --weights, which is not asked for");
    if (o->rows.count && o->show)
        return fail(error, AT_USAGE, "--show draws all rows; leave out --rows");
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

/* ---- Arrays out ----------------------------------------------------------------------------------------------- */

/* An array of zeros [B, a, b (, c)], without the B when the query came without; c < 0: none. NULL once an error is set.
 */
static at_array *make(attention_job *job, at_dtype dtype, int64_t a, int64_t b, int64_t c)
{
    int64_t dim[4] = {job->call.batch, a, b, c};
    int rank = c < 0 ? 3 : 4;
    return attention_keep(job, at_array_new(dtype, rank - !job->batched, dim + !job->batched, job->error));
}

static at_array *make_like(attention_job *job, const at_array *array)
{
    return attention_keep(job, at_array_new(AT_F32, array->rank, array->dim, job->error));
}

static bool write_matrix(FILE *stream, const void *context)
{
    const cli_output *file = context;
    matrix_print(stream, file->array, text_separator(file->path));
    return !ferror(stream);
}

/* Assigns the array to that file; returns its memory for the operator to fill. */
static void *send_to(at_array *array, cli_output *file)
{
    if (!array || !file)
        return NULL;
    file->array = array;
    if (text_separator(file->path)) {
        file->write = write_matrix;
        file->context = file;
    }
    return array->data;
}

/* The array of an option, which names a file or the standard output. */
static void *send_out(attention_job *job, at_array *array, const char *option, const char *path)
{
    if (!is_standard(path))
        return send_to(array, outputs_add(&job->outputs, option, path, job->error));
    job->printed = array;
    return array ? array->data : NULL;
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

/* The arrays that --show draws, in memory of their own: only scores need the plain path, which has other bits. */
static void make_pictures(attention_job *job)
{
    const at_call *call = &job->call;
    job->pictures = (attention_pictures){.batch = call->batch,
                                         .heads = job->heads,
                                         .scores = make(job, AT_F32, job->heads, call->queries, call->keys),
                                         .weights = make(job, AT_F32, job->heads, call->queries, call->keys),
                                         .out = make(job, AT_F32, call->queries, attention_out_width(job), -1)};
}

static bool make_outputs(attention_job *job)
{
    const attention_options *o = job->options;
    at_call *call = &job->call;
    int64_t rows = call->rows ? call->row_count : call->queries;
    if (o->out)
        call->out = send_out(job, make(job, AT_F32, call->queries, attention_out_width(job), -1), "--out", o->out);
    if (o->weights)
        call->weights = send_out(job, make(job, AT_F32, job->heads, rows, call->keys), "--weights", o->weights);
    if (o->summary)
        make_summary(job);
    make_gradients(job);
    if (o->show)
        make_pictures(job);
    return job->error->code == AT_OK;
}

/* ---- The run -------------------------------------------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The same call again for --show: once for weights and output, once for the scores. */
static bool compute_pictures(attention_job *job, at_settings settings)
{
    at_call call = job->call;
    call.rows = NULL;
    call.row_count = 0;
    call.argmax = NULL;
    call.entropy = call.key_sums = call.log_prob = NULL;
    call.grad_out = NULL;
    call.grad_query = call.grad_key = call.grad_value = NULL;
    call.out = job->pictures.out->data;
    call.weights = job->pictures.weights->data;
    if (!at_attend(&settings, &call, job->error))
        return false;
    call.out = call.weights = NULL;
    call.scores = job->pictures.scores->data;
    return at_attend(&settings, &call, job->error);
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
    if (o->show && !compute_pictures(job, settings))
        return false;
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
    bool good = check_options(&job) && attention_read(&job) && attention_check(&job) && make_outputs(&job) &&
                compute(&job) && outputs_write(&job.outputs, &error) &&
                (!job.options->show || attention_show(&job.pictures, &error));
    if (good && job.printed)
        matrix_print(stdout, job.printed, ' ');
    outputs_free(&job.outputs);
    for (int i = 0; i < job.own_count; i++)
        at_array_free(job.own[i]);
    return good ? EXIT_DONE : report(&error);
}

const cli_command command_attention = {
    .name = "attention",
    .words = "",
    .line = "run the operator on arrays, from files or typed",
    .text =
        "Runs the attention operator on arrays, forward and, with --grad-out, backward:\n\n"
        "    out_i = Σ_j w_ij v_j,  w_i = normalise_j(score(q_i, k_j) + position)\n\n"
        "with j over the keys of the window. Score, normaliser, window, position and heads are chosen freely; a "
        "combination that makes no sense is refused with the reason. B is the batch, Q queries, K keys, H query "
        "heads, G key and value heads, D the size of a head, Dv the size of a head's values.\n\n"
        "An ARRAY is FILE.npy, FILE.safetensors:NAME, a matrix as text in FILE.txt, FILE.csv or FILE.tsv, - for text "
        "on "
        "the standard input, or a matrix that is typed, such as \"1 3 2; 1 1 3\": numbers with blanks, tabs or commas "
        "between them, rows on lines of their own or, typed, with semicolons. Arrays are written as float32 .npy, as "
        "text to FILE.txt, FILE.csv and FILE.tsv, and as text to the standard output for -.",
    .examples =
        "  attend attention --query \"1 3 2; 1 1 3; 1 2 1\" --score dot --show\n"
        "  attend attention --query x.npy --score dot --out z.npy --weights w.csv\n"
        "  attend attention --query q.npy --key k.npy --value v.npy --heads 8 --window causal --out c.npy\n"
        "  attend attention --query x.npy --position shaw:16 --param wK=wk.npy --param wV=wv.npy --out c.npy \\\n"
        "      --grad-out g.npy --grads grads",
    .options = table,
    .size = sizeof(attention_options),
    .run = run,
};
