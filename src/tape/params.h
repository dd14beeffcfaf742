/* Parameters live in one block: values, gradients and moments are flat arrays of the same layout, so Adam, clipping,
 * averaging and saving are one flat loop each. */
#ifndef AT_PARAMS_H
#define AT_PARAMS_H

#include "tape/tape.h"

typedef struct at_params at_params;

at_params *at_params_new(void);
void at_params_free(at_params *params);

/* Declares a parameter; returns its index, -1 for a name that is taken or after at_params_fix. */
int at_params_add(at_params *params, const char *name, at_shape shape, at_error *error);
/* Ends the declarations: one zeroed block for values and one for gradients. */
bool at_params_fix(at_params *params, at_error *error);
/* The same without gradients, for a model that is only used: its parameters are constants of a tape. at_params_fix adds
 * them later. */
bool at_params_fix_values(at_params *params, at_error *error);

int at_params_number(const at_params *params);    /* how many parameters */
int64_t at_params_count(const at_params *params); /* how many numbers in all */
at_real *at_params_values(at_params *params);
at_real *at_params_grads(at_params *params); /* NULL without gradients */
const char *at_params_name(const at_params *params, int index);
at_shape at_params_shape(const at_params *params, int index);
at_real *at_params_value(at_params *params, int index);
int at_params_find(const at_params *params, const char *name); /* -1 if there is none */

/* Optimisers leave a frozen parameter alone, and its gradient out of the norm. */
void at_params_freeze(at_params *params, int index);
bool at_params_frozen(const at_params *params, int index);

/* The parameter as a leaf on a tape; its gradient adds to the block. */
at_tensor *at_param(at_tape *tape, at_params *params, int index);

/* Weights packed once for the inner product and reused until at_params_changed says the values moved. Several threads may
 * call it at the same time. */
const at_real *at_params_packed(at_params *params, int index, bool transposed);
void at_params_changed(at_params *params);

#endif
