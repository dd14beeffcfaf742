/* The scores: how well a query fits a key. */
#include <math.h>

#include "axes.h"

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
    o->q = at_heads_product(o->q, o->in->W, o->H, true); /* [B,Q,H,A]; b [A] or [H,A] */
    if (o->in->b)
        o->q = at_add(o->q, o->in->b);
    o->k = at_heads_product(o->k, o->in->U, o->H, true); /* [B,K,G,A] */
}

static at_tensor *act(at_act which, at_tensor *x)
{
    return which == AT_ACT_TANH ? at_tanh(x) : which == AT_ACT_SIGMOID ? at_sigmoid(x) : at_relu(x);
}

/* The specification of the additive score, with its [Q,K,A] tensor: broadcast sum, activation, weighted sum. Every row
 * meets every key here, so a NaN key that one row sees reaches the gradients of the queries that do not (0 x NaN); in
 * the fused path it does not. */
static at_tensor *additive_steps(at_operands *o)
{
    at_tensor *q = at_swap_heads(o->q), *k = at_swap_heads(o->k), *v = o->in->v;
    if (!q || !k || !v)
        return NULL;
    const int64_t G = k->shape.dim[1], share = o->H / G, A = q->shape.dim[3];
    q = at_reshape(q, AT_SHAPE(o->B, G, share, o->Q, 1, A));
    k = at_reshape(k, AT_SHAPE(o->B, G, 1, 1, o->K, A));
    if (v->shape.rank == 2)
        v = at_reshape(v, AT_SHAPE(G, share, 1, 1, A));
    at_tensor *x = act(o->attention->act, at_add(q, k)); /* [B,G,H/G,Q,K,A] */
    return at_reshape(at_sum(at_mul(x, v), 5), AT_SHAPE(o->B, o->H, o->Q, o->K));
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
                     additive_steps},
};

const at_score_record *at_score_at(int index)
{
    return index >= 0 && index < (int)(sizeof records / sizeof *records) ? &records[index] : NULL;
}
