/* Search: from source lines to target lines. Batched, finished sentences leave the batch, results in input order; the
 * same bytes for any batch size and number of threads. The types are those of attend.h; here the settings are complete
 * (no field 0 for a default) and sound: api_translate.c sees to it, and trainers fill them in themselves. */
#ifndef AT_SEARCH_H
#define AT_SEARCH_H

#include "store/checkpoint.h"

enum { AT_CONTINUATION = 100 }; /* units that a language model adds at most, unless told otherwise */

/* Fills in the defaults of attend.h; false with a sentence if the settings do not fit together. */
bool at_search_complete(at_search_settings *settings, at_error *error);

/* Translates `count` lines, or with a language model goes on from each of them; `give` gets each line's result in order
 * (valid during the call). A source without a unit gives one empty hypothesis. False with a sentence only for lack of
 * memory, weights asked of a model that has none, or a `give` that returns false. */
bool at_search(at_translator *translator, const at_search_settings *settings, const char *const *lines,
               const size_t *sizes, int64_t count, at_give *give, void *context, at_error *error);

/* Forced decoding of given pairs (of targets alone with a language model, `sources` NULL): log-probability of the
 * target and the weights [target units + end, source units]. */
bool at_forced(at_translator *translator, const at_search_settings *settings, const char *const *sources,
               const size_t *source_sizes, const char *const *targets, const size_t *target_sizes, int64_t count,
               at_give *give, void *context, at_error *error);

/* The encoder alone: each line's features, in its at_found. */
bool at_encode_lines(at_translator *translator, const at_search_settings *settings, const char *const *lines,
                     const size_t *sizes, int64_t count, at_give *give, void *context, at_error *error);

#endif
