/* What the files of the Transformer share: rows without padding, positions, and attention with its projections. */
#ifndef AT_TRANSFORMER_INTERNAL_H
#define AT_TRANSFORMER_INTERNAL_H

#include "models/cache.h"
#include "models/kinds.h"

/* ---- rows.c: sentences one after another, without padding ---- */

typedef struct at_rows {
    int64_t batch, total, longest;
    const int64_t *at, *count; /* [B]: first row and number of rows of each sentence */
    const int32_t *ids;        /* [N] */
    const int32_t *positions;  /* [N]: position in the sentence, from 0 */
} at_rows;
/* The rows of ids [B,n], of which lengths[b] count (lengths NULL: all); ids NULL: `at` and `count` only. Allocated
 * on the tape. */
bool at_rows_of(const at_pass *pass, const int32_t *ids, int64_t batch, int64_t n, const int64_t *lengths,
                at_rows *rows);
/* The next n tokens of every row of a search, time first: row t B + b. Positions count from the first of them. */
bool at_rows_of_steps(const at_pass *pass, const int32_t *ids, int64_t batch, int64_t n, at_rows *rows);

/* The sinusoids of the first positions, computed with the model: [AT_TABLE_POSITIONS,d]; NULL: it has none. */
enum { AT_TABLE_POSITIONS = 256 };
const at_real *at_sinusoid_table(const at_model *model);
/* The vectors of positions first .. first + count - 1: [count,d]; NULL if the model adds none (or the tape has failed).
 * `learned`: the parameter, or -1. */
at_tensor *at_position_vectors(const at_model *model, const at_pass *pass, int learned, int64_t first, int64_t count);

/* ---- multihead.c: MultiHead(Q,K,V) = [head_1; ...; head_h] W_O ---- */

typedef struct at_multihead {
    at_attention_kind kind;
    int layer; /* from 1 */
    at_attention attention;
    int64_t size;  /* D of a head */
    bool rotates;  /* rope: queries and keys are rotated after their projection, and the operator has no position */
    at_dense in;   /* self: [W_Q; W_K; W_V] in one; cross: W_Q */
    at_dense keys; /* cross: [W_K; W_V] */
    at_dense out;  /* W_O */
    at_attention_params params; /* of the score, window and position */
} at_multihead;
/* Its parameters begin with encoder.LAYER.self, decoder.LAYER.self or decoder.LAYER.cross. */
at_multihead at_multihead_declare(at_model *model, at_attention_kind kind, int layer, at_error *error);
int64_t at_multihead_cached(const at_multihead *m); /* numbers of a token in the cache: key and value */

/* The weights of cross-attention: the mean over the layers and heads that the pass asks for. */
typedef struct at_cross_weights {
    at_tensor *mean;     /* [B,n,S]; NULL: not asked for */
    int64_t longest;     /* S */
    int layer;           /* the next one */
    const at_pass *pass; /* selects layer and head */
    int layers;          /* of the model */
    at_tensor *guided;   /* [B,n,S] of the guided head, differentiable; NULL: none, or not computed yet */
} at_cross_weights;
at_cross_weights at_cross_weights_begin(const at_pass *pass, const at_source *source, int64_t n, int layers);

/* The keys and values of the source R [N,d]: [N,2GD] */
at_tensor *at_cross_keys(const at_model *model, const at_pass *pass, const at_multihead *m, const at_rows *source,
                         at_tensor *R);
/* x [N,d] -> [N,d] */
at_tensor *at_self_attention(const at_model *model, const at_pass *pass, const at_multihead *m, const at_rows *rows,
                             at_tensor *x);
at_tensor *at_cross_attention(const at_model *model, const at_pass *pass, const at_multihead *m, const at_rows *rows,
                              at_tensor *x, const at_rows *source, at_tensor *kv, at_cross_weights *weights);
/* The same for the next tokens of every row of a search (at_rows_of_steps), from target position `first`. Keys and
 * values of the layer are in the cache: at `column` of a token's slot, and for cross-attention as source `layer`. */
at_tensor *at_self_attention_cached(const at_model *model, const at_pass *pass, const at_multihead *m,
                                    const at_rows *rows, at_tensor *x, int64_t first, int64_t column);
at_tensor *at_cross_attention_cached(const at_model *model, const at_pass *pass, const at_multihead *m,
                                     const at_rows *rows, at_tensor *x, int64_t first, int layer,
                                     at_cross_weights *weights);

#endif
