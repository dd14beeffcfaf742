/* A decoder's cache: what its layers made of the words so far and of the source, so that a step of search computes its
 * own words only. Hypotheses are paths through it: a row of the search holds the places of its words, and picking,
 * repeating and dropping rows moves those places, never the numbers. Memory grows by whole steps and never moves; it is
 * given back when the next batch begins, and used again. */
#ifndef AT_CACHE_H
#define AT_CACHE_H

#include "attention/types.h"

typedef struct at_cache at_cache;

at_cache *at_cache_new(void); /* NULL if memory is out */
void at_cache_free(at_cache *cache);

/* A new batch of `rows` sentences. `source`, one tensor [positions, width] for each layer (none: layers 0), is copied;
 * the positions of row b are at[b] .. at[b] + count[b] - 1. */
bool at_cache_begin(at_cache *cache, int64_t rows, int layers, at_tensor *const *source, const int64_t *at,
                    const int64_t *count, at_error *error);
/* Row i becomes old row rows[i]. */
bool at_cache_select(at_cache *cache, const int64_t *rows, int64_t count, at_error *error);

int64_t at_cache_rows(const at_cache *cache);
int64_t at_cache_steps(const at_cache *cache); /* words so far */

/* ---- For models ---- */

/* Room for `steps` more words of every row, each of `width` numbers (all layers together; the same at every call). */
bool at_cache_extend(at_cache *cache, int64_t steps, int64_t width, at_error *error);
/* Where the numbers of row b's word at `step` lie. */
at_real *at_cache_word(const at_cache *cache, int64_t b, int64_t step);
/* Lets attention look at the first `steps` words of every row, through places of its own that live on the tape. The
 * columns of keys and values are the caller's to set. */
bool at_cache_look(const at_cache *cache, at_tape *tape, int64_t steps, at_packed *packed);
/* The same for a layer's source: the tensor [positions, width], and where each row's positions are. */
at_tensor *at_cache_look_source(const at_cache *cache, at_tape *tape, int layer, at_packed *packed);

#endif
