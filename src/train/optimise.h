/* Optimisers over the one block of parameters: flat loops with the same bits for any number of threads. */
#ifndef AT_OPTIMISE_H
#define AT_OPTIMISE_H

#include "base/group.h"
#include "tape/params.h"

typedef enum at_optimiser_kind { AT_ADAM, AT_ADAMW, AT_ADADELTA, AT_SGD } at_optimiser_kind;
typedef enum at_schedule { AT_CONSTANT, AT_NOAM, AT_INVERSE_SQRT, AT_COSINE } at_schedule;

typedef struct at_optimiser_settings {
    at_optimiser_kind kind;
    double learning_rate;
    double beta1, beta2,
        epsilon;         /* adam: 0.9, 0.999 (0.98 with noam), 1e-8; adadelta: rho in beta1 0.95, epsilon 1e-6 */
    double weight_decay; /* adamw */
    double clip_norm;    /* 0: none */
    double ema;          /* decay of the moving average of the parameters; 0: none */
    at_schedule schedule;
    int64_t warmup, updates; /* updates: the end of the cosine schedule */
    int64_t width;           /* d of noam */
} at_optimiser_settings;

/* The learning rate at update `step` (from 1): constant with linear warm-up, noam (learning_rate d^-0.5
 * min(step^-0.5, step warmup^-1.5)), inverse-sqrt, or cosine. */
double at_schedule_rate(const at_optimiser_settings *settings, int64_t step);

/* The numbers from..to-1 of the block of parameters that a rank of a group updates. */
typedef struct at_share {
    int64_t from, to;
} at_share;
at_share at_share_of(int64_t count, int rank, int size);

typedef struct at_optimiser at_optimiser;
/* Frozen parameters, which must be frozen before, keep their bits. */
at_optimiser *at_optimiser_new(const at_optimiser_settings *settings, at_params *params, at_error *error);
/* From now on each rank of the group has the moments of its share of the parameters only, and updates these. */
bool at_optimiser_join(at_optimiser *optimiser, at_group *group, at_error *error);
void at_optimiser_free(at_optimiser *optimiser);

/* One update from the gradients of the parameters (of a rank's share, and then all ranks get all parameters), each multiplied by `scale` (such as 1/tokens); then they are set to
 * zero. If they are not finite, the parameters stay as they are and *skipped is true. *norm: before clipping. Fails with
 * AT_FAILED if the update makes a parameter that is not finite; all that was computed is of no use then. */
bool at_optimiser_step(at_optimiser *optimiser, double scale, double *norm, bool *skipped, at_error *error);
int64_t at_optimiser_steps(const at_optimiser *optimiser);
double at_optimiser_rate(const at_optimiser *optimiser);
/* All ranks call it, and then each has the moments and the moving average of all. */
bool at_optimiser_collect(at_optimiser *optimiser, at_error *error);
/* All ranks continue from the updates, moments and moving average of rank 0. */
bool at_optimiser_copy(at_optimiser *optimiser, at_error *error);
at_real *at_optimiser_ema(at_optimiser *optimiser); /* the moving average of the parameters; NULL: none */

/* Writes moments and moving average to a training state and reads them back, bit for bit. */
bool at_optimiser_save(const at_optimiser *optimiser, at_tensors *tensors, at_error *error);
bool at_optimiser_load(at_optimiser *optimiser, const at_tensors *tensors, at_error *error);
int64_t at_optimiser_steps_in(const at_tensors *tensors); /* the updates of a state; -1: it does not say */

#endif
