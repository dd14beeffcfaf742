/* The plain mean of the parameters at the last validations, as Vaswani et al. took that of their last checkpoints. */
#ifndef AT_AVERAGE_INTERNAL_H
#define AT_AVERAGE_INTERNAL_H

#include "tape/params.h"

typedef struct at_average at_average;

/* Remembers the parameters of up to `most` validations: with the room of the mean, most + 1 copies. */
at_average *at_average_new(int64_t most, at_params *params, at_error *error);
void at_average_free(at_average *average);

/* Remembers the parameters as they are after update `now`; the oldest ones make room. */
void at_average_keep(at_average *average, int64_t now);

/* The mean of the parameters as they are after update `now` and those of the most - 1 validations before it, or as many
 * as there were. Between two validations, what is now stands for what the next one would remember. The mean belongs to
 * the average and lasts until the next call. */
at_real *at_average_mean(at_average *average, int64_t now);

/* Into and out of a training state, bit for bit. */
bool at_average_save(const at_average *average, at_tensors *tensors, at_error *error);
bool at_average_load(at_average *average, const at_tensors *tensors, at_error *error);

#endif
