/* A decoder's cache: keys and values of the tokens so far and of the source, so that a step of search computes only its
 * own tokens. Hypotheses share it: a row of the search is a list of pointers to its tokens' slots, and selecting rows
 * copies pointers, never numbers. Memory grows by whole steps, never moves, and is used again by the next batch. */
#ifndef AT_CACHE_H
#define AT_CACHE_H

#include "attention/types.h"

typedef struct at_cache at_cache;

at_cache *at_cache_new(void); /* NULL: out of memory */
void at_cache_free(at_cache *cache);

/* A new batch of `rows` sentences. `source`, one tensor [positions, width] for each layer (none: layers 0), is copied;
 * the positions of row b are at[b] .. at[b] + count[b] - 1. */
bool at_cache_begin(at_cache *cache, int64_t rows, int layers, at_tensor *const *source, const int64_t *at,
                    const int64_t *count, at_error *error);
/* Row i becomes old row rows[i]. */
bool at_cache_select(at_cache *cache, const int64_t *rows, int64_t count, at_error *error);

int64_t at_cache_rows(const at_cache *cache);
int64_t at_cache_steps(const at_cache *cache); /* tokens of each row so far */

/* ---- For models ---- */

/* Slots for `steps` more tokens of every row, each of `width` numbers (all layers together; the same in every call). */
bool at_cache_extend(at_cache *cache, int64_t steps, int64_t width, at_error *error);
/* The slot of row b's token at `step`. */
at_real *at_cache_slot(const at_cache *cache, int64_t b, int64_t step);
/* Sets the rows of `packed` to one query per row over its first `steps` tokens; the arrays live on the tape. The caller
 * sets the columns of keys and values. */
bool at_cache_pack_steps(const at_cache *cache, at_tape *tape, int64_t steps, at_packed *packed);
/* The same over a layer's source: returns the tensor [positions, width]. */
at_tensor *at_cache_pack_source(const at_cache *cache, at_tape *tape, int layer, at_packed *packed);

#endif
