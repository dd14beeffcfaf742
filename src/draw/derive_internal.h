/* What follows from the weights of several heads. */
#ifndef AT_DERIVE_INTERNAL_H
#define AT_DERIVE_INTERNAL_H

#include "attend_unstable.h"

/* The mean over all heads of the maps, which are of one size: out [rows, columns]. */
void at_derive_mean(const at_map *const *maps, int count, float *out);

/* Attention rollout (Abnar, Zuidema 2020) through the layers of a self-attention, `maps` in their order:
 *   R_0 = I,  R_l = (1/2 mean_h A_l + 1/2 I) R_(l-1);  out [rows, rows]. False if out of memory. */
bool at_derive_rollout(const at_map *const *maps, int count, float *out);

/* The mean over all heads of how much each key adds to a row (Kobayashi et al. 2020), as shares of the row:
 *   out_ij = mean_h w_ij |v_j W_O| / sum_j w_ij |v_j W_O|. */
void at_derive_norms(const at_map *const *maps, const at_map_vectors *const *vectors, int count, float *out);

/* The mean entropy of the rows, H = -sum_j w_ij log w_ij, in nats. */
double at_derive_entropy(const float *weights, int64_t rows, int64_t columns);

#endif
