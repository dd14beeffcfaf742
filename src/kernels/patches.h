/* Products whose A is read where it lies, in patches of a picture: C = act(A B + bias), where both the rows of A and what is
 * summed are lines of equal distances, so that nothing is copied first. The sums are the chains of a gemm. */
#ifndef AT_PATCHES_H
#define AT_PATCHES_H

#include "kernels/gemm.h"

/* Row i = line * cells + cell and k = span * steps + step:
 *   A[i,k] = a[line * a_line + cell * a_cell + span * a_span + step * a_step], C[i,j] = c[line * c_line + cell * c_cell + j] */
typedef struct at_patch_product {
    int64_t lines, cells, spans, steps, n;
    const at_real *a;
    int64_t a_line, a_cell, a_span, a_step;
    const at_real *packed; /* B [k,n] by at_gemm_pack */
    at_real *c;
    int64_t c_line, c_cell;
    bool accumulate;     /* start the chain from C instead of 0 */
    const at_real *bias; /* [n] or NULL; added after the sum */
    at_act act;
} at_patch_product;

void at_patch_product_run(const at_patch_product *product);

typedef struct patch_kernels {
    void (*rows)(const at_patch_product *product, int64_t from, int64_t to); /* the rows from .. to - 1 */
} patch_kernels;

#endif
