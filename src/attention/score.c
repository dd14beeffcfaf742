/* The scores: how well a query fits a key. */
#include <math.h>

#include "attention/axes_internal.h"
#include "kernels/isa.h"

/* ---- Inner products ---- */

/* e = scale q k^T inside the spans */
static at_tensor *inner_product(const at_job *j)
{
    at_tensor *e = at_span_dot(at_swap_heads(j->q), at_swap_heads(j->k), &j->spans); /* [B,H,Q,K] */
    return j->scale == 1 ? e : at_scale(e, j->scale);
}

static const at_fused_score inner_fused = {.vector = -1};

const at_score_record at_score_dot = {
    .entry = {"score", "dot", "", "q·k", "", "Luong, Pham, Manning 2015"},
    .inner = true,
    .plain = inner_product,
    .fused = &inner_fused,
};

static at_real scaled_by(int64_t size)
{
    return 1 / AT_REAL(sqrt)((at_real)size);
}

const at_score_record at_score_scaled = {
    .entry = {"score", "scaled", "", "q·k / √D", "", "Vaswani et al. 2017"},
    .inner = true,
    .scale = scaled_by,
    .plain = inner_product,
    .fused = &inner_fused,
};

/* q <- q W, so that e = (q W) k^T */
static void general_prepare(at_job *j)
{
    at_tensor *W = j->in.parameter[AT_SCORE][0];
    j->q = at_heads_product(j->q, W, j->H, false);
}

const at_score_record at_score_general = {
    .entry = {"score", "general", "", "qᵀ W k", "W [D,D]", "Luong, Pham, Manning 2015"},
    .inner = true,
    .prepare = general_prepare,
    .plain = inner_product,
    .fused = &inner_fused,
};

/* ---- additive ---- */

enum { ADDITIVE_V, ADDITIVE_W, ADDITIVE_U, ADDITIVE_B };

static bool activation(const at_choice *c, at_attention *a, at_error *error)
{
    static const char *const names[] = {"tanh", "sigmoid", "relu"};
    static const at_act acts[] = {AT_ACT_TANH, AT_ACT_SIGMOID, AT_ACT_RELU};
    const int found = at_argument_word(c, "activation", c->argument ? c->argument : names[0], names, 3, error);
    if (found >= 0)
        a->argument[AT_SCORE] = acts[found];
    return found >= 0;
}

/* q <- W q + b, k <- U k, so that e = v^T act(q + k) */
static void additive_prepare(at_job *j)
{
    at_tensor *const *p = j->in.parameter[AT_SCORE];
    j->q = at_heads_product(j->q, p[ADDITIVE_W], j->H, true); /* [B,Q,H,A]; b [A] or [H,A] */
    if (p[ADDITIVE_B])
        j->q = at_add(j->q, p[ADDITIVE_B]);
    /* A key that no query sees must not enter the gradient of U (0 x NaN). */
    j->k = at_heads_product(at_seen(j->k, &j->spans), p[ADDITIVE_U], j->H, true); /* [B,K,G,A] */
}

/* [B,H,Q,K]. The operations never make the [Q,K,A] tensor of the formula; the tests compare them with the composition
 * that does. One query at a time, as recurrent models ask when they need the gradient of the weights, is in vectors. */
static at_tensor *additive_score(const at_job *j)
{
    at_tensor *q = at_swap_heads(j->q), *k = at_swap_heads(j->k), *v = j->in.parameter[AT_SCORE][ADDITIVE_V];
    const at_act act = (at_act)j->attention.argument[AT_SCORE];
    const bool one = q && k && q->shape.dim[2] == 1 && k->shape.dim[1] == q->shape.dim[1];
    return j->in.term || one ? at_covered(q, k, j->in.term, j->in.term ? j->in.term_first : NULL, v, act, &j->spans)
                             : at_additive(q, k, v, act, &j->spans);
}

static tile_additive additive_job(const at_pairwise *p)
{
    return (tile_additive){.size = p->size,
                           .q = p->q,
                           .q_row = p->q_row,
                           .kt = p->kt,
                           .v = p->v,
                           .act = (at_act)p->argument,
                           .dq = p->dq,
                           .dkt = p->dkt,
                           .dv = p->dv};
}

static void additive_tile(const tile *t, const at_pairwise *p)
{
    const tile_additive job = additive_job(p);
    at_isa()->tile->additive(t, &job);
}

static void additive_tile_back(const tile *ds, const at_pairwise *p)
{
    const tile_additive job = additive_job(p);
    at_isa()->tile->additive_back(ds, &job);
}

static const at_fused_score additive_fused = {
    .tile = additive_tile, .tile_back = additive_tile_back, .vector = ADDITIVE_V};

const at_score_record at_score_additive = {
    .entry = {"score", "additive", "[tanh|sigmoid|relu]", "vᵀ act(W q + U k + b)", "v [A], W [A,D], U [A,D], b [A]?",
              "Bahdanau, Cho, Bengio 2014"},
    .argument = activation,
    .prepare = additive_prepare,
    .prepared_parameters = 1,
    .plain = additive_score,
    .fused = &additive_fused,
};
