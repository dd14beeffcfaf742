/* Search: from source lines to target lines. Batched, finished sentences leave the batch, results in input order; the
 * same bytes for any batch size and number of threads. */
#ifndef AT_SEARCH_H
#define AT_SEARCH_H

#include "checkpoint.h"

typedef struct at_search_settings {
    int64_t beam;             /* 1: greedy */
    double length_penalty;    /* score / ((5 + n) / 6)^A; 0: none */
    int64_t n_best;           /* at most beam */
    double temperature;       /* > 0: sample instead of searching */
    uint64_t seed;            /* of sampling: by line number, so batches do not matter */
    int64_t batch;            /* sentences at a time */
    double max_length_factor; /* longest output = factor * source units + 10 */
    bool replace_unknown;     /* an unknown target word becomes the source word with the largest weight */
    bool wants_weights;
} at_search_settings;

/* One hypothesis. Weights are [target units + the end, source units] of it, NULL if not asked for. */
typedef struct at_hypothesis {
    char *text;
    int32_t *ids;
    int64_t count;    /* without the end */
    double score;     /* log-probability, the end included */
    double penalised; /* what the beam ranked by */
    float *weights;
    int64_t source_units;
} at_hypothesis;

typedef struct at_found {
    int64_t count;
    at_hypothesis *best;
} at_found; /* count 1 .. n_best */

/* Translates `count` lines; `give` gets each line's result in order (valid during the call). An empty line gives one
 * empty hypothesis. False with a sentence only for lack of memory or a `give` that returns false. */
typedef bool at_give(void *context, int64_t line, const at_found *found);
bool at_search(at_translator *translator, const at_search_settings *settings, const char *const *lines,
               const size_t *sizes, int64_t count, at_give *give, void *context, at_error *error);

/* Forced decoding of given pairs: log-probability of the target and the weights [target units + end, source units]. */
bool at_forced(at_translator *translator, const char *const *sources, const size_t *source_sizes,
               const char *const *targets, const size_t *target_sizes, int64_t count, int64_t batch, at_give *give,
               void *context, at_error *error);

#endif
