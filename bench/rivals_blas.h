/* The libraries that multiply matrices, opened at run time if they are installed. */
#ifndef BENCH_RIVALS_BLAS_H
#define BENCH_RIVALS_BLAS_H

#include "measure.h"

/* C [m,n] = A B, all row-major; A is stored [k,m] if transpose_a, B [n,k] if transpose_b. */
typedef struct product {
    int m, k, n;
    bool transpose_a, transpose_b;
    const float *a, *b;
    float *c;
} product;

/* Opens the libraries that are installed and names the missing ones on stderr. */
void blas_open(void);

/* Adds the libraries that are installed; a product may be shared by all of them. */
void blas_add(race *r, product *p);

#endif
