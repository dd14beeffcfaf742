/* Gradient x attention (Chefer, Gur, Wolf 2021: Generic attention-model explainability). */
#ifndef AT_RELEVANCE_INTERNAL_H
#define AT_RELEVANCE_INTERNAL_H

#include "models/model.h"

/* One line of a Transformer. The last target position is the end's. */
typedef struct at_relevance {
    const at_model *model;
    const int32_t *source, *target; /* [S], [T]: units; the source NULL for a language model */
    int64_t S, T;
    float *encoder; /* [S,S] NULL for a language model, like cross */
    float *decoder; /* [T,T] */
    float *cross;   /* [T,S] */
} at_relevance;

/* y_t is the logit of target unit t, A the weights of one layer's attention, i the source's and q the target's units.
 *
 *     A' = mean over heads of max(0, A * dy_t/dA)
 *     R_ii = I, then R_ii += A' R_ii for each layer of the encoder
 *     R_qq = I, R_qi = 0, then for each layer of the decoder
 *         R_qq += A' R_qq, R_qi += A' R_qi              for its self-attention,
 *         R_qi += norm(R_qq)^T A' norm(R_ii)            for its attention to the source
 *     norm(R) = I + (R - I) with each row divided by its sum
 *
 * Row t of `decoder` is row t of R_qq - I, row t of `cross` that of R_qi; `encoder` is R_ii - I with the gradient of the
 * sum over t of y_t. Each row is divided by its sum. */
bool at_relevance_compute(const at_relevance *relevance, at_error *error);

#endif
