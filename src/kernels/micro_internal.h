/* The micro kernel: a block of C of up to 6 rows and WIDTH columns, held in registers while k runs. Everything that
 * multiplies matrices is made of it, so every product is the same chain: c = fma(a[k], b[k], c) for k = 0, 1, 2, ... */
#ifndef AT_MICRO_INTERNAL_H
#define AT_MICRO_INTERNAL_H

#include "kernels/vec_internal.h"

enum { ROWS = 6, WIDTH = 2 * LANES }; /* 12 accumulators, 2 of B, 1 of A: 15 of 16 registers */

/* c[i,0..WIDTH) = (load ? c : 0) + sum_k a[i*a_row + k*a_col] * b[k*b_row + 0..WIDTH) + bias, for i < rows;
 * bias [WIDTH] or NULL */
INLINE void micro_rows(const int rows, int64_t k, const at_real *a, int64_t a_row, int64_t a_col, const at_real *b,
                       int64_t b_row, at_real *c, int64_t c_row, bool load, const at_real *bias)
{
    vec acc[ROWS][2];
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
        acc[i][0] = load ? v_load(c + i * c_row) : v_set(0);
        acc[i][1] = load ? v_load(c + i * c_row + LANES) : v_set(0);
    }
#pragma GCC unroll 4
    for (int64_t p = 0; p < k; p++) {
        vec b0 = v_load(b), b1 = v_load(b + LANES);
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            vec x = v_set(a[i * a_row]);
            acc[i][0] = v_fma(x, b0, acc[i][0]);
            acc[i][1] = v_fma(x, b1, acc[i][1]);
        }
        a += a_col;
        b += b_row;
    }
    if (bias) {
        vec low = v_load(bias), high = v_load(bias + LANES);
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            acc[i][0] += low;
            acc[i][1] += high;
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
        v_store(c + i * c_row, acc[i][0]);
        v_store(c + i * c_row + LANES, acc[i][1]);
    }
}

/* The same for any rows from 1 to 6: one body for each, so the row count is a constant inside. */
INLINE void micro(int rows, int64_t k, const at_real *a, int64_t a_row, int64_t a_col, const at_real *b, int64_t b_row,
                  at_real *c, int64_t c_row, bool load, const at_real *bias)
{
    switch (rows) {
    case 6:
        micro_rows(6, k, a, a_row, a_col, b, b_row, c, c_row, load, bias);
        break;
    case 5:
        micro_rows(5, k, a, a_row, a_col, b, b_row, c, c_row, load, bias);
        break;
    case 4:
        micro_rows(4, k, a, a_row, a_col, b, b_row, c, c_row, load, bias);
        break;
    case 3:
        micro_rows(3, k, a, a_row, a_col, b, b_row, c, c_row, load, bias);
        break;
    case 2:
        micro_rows(2, k, a, a_row, a_col, b, b_row, c, c_row, load, bias);
        break;
    case 1:
        micro_rows(1, k, a, a_row, a_col, b, b_row, c, c_row, load, bias);
        break;
    }
}

/* Very few rows leave most accumulators idle in one panel, so several panels run side by side: rows x (panels*WIDTH).
 */
INLINE void micro_wide(const int rows, const int panels, int64_t k, const at_real *a, int64_t a_row, int64_t a_col,
                       const at_real *b, int64_t b_row, int64_t panel_step, at_real *c, int64_t c_row, bool load)
{
    vec acc[3][8];
#pragma GCC unroll 3
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int j = 0; j < 2 * panels; j++)
            acc[i][j] = load ? v_load(c + i * c_row + j * LANES) : v_set(0);
    for (int64_t p = 0; p < k; p++) {
#pragma GCC unroll 8
        for (int j = 0; j < 2 * panels; j++) {
            vec x = v_load(b + (j >> 1) * panel_step + (j & 1) * LANES);
            if ((j & 1) == 0) /* the panels after these, which nothing but these products hides the way to */
                __builtin_prefetch(b + ((j >> 1) + panels) * panel_step, 0, 2);
#pragma GCC unroll 3
            for (int i = 0; i < rows; i++)
                acc[i][j] = v_fma(v_set(a[i * a_row]), x, acc[i][j]);
        }
        a += a_col;
        b += b_row;
    }
#pragma GCC unroll 3
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int j = 0; j < 2 * panels; j++)
            v_store(c + i * c_row + j * LANES, acc[i][j]);
}

#endif
