/* What one call of the attention operator is made of: the settings, the inputs, what is asked for beside the output,
 * and the results. */
#ifndef AT_ATTENTION_TYPES_H
#define AT_ATTENTION_TYPES_H

#include "tape/ops.h"

/* ---- Settings ---- */

/* The four named axes, in catalogue order. */
enum { AT_SCORE, AT_NORMALISER, AT_WINDOW, AT_POSITION, AT_AXES };

/* Records of the catalogue: see axes_internal.h. */
typedef struct at_score_record at_score_record;
typedef struct at_normaliser_record at_normaliser_record;
typedef struct at_window_record at_window_record;
typedef struct at_position_record at_position_record;

/* What a dimension of a parameter stands for. */
typedef enum at_dim {
    AT_DIM_INNER,    /* A, fixed by the first parameter that has it */
    AT_DIM_SIZE,     /* D */
    AT_DIM_VALUE,    /* Dv */
    AT_DIM_HEADS,    /* H */
    AT_DIM_ARGUMENT, /* the number after the entry's colon */
    AT_DIM_OFFSETS   /* 2K+1, K being that number */
} at_dim;

/* A parameter as its catalogue entry declares it: "b [A]?". */
enum { AT_MOST_PARAMETERS = 4, AT_MOST_DIMS = 3, AT_NAME_SIZE = 12 };
typedef struct at_declared {
    char name[AT_NAME_SIZE];
    char word[AT_MOST_DIMS][AT_NAME_SIZE]; /* the dimensions as written */
    at_dim dim[AT_MOST_DIMS];
    int rank;
    bool optional;
    bool excluded; /* the other settings leave no use for it */
} at_declared;

/* Settings, parsed and checked. */
typedef struct at_attention {
    const at_score_record *score;
    const at_normaliser_record *normaliser;
    const at_window_record *window;
    const at_position_record *position;
    int64_t argument[AT_AXES]; /* after the colon: additive's at_act, the window's reach, shaw's K, t5's buckets */
    at_declared declared[AT_AXES][AT_MOST_PARAMETERS];
    int declared_count[AT_AXES];
    int64_t heads, kv_heads;
    bool causal; /* no key after the query, whatever the window */
    bool plain;  /* the step-by-step path even where there is a fused one */
} at_attention;

/* ---- Inputs ---- */

/* Sequences that lie one after another without padding, in tensors whose rows may hold more than one operand. The
 * arrays must stay as they are until the tape's backward pass is done. */
typedef struct at_packed {
    int64_t batch;
    const int64_t *query_at, *query_count; /* [B]: first row and number of rows of each sequence's queries in q */
    const int64_t *key_at, *key_count;     /* the same for its keys and values in k and v; without a gradient several
                                              sequences may share them */
    int64_t size, value_size;              /* D, Dv */
    int64_t q_column, k_column, v_column;  /* where head 0 starts in a row of q, k, v */
    const at_real *const *key_row;         /* NULL, or pointers to the keys' rows (a decoder's cache): key j of sequence
                                              b is key_row[b * key_row_stride + j], and k and v are NULL */
    int64_t key_row_stride;                /* one query per sequence then, and no gradient */
} at_packed;

int64_t at_largest_count(const int64_t *counts, int64_t n); /* 0 if there are none */

/* Dropout of weights, after normalising and the prior: w_ij = w_ij / (1 - share), or 0 with the probability `share`.
 * Which weights are dropped is a function of (seed, counter) and of batch, head, query and key alone, so it depends on
 * no padding, tile or thread, and the backward pass computes it again instead of storing it. */
typedef struct at_weight_drop {
    at_real share; /* 0: none is dropped */
    uint64_t seed, counter;
} at_weight_drop;

/* The factors of the weights of query i of head h and sequence b for the keys [from, to). */
void at_drop_factors(const at_weight_drop *drop, int64_t b, int64_t h, int64_t i, int64_t from, int64_t to,
                     at_real *factor);

/* Asked for beside the output; NULL: not wanted. These are the weights before dropout. Packed: what lies beyond a
 * sequence's own counts is 0 (argmax: -1). */
typedef struct at_asked {
    at_real *weights;    /* [B,H,row_count,K] */
    const int64_t *rows; /* [row_count], NULL: all Q */
    int64_t row_count;
    int32_t *argmax;   /* [B,H,Q] */
    at_real *entropy;  /* [B,H,Q] */
    at_real *key_sums; /* [B,H,K] */
    at_real *scores;   /* [B,H,Q,K] -INFINITY outside the spans; on the plain path only */
} at_asked;

/* What the operator works on; NULL: not given. */
typedef struct at_attention_in {
    at_tensor *query, *key, *value; /* [B,Q,H*D], [B,K,G*D], [B,K,G*Dv] */
    const at_packed *packed;        /* NULL, or the three are rows without padding; no WQ, WK, WV and no lengths then */
    const int64_t *lengths;         /* [B] or NULL */
    int64_t query_start;            /* position of query 0 */
    bool sample;                    /* hard: draw from the softmax instead of taking its argmax */
    uint64_t seed;
    at_weight_drop drop; /* in training */
    at_tensor *factor;   /* NULL, or what the weights are multiplied by after that: [B,H,Q,K]; on the plain path only */
    bool prepared;       /* query and key are what the score makes of them already (additive: W q + b and U k, of size
                            A); the parameters for that are not given then */
    at_tensor *term;     /* NULL, or what is added to the prepared keys of an additive score: [cells,H*A] without
                                  padding; one query then, and the plain path */
    const int64_t *term_first;                         /* [B]: the first row of each sequence's terms */
    at_tensor *parameter[AT_AXES][AT_MOST_PARAMETERS]; /* as at_attention.declared lists them */
    at_tensor *WQ, *WK, *WV, *WO;                      /* projections, each optional */
    at_real *out_memory;                               /* NULL, or memory for the output */
    const at_asked *asked;                             /* NULL: nothing */
} at_attention_in;

/* ---- Results ---- */

typedef struct at_attention_out {
    at_tensor *out;      /* [B,Q,H*Dv], or [B,Q,output width] with WO; packed: [rows of query, ...] */
    at_tensor *weights;  /* [B,H,Q,K]: plain path only, differentiable */
    at_tensor *log_prob; /* [B,H,Q]: hard only */
} at_attention_out;

#endif
