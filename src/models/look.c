/* How a decoder looks at the source: always through the attention operator, with whatever score, normaliser, window and
 * positions the settings chose. */
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

bool at_look_declare(at_model *model, at_look *look, const char *name, int64_t width, int64_t value_width, bool ready,
                     at_error *error)
{
    return at_look_declare_for(model, &model->attention, look, name, width, value_width, ready, error);
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

bool at_look_declare_for(at_model *model, const at_attention *a, at_look *look, const char *name, int64_t width,
                         int64_t value_width, bool ready, at_error *error)
{
    const int64_t H = a->heads, D = width / H, Dv = value_width / H;
    const bool prepared = ready && at_attention_prepares(a);
    *look = (at_look){.prepared = prepared, .width = width};
    if (width % H || value_width % H)
        return at_fail(error, AT_SHAPE, "`heads` is %lld and must divide %lld, the size of what attention compares%s",
                       (long long)H, (long long)(width % H ? width : value_width), width % H ? "" : " and sums");
    if (at_attention_rotates(a) && D % 2)
        return at_fail(error, AT_SHAPE,
                       "position 'rope' rotates pairs of numbers, so the head size must be even, and it is %lld",
                       (long long)D);
    for (int axis = 0; axis < AT_AXES; axis++)
        for (int i = 0; i < AT_MOST_PARAMETERS; i++) {
            look->parameter[axis][i] = -1;
            if (i >= a->declared_count[axis])
                continue;
            char written[16];
            const at_shape shape = at_parameter_shape(a, axis, i, prepared, model->settings.attention, D, Dv);
            subscript(a->declared[axis][i].name, written, sizeof written);
            if (shape.rank > 0)
                look->parameter[axis][i] = declare(model, name, written, shape, error);
        }
    return error->code == AT_OK;
}

at_looks at_looks_begin(const at_model *model, const at_pass *pass, const at_source *source, const at_look *look,
                        int64_t n, int64_t place)
{
    at_attention attention = model->attention;
    if (pass->expectation)
        at_attention_soften(&attention);
    if (pass->guided_head)
        attention.plain = true; /* the fused path has no gradient of the weights */
    const bool hard = at_attention_samples(&attention);
    return (at_looks){.model = model,
                      .pass = pass,
                      .source = source,
                      .look = look,
                      .attention = attention,
                      .weights = at_tensor_make(pass->tape, AT_SHAPE(source->rows, n, source->length)),
                      .log_prob = hard ? at_steps_room(pass, n) : NULL,
                      .entropy = hard && pass->rng ? at_steps_room(pass, n) : NULL,
                      .guided = pass->guided_head ? at_steps_room(pass, n) : NULL,
                      .place = place};
}

void at_look_params(at_tape *tape, at_params *params, const at_look *look, at_attention_in *in)
{
    for (int axis = 0; axis < AT_AXES; axis++)
        for (int i = 0; i < AT_MOST_PARAMETERS; i++) {
            const int index = look->parameter[axis][i];
            in->parameter[axis][i] = index < 0 ? NULL : at_param(tape, params, index);
        }
}

/* The mean over the heads of w [B,H,Q,S], or the head that the pass asks for, into the rows of weights [B,n,S]. */
static void gather_weights(const at_looks *looks, const at_real *w, int64_t Q)
{
    const int64_t B = looks->source->rows, S = looks->source->length, H = looks->attention.heads;
    const int64_t n = looks->weights->shape.dim[1];
    const int64_t first = looks->pass->head ? looks->pass->head - 1 : 0, heads = looks->pass->head ? 1 : H;
    const at_real share = 1 / (at_real)heads;
    for (int64_t b = 0; b < B; b++) {
        at_real *to = looks->weights->value + (b * n + looks->done) * S;
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

/* H = -sum_j p_j log p_j of the softmax that hard attention drew from, summed over the heads: [B,Q]. (With local-p the
 * operator's weights have its Gaussian in them.) The log's argument never is 0, and what that adds is far below
 * rounding. */
static at_tensor *entropy_of(const at_looks *looks, at_attention_in in)
{
    at_attention soft = looks->attention;
    at_attention_soften(&soft);
    soft.plain = true;
    in.asked = NULL;
    in.sample = false;
    at_tensor *p = at_attention_run(looks->pass->tape, &soft, &in).weights; /* [B,H,Q,S] */
    at_tensor *tiny = at_tensor_make(looks->pass->tape, AT_SHAPE(1));
    if (!p || !tiny)
        return NULL;
    *tiny->value = (at_real)1e-30;
    return at_scale(at_sum(at_sum(at_mul(p, at_log(at_add(p, tiny))), 3), 1), -1);
}

at_tensor *at_looks_next(at_looks *looks, at_tensor *query, at_tensor *key, at_tensor *value)
{
    if (!query || !key || !value || !at_tape_ok(looks->pass->tape))
        return NULL;
    const at_look *look = looks->look;
    const at_attention *attention = &looks->attention;
    at_tape *tape = looks->pass->tape;
    at_rng *rng = looks->pass->rng;
    const int64_t Q = query->shape.dim[1];
    const bool hard = at_attention_samples(attention), draws = hard && rng;
    at_real *w =
        at_room(tape, (size_t)(looks->source->rows * attention->heads * Q * looks->source->length) * sizeof *w);
    at_attention_in in = {.query = query,
                          .key = key,
                          .value = value,
                          .lengths = looks->source->lengths,
                          .query_start = looks->place,
                          .sample = draws,
                          .seed = draws ? (uint64_t)at_rng_u32(rng) << 32 | at_rng_u32(rng) : 0,
                          .drop = at_drop_of(looks->model, looks->pass),
                          .prepared = look->prepared,
                          .asked = &(at_asked){.weights = w}};
    at_look_params(tape, looks->model->params, look, &in);
    at_attention_out out = at_attention_run(tape, attention, &in);
    if (!w || !out.out)
        return NULL;
    gather_weights(looks, w, Q);
    if (looks->guided)
        looks->guided[looks->calls] = at_one_head(out.weights, looks->pass->guided_head);
    if (hard)
        looks->log_prob[looks->calls] = at_sum(out.log_prob, 1); /* [B,H,Q] -> [B,Q] */
    if (looks->entropy)
        looks->entropy[looks->calls] = entropy_of(looks, in);
    looks->calls++;
    looks->done += Q;
    looks->place += Q;
    return out.out;
}

at_decoded at_looks_end(const at_looks *looks, at_tensor *logits)
{
    if (!logits || !at_tape_ok(looks->pass->tape))
        return (at_decoded){0};
    return (at_decoded){.logits = logits,
                        .weights = looks->weights,
                        .guided = looks->guided ? at_concat(looks->guided, (int)looks->calls, 1) : NULL,
                        .log_prob = looks->log_prob ? at_concat(looks->log_prob, (int)looks->calls, 1) : NULL,
                        .entropy = looks->entropy ? at_concat(looks->entropy, (int)looks->calls, 1) : NULL};
}
