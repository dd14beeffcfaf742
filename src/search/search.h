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

/* One call: the lines, how to search them, and who gets the results. */
typedef struct at_search_job {
    at_translator *translator;
    const at_search_settings *settings;
    const at_line *lines;   /* [count] sources, or what a language model continues; NULL: forced decoding without any */
    const at_line *targets; /* [count] for forced decoding */
    int64_t count;
    at_next_line *next_line; /* lines as they come, in place of the arrays; NULL: the arrays */
    at_on_result *on_result;
    void *context;               /* of both callbacks */
    const at_encoded *target;    /* forced decoding of one line: its units, in place of `targets` */
    const at_observer *observer; /* of the first model's attention; names are set then as with weights. NULL: none */
    bool *not_finite;            /* NULL, or becomes true if the job fails because the model's numbers are not finite */
} at_search_job;

/* Translates the lines, or continues them with a language model. A source without a unit has one empty hypothesis. */
bool at_search(const at_search_job *job, at_error *error);
/* Forced decoding of given pairs, or of targets only with a language model: log-probability of the target and the
 * weights [target units + end, source units]. */
bool at_forced(const at_search_job *job, at_error *error);
/* The encoder only: each line's features, in its at_result. */
bool at_encode_lines(const at_search_job *job, at_error *error);

#endif
