/* The micro kernel: a block of C of up to 6 rows and WIDTH columns, held in registers while k runs. Everything that
 * multiplies matrices is made of it, so every product is the same chain: c = fma(a[k], b[k], c) for k = 0, 1, 2, ... */
#ifndef AT_MICRO_INTERNAL_H
#define AT_MICRO_INTERNAL_H

#include "kernels/narrow_internal.h"

enum { ROWS = 6, WIDTH = 2 * LANES }; /* 12 accumulators, 2 of B, 1 of A: 15 of 16 registers */

/* A block of a product: C[i,j] = S[i,j] + sum_k A[i,k] B[k,j] + bias[j], for WIDTH columns j. */
typedef struct micro_block {
    int64_t k;
    const at_real *a;
    int64_t a_row, a_col;   /* A[i,k] = a[i*a_row + k*a_col] */
    const at_real *b;       /* micro_widened: the bytes of numbers of any type */
    int64_t b_row;          /* B[k,j] = b[k*b_row + j] */
    int64_t b_panel, ahead; /* micro_widened: panels of B are b_panel apart; numbers from here that are prefetched */
    const at_real *start;   /* S, what the sums start from; NULL: 0 */
    int64_t start_row;
    at_real *c;             /* may be `start` */
    int64_t c_row, c_panel; /* micro_widened: the panels of C, and those of S, are c_panel apart */
    const at_real *bias;    /* [WIDTH] or NULL */
    const at_real *scale;   /* [WIDTH]: a factor of the sum, before the bias; NULL: none */
} micro_block;

INLINE void micro_rows(const int rows, const micro_block *block)
{
    const at_real *a = block->a, *b = block->b;
    vec acc[ROWS][2];
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
        acc[i][0] = block->start ? v_load(block->start + i * block->start_row) : v_set(0);
        acc[i][1] = block->start ? v_load(block->start + i * block->start_row + LANES) : v_set(0);
    }
#pragma GCC unroll 4
    for (int64_t p = 0; p < block->k; p++) {
        vec b0 = v_load(b), b1 = v_load(b + LANES);
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            vec x = v_set(a[i * block->a_row]);
            acc[i][0] = v_fma(x, b0, acc[i][0]);
            acc[i][1] = v_fma(x, b1, acc[i][1]);
        }
        a += block->a_col;
        b += block->b_row;
    }
    if (block->scale) {
        vec low = block->bias ? v_load(block->bias) : v_set(0), high = block->bias ? v_load(block->bias + LANES) : low;
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            acc[i][0] = v_fma(acc[i][0], v_load(block->scale), low);
            acc[i][1] = v_fma(acc[i][1], v_load(block->scale + LANES), high);
        }
    } else if (block->bias) {
        vec low = v_load(block->bias), high = v_load(block->bias + LANES);
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            acc[i][0] += low;
            acc[i][1] += high;
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
        v_store(block->c + i * block->c_row, acc[i][0]);
        v_store(block->c + i * block->c_row + LANES, acc[i][1]);
    }
}

/* The same for 1 to 6 rows: one body for each, so the row count is a constant inside. */
INLINE void micro(int rows, const micro_block *block)
{
    switch (rows) {
    case 6:
        micro_rows(6, block);
        break;
    case 5:
        micro_rows(5, block);
        break;
    case 4:
        micro_rows(4, block);
        break;
    case 3:
        micro_rows(3, block);
        break;
    case 2:
        micro_rows(2, block);
        break;
    case 1:
        micro_rows(1, block);
        break;
    }
}

/* One k of micro_widened: acc += a B[k], b and the sums of `panels` panels. With all ROWS every register is taken: a
 * compiler that moves loads ahead would put sums into memory. */
INLINE void step_widened(const int rows, const int panels, const at_number_type type, const micro_block *block,
                         const at_real *a, const char *b, vec (*acc)[8])
{
    const int64_t panel = block->b_panel * (int64_t)number_size(type);
#pragma GCC unroll 4
    for (int j = 0; j < panels; j++) {
        vec low, high;
        widen(type, b + j * panel, &low, &high);
        if (rows == ROWS)
            v_keep(&low, &high);
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            const vec x = v_set(a[i * block->a_row]);
            acc[i][2 * j] = v_fma(x, low, acc[i][2 * j]);
            acc[i][2 * j + 1] = v_fma(x, high, acc[i][2 * j + 1]);
            if (rows == ROWS)
                v_keep(&acc[i][2 * j], &acc[i][2 * j + 1]);
        }
    }
}

/* Where the sums j of a row belong in C: two of each panel. */
INLINE int64_t column_of(const micro_block *block, int j)
{
    return j / 2 * block->c_panel + j % 2 * LANES;
}

/* Very few rows leave most accumulators idle in one panel, so several panels run side by side. No bias, no scale. B is
 * read once, so what follows is prefetched, a line of the cache at a time. */
INLINE void micro_widened(const int rows, const int panels, const at_number_type type, const micro_block *block)
{
    const at_real *a = block->a;
    const char *b = (const char *)block->b;
    const int64_t size = (int64_t)number_size(type), panel = block->b_panel * size, ahead = block->ahead * size;
    const int steps = WIDTH * (int)size < 64 ? 64 / (WIDTH * (int)size) : 1; /* of k in a line */
    vec acc[ROWS][8];
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int j = 0; j < 2 * panels; j++)
            acc[i][j] = block->start ? v_load(block->start + i * block->start_row + column_of(block, j)) : v_set(0);
    int64_t p = 0;
    for (; p + steps <= block->k; p += steps) {
#pragma GCC unroll 4
        for (int j = 0; j < panels; j++)
            __builtin_prefetch(b + j * panel + ahead, 0, 2);
#pragma GCC unroll 8
        for (int step = 0; step < steps; step++, a += block->a_col, b += block->b_row * size)
            step_widened(rows, panels, type, block, a, b, acc);
    }
    for (; p < block->k; p++, a += block->a_col, b += block->b_row * size)
        step_widened(rows, panels, type, block, a, b, acc);
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int j = 0; j < 2 * panels; j++)
            v_store(block->c + i * block->c_row + column_of(block, j), acc[i][j]);
}

/* Panels of numbers that follow one another in C: rows x (panels*WIDTH). */
INLINE void micro_wide(const int rows, const int panels, const micro_block *block)
{
    micro_block wide = *block;
    wide.c_panel = WIDTH;
    wide.ahead = panels * block->b_panel;
    micro_widened(rows, panels, AT_NUMBERS_REAL, &wide);
}

#endif
