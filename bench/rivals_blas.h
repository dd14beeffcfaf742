/* The libraries that multiply matrices, opened at run time if they are installed. */
#ifndef BENCH_RIVALS_BLAS_H
#define BENCH_RIVALS_BLAS_H

#include "measure.h"

/* C [m,n] = A B, all row by row; A is stored [k,m] if transpose_a, B [n,k] if transpose_b. */
typedef struct product {
    int m, k, n;
    bool transpose_a, transpose_b;
    const float *a, *b;
    float *c;
} product;

/* Opens what there is and names on stderr what there is not. */
void blas_open(void);

/* Adds the libraries that are there; a product may be shared by all of them. */
void blas_add(race *r, product *p);

#endif
