/* The attention tile: a block of query rows against a block of keys, and what is done to it. Each function is one step
 * of the operator on one tile; src/attention/fused*.c strings them together.
 *
 * Bits never depend on the tile that a row is in. A row sees its keys in blocks that start at fixed multiples, inside a
 * block every sum runs over the keys in order (lane = key mod width), and what is outside the row's span enters as an
 * exact 0. */
#ifndef AT_TILE_H
#define AT_TILE_H

#include "base/real.h"
#include "kernels/gemm.h"

enum { TILE_ROWS = 96, TILE_KEYS = 256, TILE_GROUPS = TILE_ROWS / 6 };

/* Rows that will be needed soon and are too far apart for a prefetcher to follow: the kernels ask for a few of them
 * between products. */
typedef struct tile_fetch {
    struct {
        const at_real *at;
        int64_t row, rows, size;
    } list[8];
    int regions, region; /* how many, and which is being asked for */
    int64_t done;        /* rows of it */
    int64_t rows_a_time;
} tile_fetch;

/* Rows of keys or values: `row` apart from `at` on, or row j `column` numbers into list[j]. */
typedef struct tile_lines {
    const at_real *at;
    int64_t row;
    const at_real *const *list; /* NULL: they are in order */
    int64_t column;
} tile_lines;

typedef struct tile {
    int64_t rows;           /* queries, at most TILE_ROWS */
    const int32_t *lo, *hi; /* [rows]: each query's keys are [lo, hi) */
    int64_t from, to;       /* the keys of this tile, column c is key from + c; from is a multiple of the panel width */
    at_real *s;             /* [rows, s_row]: scores, then weights */
    int64_t s_row;
    /* Set by begin: the rows in groups of up to six, of nearly equal size, that the micro kernel takes together. */
    int groups;
    int32_t start[TILE_GROUPS + 1];                /* group g is rows [start[g], start[g+1]) */
    int32_t first[TILE_GROUPS], last[TILE_GROUPS]; /* the columns that any of its rows uses */
    bool full;                                     /* every row uses every column */
    tile_fetch *fetch;                             /* NULL: nothing to ask for */
} tile;

/* What a row knows of the keys it has seen so far: with x as `relate` makes it of s, and `shift` the largest x,
 *     sum = sum_j e^(x_j - shift)
 * Scores may be large, and their differences small: top is subtracted before anything is rounded at their scale. */
typedef struct tile_state {
    at_real scale;         /* of the scores s */
    at_real *top;          /* [rows] largest s */
    at_real *shift;        /* [rows] largest x; 0 without a table */
    at_real *sum;          /* [rows] */
    at_real *exponent_sum; /* [rows] sum of the powers times their exponents, in units of the exponents: of x with a
                              table, of s without; NULL: not wanted */
    int32_t *argmax;       /* [rows] or NULL */
    at_real *out;
    int64_t out_row, out_size; /* rescaled when top moves */
    at_real *offsets;
    int64_t offsets_row, offsets_size; /* likewise; NULL: none */
} tile_state;

/* A table looked up by clipped offset: row i, key j gets at[clip(j - position[i], -reach, reach)]. The memory is padded
 * by the panel width on both sides with the end values, so that a vector may be read at any clipped offset. */
typedef struct tile_table {
    const at_real *at; /* points at offset -reach of row 0; NULL: no table */
    int64_t row;       /* distance of the rows' tables; 0: shared */
    int64_t reach;
    const int32_t *position; /* [rows] position of each query */
    const at_real *base;     /* [rows] `relate` and `softmax` subtract it from the entries */
    bool scaled;             /* the entries are added after scaling the scores, not before */
} tile_table;

/* How weights follow from scores once a row's statistics are known, and scores' gradients from weights'. */
typedef enum tile_rule { RULE_SOFTMAX, RULE_SPARSEMAX, RULE_ENTMAX15, RULE_SIGMOID, RULE_RELU, RULE_HARD } tile_rule;

typedef struct tile_back {
    tile_rule rule;
    at_real unit;          /* softmax, hard: e^(what a score counts as) is 2^(unit score) */
    const at_real *top;    /* [rows]: softmax, hard: subtracted from the scores first; NULL: nothing is */
    const at_real *stat;   /* [rows]: softmax, hard: log2 of the sum; relu: 1/sum; sparsemax, entmax15: the threshold */
    const at_real *delta;  /* [rows]: what the rule subtracts, see rule's formula */
    const int32_t *choice; /* [rows]: hard: the chosen key, -1: none */
    const at_real *dlog_prob; /* [rows]: hard: gradient of the log-probability; NULL: 0 */
} tile_back;

/* The operands of the additive score, and their gradients for its backward pass. */
typedef struct tile_additive {
    int64_t size;
    const at_real *q; /* [rows, q_row] */
    int64_t q_row;
    const at_real *kt; /* all keys as panels [panel][size][width] */
    const at_real *v;  /* [size] */
    at_act act;
    at_real *dq, *dkt; /* laid out like q and kt */
    at_real *dv;       /* [size, lanes] */
} tile_additive;

/* One query of the additive score over keys that lie row by row, with a second term f of each key:
 * e_j = sum_a v_a act(q_a + k_ja + f_ja). */
typedef struct tile_covered {
    int64_t keys, size;
    const at_real *q, *v; /* [size] */
    const at_real *k;     /* [keys, k_row] */
    const at_real *f;     /* [keys, f_row]; NULL: none */
    int64_t k_row, f_row;
    at_act act;
    at_real *dq, *dv; /* [size], added to; NULL: not wanted, like the two that follow */
    at_real *dk;      /* laid out like k, added to */
    at_real *df;      /* laid out like f; may be f itself if it is written */
    bool df_add;      /* add to df, or write it */
} tile_covered;

/* c = (load ? c : 0) + a B for a few rows. */
typedef struct tile_product {
    int64_t rows, size, columns;
    const at_real *a; /* [rows, a_row] */
    int64_t a_row;
    const at_real *b; /* panels [panel][..][width], `step` apart, of which the first `size` rows count */
    int64_t step;
    at_real *c; /* [rows, c_row], padded to whole panels of its `columns` */
    int64_t c_row;
    bool load;
} tile_product;

typedef struct tile_kernels {
    int64_t width; /* of a panel */

    void (*begin)(tile *t);
    /* s_ij = q_i . k_j. q [rows, q_row]; kt: all keys as panels [panel][size][width]. */
    void (*score)(const tile *t, int64_t size, const at_real *q, int64_t q_row, const at_real *kt);
    /* The same where every row is another head, over keys that are not packed: `group` rows share a key head, and key
     * heads are `size` apart. */
    void (*score_heads)(const tile *t, int64_t size, const at_real *q, int64_t q_row, const tile_lines *k,
                        int64_t group);
    /* s_ij = sum_a v_a act(q_ia + k_ja) */
    void (*additive)(const tile *t, const tile_additive *job);
    /* Its backward pass from ds: adds to dq, dkt and dv. */
    void (*additive_back)(const tile *ds, const tile_additive *job);
    /* The scores e [keys] of one query with a second term of each key, and the backward pass from de [keys]. */
    void (*covered)(const tile_covered *job, at_real *e);
    void (*covered_back)(const tile_covered *job, const at_real *de);
    /* s_ij += table, inside the spans */
    void (*look_up)(const tile *t, const tile_table *table);
    /* top_i becomes the largest of top_i and the row's scores. */
    void (*tops)(const tile *t, at_real *top);
    /* s_ij = (s_ij - top_i) scale, and table - base_i is added before or after scaling, inside the spans; the table may
     * be none */
    void (*relate)(const tile *t, const at_real *top, at_real scale, const tile_table *table);
    /* Zeros where a row has no keys but its neighbours do: in the group's columns, or in all of them. */
    void (*blank)(const tile *t, bool everywhere);

    /* One more block of an online softmax: s_ij becomes a power, see tile_state. */
    void (*softmax)(const tile *t, const tile_table *table, const tile_state *state);
    /* s becomes sigmoid(s), or max(s, 0) with its sum kept. */
    void (*sigmoid)(const tile *t);
    void (*relu)(const tile *t, const tile_state *state);
    /* The threshold of sparsemax or entmax15 over the keys [lo,hi) of one whole row of scores. */
    at_real (*threshold)(const at_real *row, int64_t lo, int64_t hi, tile_rule rule);
    /* s_ij *= exp(-(j - centre_i)^2 / (2 sigma^2)) */
    void (*prior)(const tile *t, const at_real *centre, at_real sigma);
    /* sums_i[clip(j - position_i)] += s_ij: sums [rows, sums_row], 2*reach+1 each */
    void (*by_offset)(const tile *t, const int32_t *position, int64_t reach, at_real *sums, int64_t sums_row);

    /* out_i += sum_j s_ij v_j: v as panels [panel][keys][width] with `keys` rows in all; out [rows, out_row] padded to
     * whole panels. `fresh`: out starts from 0. `own_keys_only`: a row touches its own keys only, for values that are
     * not finite. */
    void (*weigh)(const tile *t, int64_t size, const at_real *v, int64_t keys, at_real *out, int64_t out_row,
                  bool fresh, bool own_keys_only);
    /* The same where every row is another head, over values that are not packed; a row touches its own keys only. */
    void (*weigh_heads)(const tile *t, int64_t size, const tile_lines *v, int64_t group, at_real *out, int64_t out_row);
    /* sums_j += sum_i s_ij x_i, for the tile's keys j: x [rows, x_row] padded, sums [keys, sums_row] padded */
    void (*gather)(const tile *t, int64_t size, const at_real *x, int64_t x_row, at_real *sums, int64_t sums_row,
                   bool fresh, bool own_keys_only);
    void (*multiply)(const tile_product *job);
    /* Row j of `to`, [keys, to_row], += what the panels [panel][size][width] hold in column j. */
    void (*add_transposed)(at_real *to, int64_t to_row, const at_real *panels, int64_t size, int64_t keys);
    /* sums_j += sum_i factor_i s_ij */
    void (*key_sums)(const tile *t, const at_real *factor, at_real *sums);

    /* Scores to weights, with known statistics (zeros outside the spans, everywhere in the tile). */
    void (*weights)(const tile *t, const tile_back *back);
    /* d (= dL/dw in, dL/ds out) from the weights in t, same shape. */
    void (*dscore)(const tile *t, at_real *d, const tile_back *back);
    /* Sums that sparsemax and entmax15 need before dscore: numerator and denominator of delta. */
    void (*delta)(const tile *t, const at_real *d, const tile_back *back, at_real *numerator, at_real *denominator);
} tile_kernels;

/* at_gemm_pack in panels of the tile's width, which may be another one than that of matrix products (gemm.c). */
int64_t at_tile_packed_size(int64_t k, int64_t n);
void at_tile_pack(const at_real *b, int64_t b_row, int64_t b_col, int64_t k, int64_t n, at_real *packed);

#endif
