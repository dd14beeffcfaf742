/* attend attention: what one run holds, and its arrays in. */
#ifndef ATTENTION_JOB_H
#define ATTENTION_JOB_H

#include "attention_show.h"
#include "options.h"
#include "outputs.h"
#include "summary.h"

typedef struct attention_options {
    cli_common common;
    const char *query, *key, *value, *grad_out;
    const char *score, *normaliser, *window, *position;
    int64_t heads, kv_heads, query_start, sample;
    at_counts lengths, rows;
    at_pairs parameters;
    bool plain, show;
    const char *out, *weights, *summary, *grads;
} attention_options;

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
    const at_array *printed; /* on stdout as text; NULL: nothing */
    attention_pictures pictures;
} attention_job;

/* Keeps the array until the end of the run; returns it. */
at_array *attention_keep(attention_job *job, at_array *array);

/* Reads the arrays; checks their shapes and sets the sizes of the call. */
bool attention_read(attention_job *job);
bool attention_check(attention_job *job);

/* The width of the output: H·Dv, or what WO makes of it. */
int64_t attention_out_width(const attention_job *job);

#endif
