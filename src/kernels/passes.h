/* Passes over rows that are bound by memory, each read and written once: dropout masks, layer norm around a residual,
 * the softmax of a cross-entropy. */
#ifndef AT_PASSES_H
#define AT_PASSES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/real.h"

/* One row of LN(s), s = x + mask y:
 * out = gain (s - mean) r + bias, r = 1 / sqrt(variance + eps). */
typedef struct norm_row {
    int64_t size;
    const at_real *x, *y; /* y NULL: s = x */
    const at_real *mask;  /* y's factors, 0 where it is dropped; NULL: all of y. May be `out` */
    const at_real *gain, *bias;
    at_real eps;
    at_real *sum, *out; /* s is written here if there is a y; may be `out` */
    at_real mean, r;    /* results */
} norm_row;

/* Its backward pass: from g = dL/dout and g_sum = dL/ds (NULL: 0) to x and y, and to the sums for gain and bias (NULL:
 * not needed). */
typedef struct norm_back {
    int64_t size;
    const at_real *s, *g, *g_sum, *mask, *gain;
    at_real mean, r;
    at_real *x_grad, *y_grad;
    bool x_add, y_add; /* to what is there; else written */
    at_real *gain_grad, *bias_grad;
} norm_back;

/* What a row of logits z comes to. */
typedef struct log_sum_row {
    at_real max;
    double sum;   /* of e^(z - max); NaN unless all of z is finite */
    double total; /* of z */
} log_sum_row;

typedef struct pass_kernels {
    /* mask[i] = 1/keep with probability keep, else 0, for the numbers first .. first + count - 1 of the draw (seed,
     * counter): number i has word i % 4 of lane i / 4 (see at_philox). */
    void (*mask)(at_real *mask, uint64_t seed, uint64_t counter, int64_t first, int64_t count, at_real keep);
    void (*masked)(at_real *to, const at_real *from, const at_real *mask, int64_t count,
                   bool add); /* to = or += from mask, 0 where the mask is, whatever `from` is there */
    void (*norm)(norm_row *row);
    void (*norm_back)(const norm_back *row);
    log_sum_row (*log_sum)(const at_real *z, int64_t size);
    /* to = or += factor e^(z - max) - each; `to` may be z */
    void (*softmax_back)(at_real *to, const at_real *z, int64_t size, at_real max, at_real factor, at_real each,
                         bool add);
} pass_kernels;

#endif
