/* Fused attention: one operation with its own way back, tiled over blocks of queries and keys. Memory beyond inputs and
 * outputs is linear in length both ways; the weights of any rows and running summaries are there for the asking.
 *
 * It knows three things besides queries, keys and values, and every mechanism of the catalogue is one of them or
 * happens outside it:
 *   - a score bias looked up by clipped offset (ALiBi, T5),
 *   - tables of keys and values by clipped offset (Shaw): a block's products with them are made where they are used,
 *   - a Gaussian prior around a centre (local-p).
 */
#ifndef AT_FUSED_H
#define AT_FUSED_H

#include "tape/ops.h"

typedef enum at_normaliser { AT_SOFTMAX, AT_SPARSEMAX, AT_ENTMAX15, AT_SIGMOID, AT_RELU, AT_HARD } at_normaliser;

/* Sequences that lie one after another without padding, in tensors whose rows may hold more than one operand. */
typedef struct at_packed {
    int64_t batch;
    const int64_t *query_at, *query_count; /* [B]: first row and number of rows of each sequence's queries in q */
    const int64_t *key_at, *key_count;     /* the same of its keys and values in k and v; without a gradient several
                                              sequences     may share them */
    int64_t size, value_size;              /* D, Dv */
    int64_t q_column, k_column, v_column;  /* where head 0 starts in a row of q, k, v */
    const at_real *const *key_row; /* NULL, or where each key's row lies (a decoder's cache): key j of sequence b is */
    int64_t key_row_stride; /* key_row[b * key_row_stride + j]; k and v are NULL then; one query each, no gradient */
} at_packed;

int64_t at_largest_count(const int64_t *counts, int64_t n); /* 0 if there are none */

/* Dropout of weights, after normalising and the prior: w_ij = w_ij / (1 - share), or 0 with the probability `share`.
 * Which ones is a function of (seed, counter) and of batch, head, query and key alone: no padding, tile or thread
 * matters, and the way back draws again instead of storing it. */
typedef struct at_weight_drop {
    at_real share; /* 0: none is dropped */
    uint64_t seed, counter;
} at_weight_drop;

/* The factors of the weights of query i of head h and sequence b for the keys [from, to). */
void at_drop_factors(const at_weight_drop *drop, int64_t b, int64_t h, int64_t i, int64_t from, int64_t to,
                     at_real *factor);

typedef struct at_fused {
    /* Layout [B, n, heads*size]: a head is a slice of columns, so no transposes are needed around the operation. */
    at_tensor *q; /* [B,Q,H*D]; additive: W q + b, [B,Q,H*A] */
    at_tensor *k; /* [B,K,G*D]; additive: U k, [B,K,G*A] */
    at_tensor *v; /* [B,K,G*Dv] */
    /* NULL, or q, k and v are [rows, any width] (they may be one tensor) and `out` is [rows of q, H*Dv]. Q and K below
     * are then the largest counts, and what lies beyond a sequence's own counts is 0 (argmax: -1). The arrays must stay
     * as they are until the tape's backward is done. Only at_packed_check keeps wrong ones out. */
    const at_packed *packed;
    int64_t heads, kv_heads;
    at_real scale; /* e = scale * q.k; 1 for additive */
    bool additive; /* e = sum_a score_v[a] act(q_a + k_a) */
    at_act act;
    at_tensor *score_v; /* additive: [A] or [H,A] */
    at_normaliser normaliser;
    bool sample; /* hard: draw by Gumbel's trick instead of the argmax */
    uint64_t seed;
    const at_spans *spans;  /* [B, 1 or H, Q] */
    int64_t start;          /* position of query 0, from which offsets into the bias and the sums are counted */
    at_tensor *bias;        /* NULL, or [H,2R+1] with reach R: e_ij += bias[clip(j-i)] */
    int64_t clip;           /* Shaw's k: reach of the two tables below */
    at_tensor *key_table;   /* NULL, or [2k+1,D], or [H,2k+1,D]: e_ij += scale q_i . key_table[clip(j-i)] */
    at_tensor *value_table; /* NULL, or [2k+1,Dv], or [H,2k+1,Dv]: v_j + value_table[clip(j-i)] is what is weighed */
    at_tensor *centre;      /* NULL, or [B,H,Q]: w_ij *= exp(-(j - centre)^2 / (2 sigma^2)) after normalising */
    at_real sigma;
    at_weight_drop drop; /* not with hard; the weights and summaries asked for below are those before it */
    at_real *out_memory; /* NULL, or where `out` shall lie */
    /* Asked for beside the output; NULL: not wanted. */
    at_real *weights;    /* [B,H,row_count,K] */
    const int64_t *rows; /* [row_count], NULL: all */
    int64_t row_count;
    int32_t *argmax;   /* [B,H,Q] */
    at_real *entropy;  /* [B,H,Q] */
    at_real *key_sums; /* [B,H,K] */
} at_fused;

typedef struct at_fused_out {
    at_tensor *out;      /* [B,Q,H*Dv], or [rows of q, H*Dv] */
    at_tensor *log_prob; /* [B,H,Q] if hard */
} at_fused_out;

/* Whether keys can be read through `key_row` with these: any other call needs them in tensors. */
bool at_fused_takes_rows(at_normaliser normaliser, bool additive, int64_t heads, bool summaries);

/* NULLs in the result mean the tape has failed. The way back looks at `what->spans` again, the struct and its arrays:
 * they must stay as they are until the tape's backward is done. (`what` itself need not.) */
at_fused_out at_fused_attention(at_tape *tape, const at_fused *what);

#endif
