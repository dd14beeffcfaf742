/* How the weight of one pair came about, for the explorer. */
#ifndef AT_PAIRS_INTERNAL_H
#define AT_PAIRS_INTERNAL_H

#include "attend_unstable.h"
#include "base/buffer.h"

/* Adds the queries and keys of a head to its JSON object, as "size", "scaled", "seen", "q" and "k", if its weights are
 * softmax(s q k) over the keys that have a weight, s being 1 / sqrt(D) or 1; adds nothing otherwise. Vectors are 16-bit
 * numbers, qUnit and kUnit the value of 1; the weights of row i are between the keys seen[i]. */
void at_pairs_add(at_buffer *text, const at_map *map, const at_map_vectors *vectors, int head);

#endif
