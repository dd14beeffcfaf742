/* Hard attention without sampling (Wu, Shapiro, Cotterell 2018): the probability of the next target unit is summed over
 * the source units that attention may choose,
 *
 *     p(y_t) = sum_j w_tj p(y_t | j),  p(. | j) = softmax(W f(q_t + beta_t k_j) + b)
 *
 * q_t comes from the decoder's state and k_j from the source unit, once for each source. There are B n S V logits, and
 * as many numbers f; where they are many, a few target positions at a time are on the tape. */
#include <string.h>

#include "models/kinds.h"
#include "tape/block.h"

enum { MOST_NUMBERS = 1 << 22 };

at_tensor *at_dense_columns(const at_pass *pass, const at_model *model, const at_dense *layer, int64_t from, int64_t to,
                            at_tensor *x)
{
    at_tensor *W = at_param(pass->tape, model->params, layer->w);
    return at_linear(x, at_slice(W, 1, from, to), NULL, AT_ACT_NONE);
}

enum { STEP, UNIT, GATE, WEIGHTS, KEPT, W, BIAS, INPUTS };

static at_tensor *filled(at_tape *tape, at_shape shape, at_real value)
{
    at_tensor *tensor = at_tensor_make(tape, shape);
    for (int64_t i = 0; tensor && i < at_shape_count(shape); i++)
        tensor->value[i] = value;
    return tensor;
}

/* x [B,n,D] as [B,n,1,D]: the same for all source units */
static at_tensor *for_units(at_tensor *x)
{
    return x ? at_reshape(x, AT_SHAPE(x->shape.dim[0], x->shape.dim[1], 1, x->shape.dim[2])) : NULL;
}

/* The log-probabilities [B,n,V] of n target positions. */
static at_tensor *build(at_tape *tape, at_tensor *const *in, const void *context)
{
    const at_marginal *m = context;
    const at_tensor *unit = in[UNIT];
    const int64_t B = unit->shape.dim[0], S = unit->shape.dim[1], n = in[WEIGHTS]->shape.dim[1];
    at_tensor *k = at_reshape(in[UNIT], AT_SHAPE(B, 1, S, unit->shape.dim[2]));
    at_tensor *f = at_add(for_units(in[STEP]), in[GATE] ? at_mul(k, for_units(in[GATE])) : k); /* [B,n,S,L] */
    (void)tape;
    if (m->join == AT_MARGINAL_TANH)
        f = at_tanh(f);
    else if (m->join == AT_MARGINAL_MAXOUT)
        f = at_maxout(f);
    if (in[KEPT])
        f = at_mul(f, for_units(in[KEPT]));
    at_tensor *z = in[W] ? at_linear(f, in[W], in[BIAS], AT_ACT_NONE) : f; /* [B,n,S,V] */
    if (!z)
        return NULL;
    const int64_t V = z->shape.dim[3];
    at_tensor *y = at_log_mixture(at_reshape(z, AT_SHAPE(B * n, S, V)), at_reshape(in[WEIGHTS], AT_SHAPE(B * n, S)));
    return at_reshape(y, AT_SHAPE(B, n, V));
}

/* A window may be empty, or leave a part of the weight: it goes to a further unit of zeros. */
static void add_rest(const at_source_attention *a, at_tensor **in)
{
    at_tape *tape = a->pass->tape;
    if (strcmp(a->model->settings.window, "global") == 0 || !in[UNIT] || !in[WEIGHTS])
        return;
    const int64_t B = in[UNIT]->shape.dim[0], L = in[UNIT]->shape.dim[2], n = in[WEIGHTS]->shape.dim[1];
    at_tensor *zeros = filled(tape, AT_SHAPE(B, 1, L), 0), *one = filled(tape, AT_SHAPE(1), 1);
    at_tensor *rest = at_reshape(at_sub(one, at_sum(in[WEIGHTS], 2)), AT_SHAPE(B, n, 1));
    in[UNIT] = at_concat((at_tensor *[]){in[UNIT], zeros}, 2, 1);
    in[WEIGHTS] = at_concat((at_tensor *[]){in[WEIGHTS], rest}, 2, 2);
}

/* Positions from .. to - 1 of the inputs that have positions. */
static void cut(at_tensor *const *in, at_tensor **part, int64_t from, int64_t to)
{
    static const int by_position[] = {STEP, GATE, WEIGHTS, KEPT};
    memcpy(part, in, INPUTS * sizeof *part);
    for (int i = 0; i < 4; i++)
        if (in[by_position[i]])
            part[by_position[i]] = at_slice(in[by_position[i]], 1, from, to);
}

at_tensor *at_marginal_logits(const at_source_attention *a, const at_marginal *m)
{
    const at_model *model = a->model;
    at_tape *tape = a->pass->tape;
    at_tensor *in[INPUTS] = {
        [STEP] = m->step, [UNIT] = m->unit, [GATE] = m->gate, [WEIGHTS] = at_source_attention_weights(a)};
    add_rest(a, in);
    if (!in[STEP] || !in[UNIT] || !in[WEIGHTS] || !at_tape_ok(tape))
        return NULL;
    const int64_t B = in[STEP]->shape.dim[0], n = in[STEP]->shape.dim[1], L = in[STEP]->shape.dim[2];
    const int64_t units = m->join == AT_MARGINAL_MAXOUT ? L / 2 : L, S = in[UNIT]->shape.dim[1];
    if (m->output) {
        in[W] = at_param(tape, model->params, m->output->w);
        in[BIAS] = m->output->b < 0 ? NULL : at_param(tape, model->params, m->output->b);
    }
    if (m->drops && a->pass->rng && model->settings.dropout > 0)
        in[KEPT] = at_drop(model, a->pass, filled(tape, AT_SHAPE(B, n, units), 1)); /* 0 or 1 / keep */
    const at_marginal *kept = at_keep(tape, m, sizeof *m);
    at_tensor **blocks = at_step_array(a->pass, n);
    if (!kept || !blocks || (m->output && !in[W]))
        return NULL;
    const int64_t V = m->output ? in[W]->shape.dim[0] : L, each = B * S * (2 * L + V);
    const int64_t fit = (m->most ? m->most : MOST_NUMBERS) / (each > 0 ? each : 1), block = fit < 1 ? 1 : fit;
    if (block >= n)
        return build(tape, in, kept);
    int count = 0;
    for (int64_t from = 0; from < n && at_tape_ok(tape); from += block) {
        const int64_t to = from + block < n ? from + block : n;
        at_tensor *part[INPUTS];
        cut(in, part, from, to);
        blocks[count++] = at_recompute(tape, AT_SHAPE(B, to - from, V), build, kept, part, INPUTS);
    }
    return at_tape_ok(tape) ? at_concat(blocks, count, 1) : NULL;
}
