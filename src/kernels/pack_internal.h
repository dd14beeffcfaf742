/* Packing: a matrix laid out as panels of WIDTH columns, [panel][k][WIDTH], the last one padded with zeros, so the
 * micro kernel reads it in one straight line. */
#ifndef AT_PACK_INTERNAL_H
#define AT_PACK_INTERNAL_H

#include "kernels/micro_internal.h"

/* The numbers of a (0, 1, ...) and b (LANES, LANES + 1, ...) that the list names. gcc before 12 has it under an older
 * name, clang under this one alone. */
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (veci){__VA_ARGS__})
#endif

/* LANES rows of LANES numbers transposed in registers: column[j][i] = row[i][j]. */
INLINE void turn_lanes(const vec *row, vec *column)
{
#if AT_LANES == 2
    column[0] = SHUFFLE(row[0], row[1], 0, 2);
    column[1] = SHUFFLE(row[0], row[1], 1, 3);
#elif AT_LANES == 4
    vec a = SHUFFLE(row[0], row[1], 0, 4, 2, 6), b = SHUFFLE(row[0], row[1], 1, 5, 3, 7);
    vec c = SHUFFLE(row[2], row[3], 0, 4, 2, 6), d = SHUFFLE(row[2], row[3], 1, 5, 3, 7);
    column[0] = SHUFFLE(a, c, 0, 1, 4, 5);
    column[1] = SHUFFLE(b, d, 0, 1, 4, 5);
    column[2] = SHUFFLE(a, c, 2, 3, 6, 7);
    column[3] = SHUFFLE(b, d, 2, 3, 6, 7);
#elif AT_LANES == 16
    /* Four rounds: neighbours, then rows 2, 4 and 8 apart, in the order in which each round is one instruction a row. */
    vec r[16], s[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 2) {
        r[i] = SHUFFLE(row[i], row[i + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
        r[i + 1] = SHUFFLE(row[i], row[i + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
    }
    /* s[4g + j]: column j of every four, of the rows 4g .. 4g + 3 */
#pragma GCC unroll 4
    for (int g = 0; g < 16; g += 4)
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
            s[g + 2 * h] = SHUFFLE(r[g + h], r[g + h + 2], 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
            s[g + 2 * h + 1] =
                SHUFFLE(r[g + h], r[g + h + 2], 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        vec a = SHUFFLE(s[j], s[4 + j], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
        vec b = SHUFFLE(s[j], s[4 + j], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
        vec c = SHUFFLE(s[8 + j], s[12 + j], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
        vec d = SHUFFLE(s[8 + j], s[12 + j], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
        column[j] = SHUFFLE(a, c, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
        column[j + 8] = SHUFFLE(a, c, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
        column[j + 4] = SHUFFLE(b, d, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
        column[j + 12] = SHUFFLE(b, d, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    }
#else
    /* Join rows i and i+4 by halves, then two rounds of shuffles that stay inside the halves. */
    vec r[8], s[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        r[i] = SHUFFLE(row[i], row[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        r[i + 4] = SHUFFLE(row[i], row[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        s[i] = SHUFFLE(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        s[i + 1] = SHUFFLE(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 2
    for (int h = 0; h < 8; h += 4) {
        column[h] = SHUFFLE(s[h], s[h + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        column[h + 1] = SHUFFLE(s[h], s[h + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        column[h + 2] = SHUFFLE(s[h + 1], s[h + 3], 0, 1, 8, 9, 4, 5, 12, 13);
        column[h + 3] = SHUFFLE(s[h + 1], s[h + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }
#endif
}

/* The same of rows in memory, `from` apart. */
INLINE void transpose_lanes(const at_real *in, int64_t from, vec *column)
{
    vec row[LANES];
    const at_real *below = in + LANES / 2 * from;
    __asm__("" : "+r"(in), "+r"(below)); /* two pointers and three strides, instead of eight pointers */
#pragma GCC unroll 4
    for (int i = 0; i < LANES / 2; i++) {
        row[i] = v_load(in + i * from);
        row[i + LANES / 2] = v_load(below + i * from);
    }
    turn_lanes(row, column);
}

/* The same of rows anywhere in memory, from offset `offset` of each. */
INLINE void transpose_rows(const at_real *const *in, int64_t offset, vec *column)
{
    vec row[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        row[i] = v_load(in[i] + offset);
    turn_lanes(row, column);
}

/* The same into memory: out[j*to + i] = in[i*from + j]. */
INLINE void transpose_block(const at_real *in, int64_t from, at_real *out, int64_t to)
{
    vec column[LANES];
    transpose_lanes(in, from, column);
#pragma GCC unroll 16
    for (int l = 0; l < LANES; l++)
        v_store(out + l * to, column[l]);
}

/* One panel of `columns` (at most WIDTH) columns: to[p*WIDTH + j] = b[p*b_row + j*b_col] for p < k, zeros beyond. */
INLINE void pack_panel(const at_real *b, int64_t b_row, int64_t b_col, int64_t k, int64_t columns, at_real *to)
{
    if (columns == WIDTH && b_col == 1) {
        for (int64_t p = 0; p < k; p++) {
            v_store(to + p * WIDTH, v_load(b + p * b_row));
            v_store(to + p * WIDTH + LANES, v_load(b + p * b_row + LANES));
        }
        return;
    }
    int64_t p = 0;
    if (columns == WIDTH && b_row == 1)
        for (; p + LANES <= k; p += LANES) {
            transpose_block(b + p, b_col, to + p * WIDTH, WIDTH);
            transpose_block(b + p + LANES * b_col, b_col, to + p * WIDTH + LANES, WIDTH);
        }
    else if (b_row == 1)
        for (; p + LANES <= k; p += LANES)
#pragma GCC unroll 2
            for (int64_t half = 0; half < WIDTH; half += LANES) {
                vec row[LANES], column[LANES];
#pragma GCC unroll 16
                for (int64_t l = 0; l < LANES; l++)
                    row[l] = half + l < columns ? v_load(b + p + (half + l) * b_col) : v_set(0);
                turn_lanes(row, column);
#pragma GCC unroll 16
                for (int64_t l = 0; l < LANES; l++)
                    v_store(to + (p + l) * WIDTH + half, column[l]);
            }
    for (; p < k; p++)
        for (int64_t j = 0; j < WIDTH; j++)
            to[p * WIDTH + j] = j < columns ? b[p * b_row + j * b_col] : 0;
}

/* c = (load ? c : 0) + a B for one row and WIDTH columns of a B whose columns are contiguous, b_col apart: blocks of it
 * are transposed in registers. Lanes are columns and k runs inside, the same chain as the micro kernel's. */
INLINE void transposed_panel(int64_t k, const at_real *a, int64_t a_col, const at_real *b, int64_t b_col, at_real *c,
                             bool load)
{
    vec sum0 = load ? v_load(c) : v_set(0), sum1 = load ? v_load(c + LANES) : v_set(0);
    int64_t p = 0;
    for (; p + LANES <= k; p += LANES) {
        vec low[LANES], high[LANES];
        transpose_lanes(b + p, b_col, low);
        transpose_lanes(b + p + LANES * b_col, b_col, high);
#pragma GCC unroll 16
        for (int l = 0; l < LANES; l++) {
            vec x = v_set(a[(p + l) * a_col]);
            sum0 = v_fma(x, low[l], sum0);
            sum1 = v_fma(x, high[l], sum1);
        }
    }
    for (; p < k; p++) {
        vec low, high, x = v_set(a[p * a_col]);
        for (int l = 0; l < LANES; l++) {
            low[l] = b[p + l * b_col];
            high[l] = b[p + (LANES + l) * b_col];
        }
        sum0 = v_fma(x, low, sum0);
        sum1 = v_fma(x, high, sum1);
    }
    v_store(c, sum0);
    v_store(c + LANES, sum1);
}

/* c = a B for columns of B anywhere in memory, from offset `offset` of each: the same chain. */
INLINE void transposed_rows(int64_t k, const at_real *a, const at_real *const *b, int64_t offset, at_real *c)
{
    vec sum0 = v_set(0), sum1 = sum0;
    int64_t p = 0;
    for (; p + LANES <= k; p += LANES) {
        vec low[LANES], high[LANES];
        transpose_rows(b, offset + p, low);
        transpose_rows(b + LANES, offset + p, high);
#pragma GCC unroll 16
        for (int l = 0; l < LANES; l++) {
            vec x = v_set(a[p + l]);
            sum0 = v_fma(x, low[l], sum0);
            sum1 = v_fma(x, high[l], sum1);
        }
    }
    for (; p < k; p++) {
        vec low, high, x = v_set(a[p]);
        for (int l = 0; l < LANES; l++) {
            low[l] = b[l][offset + p];
            high[l] = b[LANES + l][offset + p];
        }
        sum0 = v_fma(x, low, sum0);
        sum1 = v_fma(x, high, sum1);
    }
    v_store(c, sum0);
    v_store(c + LANES, sum1);
}

#endif
