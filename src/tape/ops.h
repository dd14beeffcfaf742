/* The operations, about forty. Each is one block of code: formula, forward, backward, constructor with a shape
 * check and its error message. NULL in, NULL out. Shapes broadcast from the right, as in NumPy, where it says so. */
#ifndef AT_OPS_H
#define AT_OPS_H

#include "kernels/gemm.h"
#include "tape/span.h"
#include "tape/tape.h"

/* broadcast.c: a and b broadcast */
at_tensor *at_add(at_tensor *a, at_tensor *b);
at_tensor *at_sub(at_tensor *a, at_tensor *b);
at_tensor *at_mul(at_tensor *a, at_tensor *b);

/* elementwise.c */
at_tensor *at_scale(at_tensor *x, at_real factor);
at_tensor *at_tanh(at_tensor *x);
at_tensor *at_sigmoid(at_tensor *x);
at_tensor *at_relu(at_tensor *x);
at_tensor *at_exp(at_tensor *x);
at_tensor *at_log(at_tensor *x);
at_tensor *at_gelu(at_tensor *x);  /* x Phi(x), exact */
at_tensor *at_swish(at_tensor *x); /* x sigmoid(x) */

/* product.c */
at_tensor *at_matmul(at_tensor *a, at_tensor *b, bool transpose_a,
                     bool transpose_b); /* [...,m,k] x [...,k,n]; batch dims broadcast */
at_tensor *at_linear(at_tensor *x, at_tensor *w, at_tensor *b,
                     at_act act); /* act(x w^T + b): x [...,in], w [out,in], b [out] or NULL */
/* For operations with weights [out,in] of their own. A product by the gemm, with the error on the tape; the weights
 * packed for x W^T (transposed) or dz W, NULL if they are not a whole parameter. */
bool at_product(at_tape *tape, const at_gemm *gemm);
const at_real *at_weights_packed(at_tensor *weights, bool transposed);
/* Their backward pass: y->grad [rows,size] *= act'(z), and its rows summed into b_grad, unless that is NULL. */
void at_act_grad(at_tensor *y, int64_t rows, int64_t size, at_act act, at_real *b_grad);
/* dW [out,in] += dz^T x, dz [rows,out], x [rows,in]. */
void at_weights_product(at_tape *tape, at_real *w_grad, int64_t in, int64_t out, int64_t rows, const at_real *dz,
                        const at_real *x);
/* The same for a tensor of weights: dW += dz^T x, dz [rows,out], x
 * [rows,in]. For a parameter with few rows it is deferred to the end of the backward pass; dz and x must then stay. */
void at_weights_grad(at_tape *tape, at_tensor *weights, int64_t rows, const at_real *dz, const at_real *x);
bool at_weights_wait(const at_tensor *weights, int64_t rows);

/* shape.c */
at_tensor *at_reshape(at_tensor *x, at_shape shape);   /* a view; one dimension may be -1 */
at_tensor *at_permute(at_tensor *x, const int *order); /* out.dim[i] = x.dim[order[i]] */
at_tensor *at_slice(at_tensor *x, int axis, int64_t from, int64_t to);
at_tensor *at_concat(at_tensor *const *parts, int count, int axis);

/* reduce.c */
at_tensor *at_sum(at_tensor *x, int axis); /* the axis goes away; axis -1: over everything, a scalar [1] */
at_tensor *at_mean(at_tensor *x, int axis);

/* rows.c */
at_tensor *at_embedding(at_tensor *table, const int32_t *ids,
                        at_shape ids_shape);                    /* [V,D], ids [...] -> [...,D]; id -1: zeros */
at_tensor *at_dropout(at_tensor *x, at_real keep, at_rng *rng); /* keep 1: x itself */
at_tensor *at_maxout(at_tensor *x);                             /* [...,2n] -> [...,n], max over neighbouring pairs */

/* norm.c: over each row, gain (s - mean) / sqrt(variance + eps) + bias */
at_tensor *at_layer_norm(at_tensor *x, at_tensor *gain, at_tensor *bias, at_real eps);
/* The same of s = x + dropout(y), as one operation; the draw is at_dropout's (keep 1: none, and rng may be NULL). *sum,
 * if wanted, is s. */
at_tensor *at_residual_norm(at_tensor *x, at_tensor *y, at_tensor *gain, at_tensor *bias, at_real eps, at_real keep,
                            at_rng *rng, at_tensor **sum);

/* entropy.c: [N,V] -> summed loss [1]; target -1: ignored. If nothing else reads the logits, their gradient
 * overwrites their values in the backward pass. */
at_tensor *at_cross_entropy(at_tensor *logits, const int32_t *targets, at_real smoothing);

/* divergence.c: two sets of logits [N,V] -> sum over the rows of KL(p || q) + KL(q || p) of their softmaxes, [1]; a row n counts
 * unless counted[n] is below 0. */
at_tensor *at_divergence(at_tensor *x, at_tensor *y, const int32_t *counted);

/* mixture.c: logits z [N,J,V], weights w [N,J] -> log sum_j w_j softmax(z_j) [N,V]; a part with w_j = 0 is not read. The
 * results are logits of the mixture as well, whose softmax it is if the weights of a row sum to anything but 0. */
at_tensor *at_log_mixture(at_tensor *logits, at_tensor *weights);

/* recompute.c: what `build` makes of the inputs, of the shape given, on a tape of its own that is thrown away; the backward
 * pass builds it again, so only the result takes memory. All that has a gradient must be an input (entries may be NULL),
 * and `context` must stay and mean the same until then. */
enum { AT_MOST_RECOMPUTED = 8 };
typedef at_tensor *at_build(at_tape *tape, at_tensor *const *inputs, const void *context);
at_tensor *at_recompute(at_tape *tape, at_shape shape, at_build *build, const void *context, at_tensor *const *inputs,
                        int count);

/* normalise.c: over the last dimension of e [B,H,Q,K], only the keys of each row's span; zeros elsewhere */
at_tensor *at_softmax(at_tensor *e, const at_spans *spans);
at_tensor *at_sparsemax(at_tensor *e, const at_spans *spans);
at_tensor *at_entmax15(at_tensor *e, const at_spans *spans);
at_tensor *at_sigmoid_span(at_tensor *e, const at_spans *spans); /* not normalised */
at_tensor *at_relu_span(at_tensor *e, const at_spans *spans);    /* divided by the row's sum; a zero row stays zero */
/* One-hot at the argmax (first of equals), or a draw from the softmax by Gumbel's trick when `sample`: key j of row r
 * (its index in [B,H,Q]) uses at_uniform_at(seed, r, j). *log_prob, if wanted, is [B,H,Q]: its gradient is the score
 * function's; the one-hot itself passes none. */
at_tensor *at_hard(at_tensor *e, const at_spans *spans, bool sample, uint64_t seed, at_tensor **log_prob);

/* For writing normalisers: the rule of one row, `n` scores that are all inside the span, and its gradient, added to
 * de. */
typedef void at_row_rule(const at_real *e, at_real *w, int64_t n);
typedef void at_row_rule_back(const at_real *e, const at_real *w, const at_real *dw, at_real *de, int64_t n);
at_tensor *at_normalise(const at_op *op, at_tensor *e, const at_spans *spans, at_row_rule *row);
void at_normalise_back(at_node *node, at_row_rule_back *row);

/* span_product.c: products that never touch a key outside the span, so a NaN there stays there. q [B,H,Q,D], k
 * [B,G,K,D] */
at_tensor *at_span_dot(at_tensor *q, at_tensor *k,
                       const at_spans *spans); /* e_ij = q_i . k_j inside, 0 outside: [B,H,Q,K] */
at_tensor *at_span_sum(at_tensor *w, at_tensor *v, const at_spans *spans); /* c_i = sum_j w_ij v_j: [B,H,Q,Dv] */
/* e_ij = sum_a v_a act(qa_ia + ka_ja): qa [B,H,Q,A], ka [B,G,K,A], v [A] or [H,A]; no [Q,K,A] memory */
at_tensor *at_additive(at_tensor *qa, at_tensor *ka, at_tensor *v, at_act act, const at_spans *spans);
/* covered.c: the additive score of one query for each row of the batch, with a second term of each key: q [B,H,1,A], k
 * [B,H,K,A], f [cells,H*A] without padding, those of row b from first[b] on, v [A] or [H,A] -> [B,H,1,K]. `first` must stay
 * until the backward pass; if it is NULL, there is no such term. */
at_tensor *at_covered(at_tensor *q, at_tensor *k, at_tensor *f, const int64_t *first, at_tensor *v, at_act act,
                      const at_spans *spans);
/* x [B,K,...] with the keys that no span reaches set to zero, so that a NaN there survives no product; x itself if all
 * are seen. */
at_tensor *at_seen(at_tensor *x, const at_spans *spans);
/* For writing operations: do the spans cover the rows of e [B,H,Q,K] and stay inside its keys? Records an
 * error on the tape if not. */
bool at_spans_fit(const char *op, at_tensor *e, const at_spans *spans);

/* offset.c: a pair of transposes, over the clipped offset r = clip(j - (start + i), -R, R) + R */
at_tensor *at_by_offset(at_tensor *table, int64_t queries, int64_t keys,
                        int64_t start);                                  /* [B|1,H|1,Q|1,2R+1] -> [B,H,Q,K] */
at_tensor *at_sum_by_offset(at_tensor *w, int64_t reach, int64_t start); /* [B,H,Q,K] -> [B,H,Q,2R+1] */
/* exp(-(s - p)^2 / (2 sigma^2)) for s = 0..keys-1: p [B,H,Q] -> [B,H,Q,K] */
at_tensor *at_gaussian(at_tensor *p, int64_t keys, at_real sigma);

/* rotate.c: rope, D even */
at_tensor *at_rotate(at_tensor *x, int64_t start); /* [B,n,H,D]: row i at position start + i */
/* [N,width], of which the first `heads` heads of `size` are rotated: row i at position start + positions[i]. The array
 * must stay until the backward pass. */
at_tensor *at_rotate_rows(at_tensor *x, const int32_t *positions, int64_t start, int64_t heads, int64_t size);

#endif
