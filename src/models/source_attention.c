/* Attention from a decoder to the source through the attention operator, with the score, normaliser, window and
 * positions of the settings. */
#include <stdio.h>
#include <string.h>

#include "models/kinds.h"
#include "tape/block.h"

static int declare(at_model *model, const char *name, const char *what, at_shape shape, at_error *error)
{
    char full[120];
    snprintf(full, sizeof full, "%s.%s", name, what);
    return at_params_add(model->params, full, shape, error);
}

bool at_attention_params_declare(at_model *model, at_attention_params *params, const char *name, int64_t width,
                                 int64_t value_width, bool ready, at_error *error)
{
    return at_attention_params_declare_for(model, &model->attention, params, name, width, value_width, ready, error);
}

/* A parameter's name as papers write it, by its use: W -> W_a, Wp -> W_p, wK -> w_K. */
static void subscript(const char *name, char *out, size_t size)
{
    const size_t length = strlen(name);
    if (length <= 2)
        snprintf(out, size, "%c_%c", name[0], length == 2 ? name[1] : 'a');
    else
        snprintf(out, size, "%s", name);
}

bool at_attention_params_declare_for(at_model *model, const at_attention *a, at_attention_params *params,
                                     const char *name, int64_t width, int64_t value_width, bool ready, at_error *error)
{
    const int64_t H = a->heads, D = width / H, Dv = value_width / H;
    const bool prepared = ready && at_attention_prepares(a);
    *params = (at_attention_params){.prepared = prepared, .width = width};
    if (width % H || value_width % H)
        return at_fail(error, AT_USAGE, "`heads` is %lld and must divide %lld, the size of what attention compares%s",
                       (long long)H, (long long)(width % H ? width : value_width), width % H ? "" : " and sums");
    if (at_attention_rotates(a) && D % 2)
        return at_fail(error, AT_USAGE,
                       "position 'rope' rotates pairs of numbers, so the head size must be even, and it is %lld",
                       (long long)D);
    for (int axis = 0; axis < AT_AXES; axis++)
        for (int i = 0; i < AT_MOST_PARAMETERS; i++) {
            params->parameter[axis][i] = -1;
            if (i >= a->declared_count[axis])
                continue;
            char written[16];
            const at_shape shape = at_parameter_shape(a, axis, i, prepared, model->settings.attention, D, Dv);
            subscript(a->declared[axis][i].name, written, sizeof written);
            if (shape.rank > 0)
                params->parameter[axis][i] = declare(model, name, written, shape, error);
        }
    return error->code == AT_OK;
}

at_source_attention at_source_attention_begin(const at_model *model, const at_pass *pass, const at_source *source,
                                              const at_attention_params *params, int64_t n, const at_parts *state)
{
    at_attention attention = model->attention;
    if (pass->expectation)
        at_attention_soften(&attention);
    const bool attended = pass->wants_attended || at_is_exact(model);
    const bool covers = model->settings.coverage > 0;
    if (pass->guided_head || attended || covers)
        attention.plain = true; /* the fused path has no gradient of the weights */
    const bool hard = at_attention_samples(&attention);
    return (at_source_attention){.model = model,
                                 .pass = pass,
                                 .source = source,
                                 .params = params,
                                 .attention = attention,
                                 .weights = at_tensor_make(pass->tape, AT_SHAPE(source->rows, n, source->length)),
                                 .log_prob = hard ? at_step_array(pass, n) : NULL,
                                 .entropy = hard && pass->rng ? at_step_array(pass, n) : NULL,
                                 .guided = pass->guided_head ? at_step_array(pass, n) : NULL,
                                 .attended = attended ? at_step_array(pass, n) : NULL,
                                 .covered = covers && state->count > 0 ? state->part[state->count - 1] : NULL,
                                 .position = state->count > 0 ? at_state_position_of(state->part[0]) : 0};
}

void at_attention_params_put(at_tape *tape, at_params *params, const at_attention_params *own, at_attention_in *in)
{
    for (int axis = 0; axis < AT_AXES; axis++)
        for (int i = 0; i < AT_MOST_PARAMETERS; i++) {
            const int index = own->parameter[axis][i];
            in->parameter[axis][i] = index < 0 ? NULL : at_param(tape, params, index);
        }
}

/* The mean over the heads of w [B,H,Q,S], or the head that the pass asks for, into the rows of weights [B,n,S]. */
static void gather_weights(const at_source_attention *a, const at_real *w, int64_t Q)
{
    const int64_t B = a->source->rows, S = a->source->length, H = a->attention.heads;
    const int64_t n = a->weights->shape.dim[1];
    const int64_t first = a->pass->head ? a->pass->head - 1 : 0, heads = a->pass->head ? 1 : H;
    const at_real share = 1 / (at_real)heads;
    for (int64_t b = 0; b < B; b++) {
        at_real *to = a->weights->value + (b * n + a->done) * S;
        const at_real *from = w + (b * H + first) * Q * S;
        memcpy(to, from, (size_t)(Q * S) * sizeof *to);
        for (int64_t h = 1; h < heads; h++)
            for (int64_t i = 0; i < Q * S; i++)
                to[i] += from[h * Q * S + i];
        for (int64_t i = 0; heads > 1 && i < Q * S; i++)
            to[i] *= share;
    }
}

at_tensor *at_one_head(at_tensor *weights, int head)
{
    if (!weights)
        return NULL;
    const at_shape *s = &weights->shape;
    return at_reshape(at_slice(weights, 1, head - 1, head), AT_SHAPE(s->dim[0], s->dim[2], s->dim[3]));
}

/* H = -sum_j p_j log(p_j + 1e-30) of the softmax that hard attention samples from, summed over the heads: [B,Q]. (With
 * local-p, p includes the Gaussian.) The constant keeps the logarithm finite and is far below rounding. */
static at_tensor *entropy_of(const at_source_attention *a, at_attention_in in)
{
    at_attention soft = a->attention;
    at_attention_soften(&soft);
    soft.plain = true;
    in.asked = NULL;
    in.sample = false;
    at_tensor *p = at_attention_run(a->pass->tape, &soft, &in).weights; /* [B,H,Q,S] */
    at_tensor *tiny = at_tensor_make(a->pass->tape, AT_SHAPE(1));
    if (!p || !tiny)
        return NULL;
    *tiny->value = (at_real)1e-30;
    return at_scale(at_sum(at_sum(at_mul(p, at_log(at_add(p, tiny))), 3), 1), -1);
}

/* W q + b [B,Q,H*A] and U k [B,S,H*A] of the additive score, as the operator would prepare them. */
static void prepare(at_source_attention *a, at_attention_in *in)
{
    enum { W = 1, U, b };
    at_tensor **p = in->parameter[AT_SCORE];
    const int64_t B = a->source->rows, S = a->source->length, Q = in->query->shape.dim[1], H = a->attention.heads;
    const int64_t D = a->params->width / H;
    at_tensor *q = at_linear(at_reshape(in->query, AT_SHAPE(B, Q, H, D)), p[W], p[b], AT_ACT_NONE);
    if (!a->ready_key || a->key != in->key)
        a->ready_key = at_reshape(at_linear(at_reshape(in->key, AT_SHAPE(B, S, H, D)), p[U], NULL, AT_ACT_NONE),
                                  AT_SHAPE(B, S, -1));
    a->key = in->key;
    in->query = at_reshape(q, AT_SHAPE(B, Q, -1));
    in->key = a->ready_key;
    in->prepared = true;
    p[W] = p[U] = p[b] = NULL;
}

/* The keys of the next step, with what coverage adds to them. */
static bool cover(at_source_attention *a, at_attention_in *in)
{
    if (!in->prepared)
        prepare(a, in);
    return in->key && in->query && at_coverage_term(a, in);
}

/* The weights of one more step, [B,H,1,S], enter the sum [B,S]. */
static void add_to_covered(at_source_attention *a, at_tensor *weights)
{
    at_tensor *mean = at_mean(weights, 1);
    a->covered = at_add(a->covered, at_reshape(mean, AT_SHAPE(a->source->rows, a->source->length)));
}

static at_tensor *next_queries(at_source_attention *a, at_tensor *query, at_tensor *key, at_tensor *value)
{
    const at_attention_params *params = a->params;
    const at_attention *attention = &a->attention;
    at_tape *tape = a->pass->tape;
    at_rng *rng = a->pass->rng;
    const int64_t Q = query->shape.dim[1];
    const bool hard = at_attention_samples(attention), samples = hard && rng;
    at_real *w = at_room(tape, (size_t)(a->source->rows * attention->heads * Q * a->source->length) * sizeof *w);
    at_attention_in in = {.query = query,
                          .key = key,
                          .value = value,
                          .lengths = a->source->lengths,
                          .query_start = a->position,
                          .sample = samples,
                          .seed = samples ? (uint64_t)at_rng_u32(rng) << 32 | at_rng_u32(rng) : 0,
                          .drop = at_weight_dropout(a->model, a->pass),
                          .prepared = params->prepared,
                          .asked = &(at_asked){.weights = w}};
    at_attention_params_put(tape, a->model->params, params, &in);
    if (a->model->settings.coverage && !cover(a, &in))
        return NULL;
    at_attention_out out = at_attention_run(tape, attention, &in);
    if (!w || !out.out)
        return NULL;
    if (a->model->settings.coverage)
        add_to_covered(a, out.weights);
    gather_weights(a, w, Q);
    if (a->pass->observer)
        a->pass->observer->observe(a->pass->observer->context, &(at_observed){.kind = AT_CROSS_ATTENTION,
                                                                              .layer = 1,
                                                                              .batch = a->source->rows,
                                                                              .heads = attention->heads,
                                                                              .queries = Q,
                                                                              .keys = a->source->length,
                                                                              .first = a->position,
                                                                              .weights = w});
    if (a->guided)
        a->guided[a->calls] = at_one_head(out.weights, a->pass->guided_head);
    if (a->attended)
        a->attended[a->calls] = at_mean(out.weights, 1);
    if (hard)
        a->log_prob[a->calls] = at_sum(out.log_prob, 1); /* [B,H,Q] -> [B,Q] */
    if (a->entropy)
        a->entropy[a->calls] = entropy_of(a, in);
    a->calls++;
    a->done += Q;
    a->position += Q;
    return out.out;
}

at_tensor *at_source_attention_next(at_source_attention *a, at_tensor *query, at_tensor *key, at_tensor *value)
{
    if (!query || !key || !value || !at_tape_ok(a->pass->tape))
        return NULL;
    const int64_t Q = query->shape.dim[1];
    if (!a->model->settings.coverage || Q == 1)
        return next_queries(a, query, key, value);
    at_tensor **context = at_step_array(a->pass, Q); /* with coverage each query needs the weights of the one before */
    for (int64_t i = 0; context && i < Q; i++)
        context[i] = next_queries(a, at_slice(query, 1, i, i + 1), key, value);
    return at_tape_ok(a->pass->tape) ? at_concat(context, (int)Q, 1) : NULL;
}

at_tensor *at_source_attention_weights(const at_source_attention *a)
{
    return a->attended && at_tape_ok(a->pass->tape) ? at_concat(a->attended, (int)a->calls, 1) : NULL;
}

at_decoded at_source_attention_end(const at_source_attention *a, at_tensor *logits)
{
    if (!logits || !at_tape_ok(a->pass->tape))
        return (at_decoded){0};
    return (at_decoded){.logits = logits,
                        .weights = a->weights,
                        .guided = a->guided ? at_concat(a->guided, (int)a->calls, 1) : NULL,
                        .attended = a->pass->wants_attended ? at_source_attention_weights(a) : NULL,
                        .log_prob = a->log_prob ? at_concat(a->log_prob, (int)a->calls, 1) : NULL,
                        .entropy = a->entropy ? at_concat(a->entropy, (int)a->calls, 1) : NULL};
}
