/* Parameters live in one block: values, gradients and moments are flat arrays of the same layout, so Adam, clipping,
 * averaging and saving are one flat loop each. */
#ifndef AT_PARAMS_H
#define AT_PARAMS_H

#include "kernels/narrow.h"
#include "tape/tape.h"

typedef struct at_params at_params;

at_params *at_params_new(void);
void at_params_free(at_params *params);

/* Declares a parameter; returns its index, -1 for a name that is taken or after at_params_fix. */
int at_params_add(at_params *params, const char *name, at_shape shape, at_error *error);
/* The same for a matrix [rows,columns] of which only products and lookups of rows are made (at_weights): its numbers may
 * have fewer bits. */
int at_params_add_matrix(at_params *params, const char *name, at_shape shape, at_error *error);
/* Ends the declarations: one zeroed block for values and one for gradients. */
bool at_params_fix(at_params *params, at_error *error);
/* The same without gradients, for a model that is only used: its parameters are constants of a tape. at_params_fix adds
 * them later. */
bool at_params_fix_values(at_params *params, at_error *error);

int at_params_number(const at_params *params);    /* how many parameters */
int64_t at_params_count(const at_params *params); /* how many numbers in all */
at_real *at_params_values(at_params *params);     /* [count], if no matrix has fewer bits */
at_real *at_params_grads(at_params *params);      /* NULL without gradients */
const char *at_params_name(const at_params *params, int index);
at_shape at_params_shape(const at_params *params, int index);
at_real *at_params_value(at_params *params, int index);        /* NULL: it has fewer bits */
int at_params_find(const at_params *params, const char *name); /* -1 if there is none */

/* Optimisers leave a frozen parameter alone, and its gradient out of the norm. */
void at_params_freeze(at_params *params, int index);
bool at_params_frozen(const at_params *params, int index);

/* ---- Fewer bits (params_narrow.c) ---- */

bool at_params_is_matrix(const at_params *params, int index);
at_number_type at_params_type(const at_params *params, int index);
int64_t at_params_bytes(const at_params *params); /* of all numbers, as a file has them */
int64_t at_params_held(const at_params *params);  /* of memory that they take, packed copies included */
/* Before the parameters are fixed: the type that memory is allocated for. Only matrices have one to choose; at_params_is_open
 * tells whether this one still has. */
bool at_params_is_open(const at_params *params, int index);
void at_params_set_type(at_params *params, int index, at_number_type type);
/* A matrix of fewer bits from its rows and back; `scale` [rows] for int8, else NULL. */
void at_params_put_narrow(at_params *params, int index, const void *rows, const at_real *scale);
const at_real *at_params_get_narrow(const at_params *params, int index, void *rows); /* returns the scale */
/* All matrices of fixed parameters from now on: rounded, or widened. Gradients are gone then; nobody else may use the
 * parameters meanwhile. */
bool at_params_convert(at_params *params, at_number_type type, at_error *error);
/* A matrix of fewer bits as products read it; without numbers if it has a value. */
at_narrow at_params_narrow(const at_params *params, int index);

/* ---- On a tape ---- */

/* The parameter as a leaf on a tape; its gradient adds to the block. What has fewer bits is widened on the tape. */
at_tensor *at_param(at_tape *tape, at_params *params, int index);
/* The same for a matrix that at_linear or at_embedding gets: with fewer bits it is not widened, and `value` is NULL. */
at_tensor *at_weights(at_tape *tape, at_params *params, int index);
/* The value of such a leaf, widened on the tape if need be. */
const at_real *at_weights_wide(at_tensor *weights);

/* Weights packed once for the inner product and reused until at_params_changed says the values moved. Several threads may
 * call it at the same time. */
const at_real *at_params_packed(at_params *params, int index, bool transposed);
void at_params_changed(at_params *params);

#endif
