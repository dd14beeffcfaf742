/* What an instruction set provides: one table of inner loops per kind. dispatch.c chooses the set. */
#ifndef AT_ISA_H
#define AT_ISA_H

#include "kernels/gemm.h"

enum { AT_GEMM_THIN = 3 }; /* rows up to which a product is bound by reading B */

typedef struct gemm_kernels {
    int64_t width; /* columns of a panel */
    void (*pack)(const at_real *b, int64_t b_row, int64_t b_col, int64_t k, int64_t n, at_real *packed);
    /* A product, or a piece of one: some of its rows and columns. `scratch`: as many numbers as the function of that
     * name returns for the whole product. */
    void (*piece)(const at_gemm *piece, at_real *scratch);
    int64_t (*scratch)(const at_gemm *gemm);
    void (*thin)(const at_gemm *gemm); /* few rows against B by rows or columns */
} gemm_kernels;

typedef struct narrow_kernels {
    void (*widen)(at_number_type type, const void *from, int64_t count, at_real *to); /* count: whole panels */
    /* Up to most_rows rows; weights of fewer bits, or packed ones if C does not accumulate. */
    void (*thin)(const at_gemm *gemm);
    int64_t most_rows;
} narrow_kernels;

/* to = factor from, for matrices of `rows` rows with `size` numbers each. */
typedef struct row_copy {
    at_real *to;
    int64_t to_row; /* distance of the rows */
    int64_t padded; /* zeros from size up to here */
    const at_real *from;
    int64_t from_row;
    int64_t rows, size;
    at_real factor;
    const at_real *factors; /* [rows]: used instead of `factor`; NULL: none */
} row_copy;

typedef struct row_kernels {
    void (*exp)(at_real *out, const at_real *x, int64_t count);
    void (*tanh)(at_real *out, const at_real *x, int64_t count);
    void (*sigmoid)(at_real *out, const at_real *x, int64_t count);
    void (*copy)(const row_copy *job);
    /* Matrices of `rows` rows, `size` numbers each, rows `to_row` and `from_row` apart. */
    void (*add)(at_real *to, int64_t to_row, const at_real *from, int64_t from_row, int64_t rows, int64_t size,
                at_real factor); /* to += factor from */
    at_real (*dot)(const at_real *x, const at_real *y, int64_t size);
    bool (*finite)(const at_real *x, int64_t x_row, int64_t rows, int64_t size); /* no infinity, no NaN */
} row_kernels;

struct tile_kernels;
struct pass_kernels;
struct act_kernels;
struct update_kernels;
struct patch_kernels;

typedef struct isa {
    const char *name;
    const char *numbers; /* the set that computes the same bits: another one, or this one */
    const gemm_kernels *gemm;
    const gemm_kernels *base; /* those of `numbers`: its panels are the tile's */
    const narrow_kernels *narrow;
    const row_kernels *rows;
    const struct tile_kernels *tile;
    const struct pass_kernels *passes;
    const struct act_kernels *acts;
    const struct update_kernels *update;
    const struct patch_kernels *patches;
} isa;

/* The set in use. */
const isa *at_isa(void);

#endif
