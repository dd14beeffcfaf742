/* The normalisers: scores become weights. The operations of the plain path are src/tape/normalise.c, the fused rules'
 * kernels src/kernels/isa_tile*.c. */
#include <math.h>

#include "attention/axes_internal.h"
#include "kernels/isa.h"

/* ---- softmax ---- */

static at_tensor *softmax(const at_job *j, at_tensor *e, at_tensor **log_prob)
{
    (void)log_prob;
    return at_softmax(e, &j->spans);
}

static void softmax_tile(const tile *t, const tile_table *table, const tile_state *state)
{
    at_isa()->tile->softmax(t, table, state);
}

static at_real softmax_end(at_real shift, at_real sum, bool is_empty, at_real *stat)
{
    if (stat)
        *stat = is_empty ? 0 : AT_LOG2E * shift + AT_REAL(log2)(sum);
    return is_empty ? 0 : 1 / sum;
}

static const at_fused_normaliser softmax_fused = {
    .rule = RULE_SOFTMAX, .ignores_offset = true, .keeps_summaries = true, .tile = softmax_tile, .end = softmax_end};

const at_normaliser_record at_normaliser_softmax = {
    .entry = {"normaliser", "softmax", "", "w_j = exp e_j / Σ_k exp e_k", "", "Bahdanau, Cho, Bengio 2014"},
    .plain = softmax,
    .fused = &softmax_fused,
};

/* ---- sparsemax ---- */

static at_tensor *sparsemax(const at_job *j, at_tensor *e, at_tensor **log_prob)
{
    (void)log_prob;
    return at_sparsemax(e, &j->spans);
}

static const at_fused_normaliser sparsemax_fused = {
    .rule = RULE_SPARSEMAX, .pass = AT_PASS_WHOLE_ROWS, .ignores_offset = true};

const at_normaliser_record at_normaliser_sparsemax = {
    .entry = {"normaliser", "sparsemax", "", "w_j = max(0, e_j − τ), Σ w = 1", "", "Martins, Astudillo 2016"},
    .plain = sparsemax,
    .fused = &sparsemax_fused,
};

/* ---- entmax15 ---- */

static at_tensor *entmax15(const at_job *j, at_tensor *e, at_tensor **log_prob)
{
    (void)log_prob;
    return at_entmax15(e, &j->spans);
}

static const at_fused_normaliser entmax15_fused = {
    .rule = RULE_ENTMAX15, .pass = AT_PASS_WHOLE_ROWS, .ignores_offset = true};

const at_normaliser_record at_normaliser_entmax15 = {
    .entry = {"normaliser", "entmax15", "", "w_j = max(0, e_j/2 − τ)², Σ w = 1", "", "Peters, Niculae, Martins 2019"},
    .plain = entmax15,
    .fused = &entmax15_fused,
};

/* ---- sigmoid ---- */

static at_tensor *sigmoid(const at_job *j, at_tensor *e, at_tensor **log_prob)
{
    (void)log_prob;
    return at_sigmoid_span(e, &j->spans);
}

static void sigmoid_tile(const tile *t, const tile_table *table, const tile_state *state)
{
    (void)state;
    if (table->at)
        at_isa()->tile->look_up(t, table);
    at_isa()->tile->sigmoid(t);
}

static at_real sigmoid_end(at_real shift, at_real sum, bool is_empty, at_real *stat)
{
    (void)shift, (void)sum;
    if (stat)
        *stat = is_empty ? 0 : 1;
    return 1;
}

static const at_fused_normaliser sigmoid_fused = {.rule = RULE_SIGMOID, .tile = sigmoid_tile, .end = sigmoid_end};

const at_normaliser_record at_normaliser_sigmoid = {
    .entry = {"normaliser", "sigmoid", "", "w_j = σ(e_j), not normalised", "", ""},
    .plain = sigmoid,
    .fused = &sigmoid_fused,
};

/* ---- relu ---- */

static at_tensor *relu(const at_job *j, at_tensor *e, at_tensor **log_prob)
{
    (void)log_prob;
    return at_relu_span(e, &j->spans);
}

static void relu_tile(const tile *t, const tile_table *table, const tile_state *state)
{
    if (table->at)
        at_isa()->tile->look_up(t, table);
    at_isa()->tile->relu(t, state);
}

static at_real relu_end(at_real shift, at_real sum, bool is_empty, at_real *stat)
{
    (void)shift;
    const at_real factor = is_empty || sum == 0 ? 0 : 1 / sum;
    if (stat)
        *stat = factor;
    return factor;
}

static const at_fused_normaliser relu_fused = {.rule = RULE_RELU, .tile = relu_tile, .end = relu_end};

const at_normaliser_record at_normaliser_relu = {
    .entry = {"normaliser", "relu", "", "w_j = max(0, e_j) / Σ_k max(0, e_k)", "", ""},
    .plain = relu,
    .fused = &relu_fused,
};

/* ---- hard ---- */

static at_tensor *hard(const at_job *j, at_tensor *e, at_tensor **log_prob)
{
    return at_hard(e, &j->spans, j->in.sample, j->in.seed, log_prob);
}

static const at_fused_normaliser hard_fused = {.rule = RULE_HARD, .pass = AT_PASS_CHOICE, .ignores_offset = true};

const at_normaliser_record at_normaliser_hard = {
    .entry = {"normaliser", "hard", "", "w = one-hot of argmax e, or of a draw from softmax(e)", "", "Xu et al. 2015"},
    .draws_from = &at_normaliser_softmax,
    .plain = hard,
    .fused = &hard_fused,
};
