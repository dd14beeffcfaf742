/* C = act(A B + bias), our own. Every element is one chain of fused multiply-adds over k = 0, 1, 2, ... whatever the
 * shape, the blocking, the transposes or the threads, so a row's bits never depend on the rows around it. */
#ifndef AT_GEMM_H
#define AT_GEMM_H

#include "base/arena.h"
#include "kernels/narrow.h"

typedef enum at_act { AT_ACT_NONE, AT_ACT_TANH, AT_ACT_SIGMOID, AT_ACT_RELU } at_act;

typedef struct at_gemm {
    int64_t m, n, k;
    const at_real *a;
    int64_t a_row, a_col; /* A[i,p] = a[i*a_row + p*a_col] */
    const at_real *b;
    int64_t b_row, b_col;  /* B[p,j] = b[p*b_row + j*b_col] */
    const at_real *packed; /* B packed by at_gemm_pack, used instead of b when not NULL */
    at_narrow narrow;      /* the same in fewer bits, used instead of both when there are numbers; not if C accumulates */
    at_real *c;
    int64_t c_row;       /* C[i,j] = c[i*c_row + j] */
    bool accumulate;     /* start the chain from C instead of 0 */
    const at_real *bias; /* [n] or NULL; added after the sum */
    at_act act;
} at_gemm;

/* Scratch for packing comes from the arena and goes back to it. False if the arena is out of memory. */
bool at_gemm_run(const at_gemm *gemm, at_arena *arena);

/* The same product for `count` batches, pointers advancing by the given strides (0: shared). */
bool at_gemm_batch(const at_gemm *first, int64_t count, int64_t a_step, int64_t b_step, int64_t c_step,
                   at_arena *arena);

/* Weights packed once and reused: `at_gemm_packed_size` numbers at `packed`, aligned to AT_ALIGN. */
int64_t at_gemm_packed_size(int64_t k, int64_t n);
void at_gemm_pack(const at_real *b, int64_t b_row, int64_t b_col, int64_t k, int64_t n, at_real *packed);

#endif
