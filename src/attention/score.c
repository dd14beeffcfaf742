/* The scores: how well a query fits a key. */
#include <math.h>

#include "attention/axes.h"

static at_real scaled_by(int64_t size)
{
    return 1 / AT_REAL(sqrt)((at_real)size);
}

/* e = scale q k^T inside the spans */
static at_tensor *inner_product(at_operands *o)
{
    at_tensor *e = at_span_dot(at_swap_heads(o->q), at_swap_heads(o->k), &o->spans); /* [B,H,Q,K] */
    return o->scale == 1 ? e : at_scale(e, o->scale);
}

/* q <- q W, so that e = (q W) k^T */
static void general_prepare(at_operands *o)
{
    o->q = at_heads_product(o->q, o->in->W, o->H, false);
}

/* q <- W q + b, k <- U k, so that e = v^T act(q + k) */
static void additive_prepare(at_operands *o)
{
    if (o->in->prepared)
        return;
    o->q = at_heads_product(o->q, o->in->W, o->H, true); /* [B,Q,H,A]; b [A] or [H,A] */
    if (o->in->b)
        o->q = at_add(o->q, o->in->b);
    o->k = at_heads_product(o->k, o->in->U, o->H, true); /* [B,K,G,A] */
}

/* [B,H,Q,K]. The operation never makes the [Q,K,A] tensor of the formula; the composition that does is its judge in the
 * tests. */
static at_tensor *additive_score(at_operands *o)
{
    return at_additive(at_swap_heads(o->q), at_swap_heads(o->k), o->in->v, o->attention->act, &o->spans);
}

static const at_score_record records[] = {
    [AT_DOT] = {{"score", "dot", "", "q·k", "", "Luong, Pham, Manning 2015"}, true, NULL, NULL, inner_product},
    [AT_SCALED] =
        {{"score", "scaled", "", "q·k / √D", "", "Vaswani et al. 2017"}, true, scaled_by, NULL, inner_product},
    [AT_GENERAL] = {{"score", "general", "", "qᵀ W k", "W [D,D]", "Luong, Pham, Manning 2015"},
                    true,
                    NULL,
                    general_prepare,
                    inner_product},
    [AT_ADDITIVE] = {{"score", "additive", "[tanh|sigmoid|relu]", "vᵀ act(W q + U k + b)",
                      "v [A], W [A,D], U [A,D], b [A]?", "Bahdanau, Cho, Bengio 2014"},
                     false,
                     NULL,
                     additive_prepare,
                     additive_score},
};

const at_score_record *at_score_at(int index)
{
    return index >= 0 && index < (int)(sizeof records / sizeof *records) ? &records[index] : NULL;
}
