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

#include "ops.h"

typedef enum at_normaliser { AT_SOFTMAX, AT_SPARSEMAX, AT_ENTMAX15, AT_SIGMOID, AT_RELU, AT_HARD } at_normaliser;

typedef struct at_fused {
    /* Layout [B, n, heads*size]: a head is a slice of columns, so no transposes are needed around the operation. */
    at_tensor *q; /* [B,Q,H*D]; additive: W q + b, [B,Q,H*A] */
    at_tensor *k; /* [B,K,G*D]; additive: U k, [B,K,G*A] */
    at_tensor *v; /* [B,K,G*Dv] */
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
    at_tensor *out;      /* [B,Q,H*Dv] */
    at_tensor *log_prob; /* [B,H,Q] if hard */
} at_fused_out;

/* NULLs in the result mean the tape has failed. The way back looks at `what->spans` again, the struct and its arrays:
 * they must stay as they are until the tape's backward is done. (`what` itself need not.) */
at_fused_out at_fused_attention(at_tape *tape, const at_fused *what);

#endif
