/* Passes over the whole block of parameters: the update by Adam and the norm of the gradient. */
#ifndef AT_UPDATE_H
#define AT_UPDATE_H

#include <stdint.h>

#include "base/real.h"

/* The numbers of one update by Adam. */
typedef struct adam_pass {
    at_real scale; /* of every gradient */
    at_real beta1, beta2, epsilon;
    at_real step;    /* rate / (1 - beta1^t) */
    at_real correct; /* 1 / (1 - beta2^t) */
    at_real shrink;  /* of every parameter: 1, or less with weight decay */
    at_real keep;    /* of the moving average */
} adam_pass;

typedef struct update_kernels {
    /* Parameters w, their gradients, which are zeroed, moments m and v, moving average (NULL: none). */
    void (*adam)(const adam_pass *pass, at_real *w, at_real *grad, at_real *m, at_real *v, at_real *average,
                 int64_t count);
    double (*squares)(const at_real *x, int64_t count); /* their sum */
} update_kernels;

#endif
