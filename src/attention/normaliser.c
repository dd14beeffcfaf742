/* The normalisers: scores become weights. The operations themselves are src/tape/normalise.c. */
#include "attention/axes.h"

static at_tensor *softmax(const at_operands *o, at_tensor *e, at_tensor **log_prob)
{
    (void)log_prob;
    return at_softmax(e, &o->spans);
}

static at_tensor *sparsemax(const at_operands *o, at_tensor *e, at_tensor **log_prob)
{
    (void)log_prob;
    return at_sparsemax(e, &o->spans);
}

static at_tensor *entmax15(const at_operands *o, at_tensor *e, at_tensor **log_prob)
{
    (void)log_prob;
    return at_entmax15(e, &o->spans);
}

static at_tensor *sigmoid(const at_operands *o, at_tensor *e, at_tensor **log_prob)
{
    (void)log_prob;
    return at_sigmoid_span(e, &o->spans);
}

static at_tensor *relu(const at_operands *o, at_tensor *e, at_tensor **log_prob)
{
    (void)log_prob;
    return at_relu_span(e, &o->spans);
}

static at_tensor *hard(const at_operands *o, at_tensor *e, at_tensor **log_prob)
{
    return at_hard(e, &o->spans, o->in->sample, o->in->seed, log_prob);
}

static const at_normaliser_record records[] = {
    [AT_SOFTMAX] = {{"normaliser", "softmax", "", "w_j = exp e_j / Σ_k exp e_k", "", "Bahdanau, Cho, Bengio 2014"},
                    softmax},
    [AT_SPARSEMAX] = {{"normaliser", "sparsemax", "", "w_j = max(0, e_j − τ), Σ w = 1", "", "Martins, Astudillo 2016"},
                      sparsemax},
    [AT_ENTMAX15] = {{"normaliser", "entmax15", "", "w_j = max(0, e_j/2 − τ)², Σ w = 1", "",
                      "Peters, Niculae, Martins 2019"},
                     entmax15},
    [AT_SIGMOID] = {{"normaliser", "sigmoid", "", "w_j = σ(e_j), not normalised", "", ""}, sigmoid},
    [AT_RELU] = {{"normaliser", "relu", "", "w_j = max(0, e_j) / Σ_k max(0, e_k)", "", ""}, relu},
    [AT_HARD] = {{"normaliser", "hard", "", "w = one-hot of argmax e, or of a draw from softmax(e)", "",
                  "Xu et al. 2015"},
                 hard},
};

const at_normaliser_record *at_normaliser_at(int index)
{
    return index >= 0 && index < (int)(sizeof records / sizeof *records) ? &records[index] : NULL;
}
