/* The mean of the parameters at the last validations, as Vaswani et al. (2017) average their last checkpoints. */
#ifndef AT_AVERAGE_INTERNAL_H
#define AT_AVERAGE_INTERNAL_H

#include "tape/params.h"

typedef struct at_average at_average;

/* Memory for the parameters of `most` validations and for the mean: most + 1 copies. */
at_average *at_average_new(int64_t most, at_params *params, at_error *error);
void at_average_free(at_average *average);

/* Copies the current parameters, those after update `now`; with `most` copies the oldest is replaced. */
void at_average_add(at_average *average, int64_t now);

/* The mean of the current parameters, those after update `now`, and of up to most - 1 validations before. The mean
 * belongs to the average and is valid until the next call. */
at_real *at_average_mean(at_average *average, int64_t now);

/* Writes to and reads from a training state, bit for bit; `now` is the update of that state. */
bool at_average_save(const at_average *average, at_tensors *tensors, at_error *error);
bool at_average_load(at_average *average, const at_tensors *tensors, int64_t now, at_error *error);

#endif
