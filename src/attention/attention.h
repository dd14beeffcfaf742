/* The attention operator on the tape: five axes, one short function.
 *
 *     rotate(q,k) -> e = score(q,k) -> e += position bias -> w = normalise(e over span) -> w *= window prior -> c = w v
 *     -> c += value positions
 *
 * attention.c holds that sequence; score.c, normaliser.c, span.c, position.c and heads.c one axis each, every axis a
 * small table of records from which the parser, the catalogue and the tests' product of settings come. */
#ifndef AT_ATTENTION_H
#define AT_ATTENTION_H

#include "attention/fused.h"

typedef enum at_score { AT_DOT, AT_SCALED, AT_GENERAL, AT_ADDITIVE } at_score;
typedef enum at_window { AT_GLOBAL, AT_CAUSAL, AT_SLIDING, AT_LOCAL_M, AT_LOCAL_P } at_window;
typedef enum at_position { AT_NONE, AT_SHAW, AT_ROPE, AT_ALIBI, AT_T5 } at_position;

/* Which of Shaw's tables there are: wK, wV, or either as the caller likes. */
typedef enum at_shaw_tables { AT_SHAW_EITHER, AT_SHAW_KEYS, AT_SHAW_VALUES } at_shaw_tables;

/* Settings, parsed and checked. */
typedef struct at_attention {
    at_score score;
    at_act act; /* additive */
    at_normaliser normaliser;
    at_window window;
    int64_t reach; /* W or D of the window */
    at_position position;
    int64_t clip; /* shaw's k */
    at_shaw_tables tables;
    int64_t buckets;
    int64_t heads, kv_heads;
    bool causal; /* no key after the query, whatever the window */
    bool plain;
} at_attention;

bool at_attention_parse(const at_settings *settings, at_attention *attention, at_error *error);

/* What the operator works on. Parameters are found by name; NULL: not given. */
typedef struct at_attention_in {
    at_tensor *query, *key, *value; /* [B,Q,H*D], [B,K,G*D], [B,K,G*Dv] */
    const at_packed *packed;        /* NULL, or the three are rows without padding; no WQ, WK, WV and no lengths then */
    const int64_t *lengths;         /* [B] or NULL */
    int64_t query_start;
    bool sample;
    uint64_t seed;
    at_weight_drop drop;          /* in training; the weights that are given out are those before it */
    bool prepared;                /* additive: query and key are W q + b and U k already, of size A; no W, U, b then */
    at_tensor *W, *U, *v, *b;     /* general, additive */
    at_tensor *Wp, *vp;           /* local-p */
    at_tensor *wK, *wV;           /* shaw */
    at_tensor *bias;              /* t5 */
    at_tensor *WQ, *WK, *WV, *WO; /* projections, each optional */
    at_real *out_memory;          /* NULL, or where the output shall lie */
    at_real *weights;             /* see at_fused */
    const int64_t *rows;
    int64_t row_count;
    int32_t *argmax;
    at_real *entropy, *key_sums;
} at_attention_in;

typedef struct at_attention_out {
    at_tensor *out;      /* [B,Q,H*Dv], or [B,Q,output width] with WO; packed: [rows of query, ...] */
    at_tensor *weights;  /* [B,H,Q,K]: plain path only, differentiable */
    at_tensor *log_prob; /* [B,H,Q]: hard only */
} at_attention_out;

at_attention_out at_attention_run(at_tape *tape, const at_attention *attention, const at_attention_in *in);

#endif
