/* Search: from source lines to target lines. Lines are searched in batches, finished sentences leave their batch, and
 * results come in the order of the lines, with the same bytes for any batch size and number of threads. The types are
 * those of attend.h; here the settings are complete (no 0 for a default) and valid: api_translate.c sees to that for
 * callers, and the trainer fills them in itself. */
#ifndef AT_SEARCH_H
#define AT_SEARCH_H

#include "store/translator.h"

enum { AT_CONTINUATION = 100 }; /* units that a language model adds at most, unless set otherwise */

/* Fills in the defaults of attend.h; false with AT_USAGE if the settings do not fit together. */
bool at_search_complete(at_search_settings *settings, at_error *error);

/* A line and its units. */
typedef struct at_encoded {
    at_line line;
    int32_t *ids;     /* [count] */
    int32_t *offsets; /* [count, 2] the bytes of the line where each unit begins and ends */
    int64_t count;
} at_encoded;

/* One extension of a hypothesis in a step of the search, kept or not. */
typedef struct at_extension {
    int64_t step;   /* from 0 */
    int64_t parent; /* among the hypotheses that the step before kept and that did not end, the first is 0 */
    int32_t id;
    double score, log_prob; /* of the whole, and of this unit */
    bool kept;
    const at_real *weights; /* [units] where the hypothesis looked; NULL: not known */
    int64_t units;          /* of the source */
} at_extension;
/* Gets the extensions of every step, those that are kept first, in their order. */
typedef struct at_extension_observer {
    void (*observe)(void *context, const at_extension *extension);
    void *context;
} at_extension_observer;

/* What a caller keeps from one search to the next with the same translator, so that these allocate nothing: NULL at first. */
typedef struct at_search_memory at_search_memory;
void at_search_memory_free(at_search_memory *memory);

/* One call: the lines, how to search them, and who gets the results. */
typedef struct at_search_job {
    at_translator *translator;
    const at_search_settings *settings;
    const at_line *lines;   /* [count] sources, or what a language model continues; NULL: forced decoding without any */
    const at_line *targets; /* [count] for forced decoding */
    const int64_t *numbers; /* [count] of the lines; NULL: they are counted from first_line on */
    int64_t count;
    at_next_line *next_line; /* lines as they come, in place of the arrays; NULL: the arrays */
    at_on_result *on_result;
    void *context;               /* of both callbacks */
    const at_encoded *target;    /* forced decoding of one line: its units, in place of `targets` */
    const at_observer *observer; /* of the first model's attention; names are set then as with weights. NULL: none */
    bool branches;    /* each of the likeliest units after the start goes on by itself, see at_alternatives */
    bool *not_finite; /* NULL, or becomes true if the job fails because the model's numbers are not finite */
    bool wants_ends;  /* of at_search: at_result_ends is called for its results */
    const at_extension_observer *extensions; /* of the search of one line; NULL: none */
    at_search_memory **memory; /* of the calls before; NULL again after one that fails. NULL: it is not kept */
} at_search_job;

/* The job by these settings, in which 0 is a default, as by at_translate. */
bool at_translate_job(at_search_job job, const at_search_settings *settings, at_error *error);

/* For a result that on_result gets of a job that wants them: [count of best[rank]] the byte of the hypothesis' text where
 * each of its units ends, never inside a character. */
const int32_t *at_result_ends(const at_result *result, int64_t rank);

/* Translates the lines, or continues them with a language model. A source without a unit has one empty hypothesis. */
bool at_search(const at_search_job *job, at_error *error);
/* The same line by line in parts, as `split` and `placeholders` say; results have texts and scores alone. */
bool at_search_passages(const at_search_job *job, at_error *error);
/* Forced decoding of given pairs, or of targets only with a language model: log-probability of the target and the
 * weights [target units + end, source units]. */
bool at_forced(const at_search_job *job, at_error *error);
/* The encoder only: each line's features, in its at_result. */
bool at_encode_lines(const at_search_job *job, at_error *error);

/* Runs one of these by all processes that share the translator (search_ranks.c), or by this one alone. An error that is set
 * before is that of all. */
typedef bool at_search_runner(const at_search_job *job, at_error *error);
bool at_search_shared(const at_search_job *job, at_search_runner *run, at_error *error);

#endif
