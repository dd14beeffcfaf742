/* Multi-head attention with its projections, over rows without padding or over a cache. The attention operator
 * computes it; this file describes its operands. */
#include <stdio.h>
#include <string.h>

#include "models/transformer_internal.h"
#include "tape/block.h"
#include "tape/ops.h"

/* The setting of each use of attention. */
static const char *setting_of(const at_model_settings *s, at_attention_kind kind)
{
    return kind == AT_ENCODER_ATTENTION   ? s->encoder_attention
           : kind == AT_DECODER_ATTENTION ? s->decoder_attention
                                          : s->cross_attention;
}

/* "scaled,sliding:8,shaw:16": each name belongs to the axis that has an entry of this name. */
static bool parse_names(const char *list, at_settings *names, char text[][32], at_error *error)
{
    const char **slot[] = {&names->score, &names->normaliser, &names->window, &names->position};
    int used = 0;
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        const size_t length = strcspn(at, ","), name = strcspn(at, ",:");
        const int axis = at_axis_of(at, name);
        if (axis < 0 || length >= 32 || used == AT_AXES)
            return at_fail(error, AT_USAGE,
                           "'%.*s' in '%s' is not a score, normaliser, window or position; name at most one of each, "
                           "separated by commas, as in 'scaled,sliding:8,shaw:16'",
                           (int)length, at, list);
        snprintf(text[used], 32, "%.*s", (int)length, at);
        *slot[axis] = text[used++];
    }
    return true;
}

bool at_multihead_names(const at_model *model, at_attention_kind kind, at_settings *names, char text[AT_AXES][32],
                        at_error *error)
{
    const at_model_settings *s = &model->settings;
    *names =
        (at_settings){.score = s->score,
                      .normaliser = s->normaliser,
                      .window = s->window,
                      .position = kind == AT_CROSS_ATTENTION || model->added != AT_ADDED_NONE ? "none" : s->position,
                      .heads = (int)s->heads,
                      .kv_heads = (int)(s->kv_heads ? s->kv_heads : s->heads)};
    return parse_names(setting_of(s, kind), names, text, error);
}

static bool parse(const at_model *model, at_attention_kind kind, at_attention *attention, at_error *error)
{
    const at_model_settings *s = &model->settings;
    char text[AT_AXES][32];
    at_settings names;
    if (!at_multihead_names(model, kind, &names, text, error) || !at_attention_parse(&names, attention, error))
        return false;
    if (at_attention_samples(attention))
        return at_fail(error, AT_USAGE,
                       "model '%s' cannot use the normaliser 'hard': its layers would take thousands of samples a "
                       "sentence, and REINFORCE learns from one a token; 'sparsemax' is sparse and differentiable",
                       s->model);
    if (at_attention_predicts(attention) && kind == AT_DECODER_ATTENTION)
        return at_fail(error, AT_USAGE,
                       "the decoder's self-attention cannot use the window 'local-p': its centre is a fraction of the "
                       "length, which a decoder does not know in advance; 'sliding' attends to a fixed number");
    attention->causal = kind == AT_DECODER_ATTENTION;
    return true;
}

at_multihead at_multihead_declare(at_model *model, at_attention_kind kind, int layer, at_error *error)
{
    at_multihead m = {.kind = kind, .layer = layer};
    const int64_t d = model->settings.hidden;
    char name[80], full[100];
    snprintf(name, sizeof name, "%s.%d.%s", kind == AT_ENCODER_ATTENTION ? "encoder" : "decoder", layer,
             kind == AT_CROSS_ATTENTION ? "cross" : "self");
    if (!parse(model, kind, &m.attention, error))
        return m;
    const int64_t H = m.attention.heads, G = m.attention.kv_heads;
    if (d % H) {
        at_fail(error, AT_USAGE, "`heads` is %lld and must divide `hidden`, which is %lld", (long long)H, (long long)d);
        return m;
    }
    m.size = d / H;
    if (at_attention_rotates(&m.attention) && m.size % 2) {
        at_fail(
            error, AT_USAGE,
            "position 'rope' rotates pairs of numbers, so the head size must be even, and `hidden` %lld over `heads` "
            "%lld is %lld",
            (long long)d, (long long)H, (long long)m.size);
        return m;
    }
    m.rotates = at_attention_rotates(&m.attention);
    if (m.rotates)
        at_attention_drop_position(&m.attention);
    const int64_t keys = 2 * G * m.size;
    snprintf(full, sizeof full, "%s.%s", name, kind == AT_CROSS_ATTENTION ? "Q" : "QKV");
    m.in = at_dense_declare(model->params, full, d, kind == AT_CROSS_ATTENTION ? d : d + keys, true, error);
    snprintf(full, sizeof full, "%s.KV", name);
    if (kind == AT_CROSS_ATTENTION)
        m.keys = at_dense_declare(model->params, full, d, keys, true, error);
    snprintf(full, sizeof full, "%s.O", name);
    m.out = at_dense_declare(model->params, full, d, d, true, error);
    at_attention_params_declare_for(model, &m.attention, &m.params, name, d, d, false, error);
    return m;
}

int64_t at_multihead_cached(const at_multihead *m)
{
    return 2 * m->attention.kv_heads * m->size;
}

/* ---- Weights for the caller ----------------------------------------------------------------------------------- */

at_cross_weights at_cross_weights_begin(const at_pass *pass, const at_source *source, int64_t n, int layers)
{
    at_cross_weights w = {.pass = pass, .layers = layers, .longest = source->length};
    if (pass->wants_weights) {
        w.mean = at_tensor_make(pass->tape, AT_SHAPE(source->rows, n, source->length));
        if (w.mean)
            memset(w.mean->value, 0, (size_t)at_shape_count(w.mean->shape) * sizeof(at_real));
    }
    return w;
}

static bool is_wanted(const at_cross_weights *w)
{
    return w->mean && (w->pass->layer == 0 || w->pass->layer == w->layer + 1);
}

/* Adds this layer's w [B,H,Q,K], whose queries are the steps from `from` on. */
static void gather(at_cross_weights *to, const at_real *w, int64_t H, int64_t Q, int64_t K, int64_t from)
{
    const int64_t B = to->mean->shape.dim[0], n = to->mean->shape.dim[1], S = to->longest;
    const int64_t head = to->pass->head ? to->pass->head - 1 : 0, heads = to->pass->head ? 1 : H;
    const at_real share = 1 / (at_real)(heads * (to->pass->layer ? 1 : to->layers));
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = head; h < head + heads; h++)
            for (int64_t i = 0; i < Q; i++) {
                const at_real *row = w + ((b * H + h) * Q + i) * K;
                at_real *sum = to->mean->value + (b * n + from + i) * S;
                for (int64_t j = 0; j < K && j < S; j++)
                    sum[j] += share * row[j];
            }
}

/* ---- Attention ------------------------------------------------------------------------------------------------ */

static int64_t largest(const int64_t *x, int64_t count)
{
    int64_t most = 0;
    for (int64_t i = 0; i < count; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

/* One call of the operator. */
typedef struct attend_call {
    at_tensor *q, *kv;
    at_packed packed;
    int64_t first;             /* position of the first query */
    at_cross_weights *weights; /* NULL: not asked for */
    int64_t step;              /* of `weights`, for the first query */
} attend_call;

/* Variables of the value 1 and memory for their gradients. */
static at_tensor *ones(at_tape *tape, at_shape shape, const at_real **gradient)
{
    const int64_t count = at_shape_count(shape);
    at_real *value = at_room(tape, (size_t)count * sizeof *value), *grad = at_room(tape, (size_t)count * sizeof *grad);
    if (!value || !grad)
        return NULL;
    for (int64_t i = 0; i < count; i++) {
        value[i] = 1;
        grad[i] = 0;
    }
    *gradient = grad;
    return at_leaf(tape, shape, value, grad, true);
}

/* A probe's record of one call, with memory for its entropies; NULL with the tape's error. */
static at_probed *probe_call(const at_pass *pass, const at_multihead *m, const at_packed *packed, int64_t Q, int64_t K)
{
    const int64_t H = m->attention.heads;
    at_real *entropy = at_room(pass->tape, (size_t)(packed->batch * H * Q) * sizeof *entropy);
    at_probed *probed = entropy ? at_room(pass->tape, sizeof *probed) : NULL;
    if (probed) {
        *probed = (at_probed){m->kind, m->layer, H, Q, K, packed, NULL, entropy, pass->probe->last};
        pass->probe->last = probed;
    }
    return probed;
}

/* xi_ih c_ih for query i and head h: c [N,H*D] */
static at_tensor *mask_heads(at_tape *tape, at_probed *probed, at_tensor *c, int64_t size)
{
    if (!c)
        return NULL;
    const int64_t N = c->shape.dim[0], H = probed->heads;
    at_tensor *mask = ones(tape, AT_SHAPE(N, H, 1), &probed->gradient);
    return at_reshape(at_mul(at_reshape(c, AT_SHAPE(N, H, size)), mask), AT_SHAPE(N, H * size));
}

static at_tensor *attend(const at_model *model, const at_pass *pass, const at_multihead *m, const attend_call *call)
{
    at_cross_weights *weights = call->weights;
    at_packed *packed = at_keep(pass->tape, &call->packed, sizeof *packed); /* the backward pass reads it again */
    const bool gathered = weights && is_wanted(weights), wanted = gathered || pass->observer;
    const int64_t B = call->packed.batch, H = m->attention.heads, Q = largest(call->packed.query_count, B),
                  K = largest(call->packed.key_count, B);
    at_real *w = wanted ? at_room(pass->tape, (size_t)(B * H * Q * K) * sizeof *w) : NULL;
    if (!packed || !call->q || (wanted && !w))
        return NULL;
    at_probed *probed = pass->probe ? probe_call(pass, m, packed, Q, K) : NULL;
    if (pass->probe && !probed)
        return NULL;
    packed->size = packed->value_size = m->size;
    at_attention_in in = {.query = call->q,
                          .key = call->kv,
                          .value = call->kv,
                          .packed = packed,
                          .query_start = call->first,
                          .drop = at_weight_dropout(model, pass),
                          .asked = &(at_asked){.weights = w, .entropy = probed ? (at_real *)probed->entropy : NULL}};
    if (probed && pass->probe->of_weights && !(in.factor = ones(pass->tape, AT_SHAPE(B, H, Q, K), &probed->gradient)))
        return NULL;
    at_attention_params_put(pass->tape, model->params, &m->params, &in);
    at_attention attention = m->attention;
    const bool guides = weights && pass->guided_layer == weights->layer + 1;
    attention.plain = attention.plain || guides || in.factor; /* the fused path has no gradient of the weights */
    at_attention_out out = at_attention_run(pass->tape, &attention, &in);
    if (gathered && out.out)
        gather(weights, w, H, Q, K, call->step);
    const at_tensor *output = pass->observer ? at_param(pass->tape, model->params, m->out.w) : NULL;
    if (output && out.out)
        pass->observer->observe(pass->observer->context, &(at_observed){.kind = m->kind,
                                                                        .layer = m->layer,
                                                                        .batch = B,
                                                                        .heads = H,
                                                                        .queries = Q,
                                                                        .keys = K,
                                                                        .first = call->first,
                                                                        .weights = w,
                                                                        .packed = packed,
                                                                        .q = call->q,
                                                                        .k = call->kv,
                                                                        .kv_heads = m->attention.kv_heads,
                                                                        .out = output->value,
                                                                        .out_size = model->settings.hidden});
    if (guides)
        weights->guided = at_one_head(out.weights, pass->guided_head);
    return probed && !in.factor ? mask_heads(pass->tape, probed, out.out, m->size) : out.out;
}

static at_tensor *project(const at_model *model, const at_pass *pass, const at_dense *dense, at_tensor *x)
{
    return at_dense_apply(pass->tape, model->params, dense, x, AT_ACT_NONE);
}

/* rope: rotates the first `heads` heads of the rows by their positions, which count from `first`. The cache holds
 * rotated keys, so each is rotated once. */
static at_tensor *rotate(const at_multihead *m, at_tensor *x, const at_rows *rows, int64_t first, int64_t heads)
{
    return m->rotates ? at_rotate_rows(x, rows->positions, first, heads, m->size) : x;
}

/* [q; k; v] of the rows, whose positions count from `first`: [N,(H+2G)D] */
static at_tensor *make_qkv(const at_model *model, const at_pass *pass, const at_multihead *m, const at_rows *rows,
                           at_tensor *x, int64_t first)
{
    return rotate(m, project(model, pass, &m->in, x), rows, first, m->attention.heads + m->attention.kv_heads);
}

static at_tensor *make_q(const at_model *model, const at_pass *pass, const at_multihead *m, const at_rows *rows,
                         at_tensor *x, int64_t first)
{
    return rotate(m, project(model, pass, &m->in, x), rows, first, m->attention.heads);
}

at_tensor *at_cross_keys(const at_model *model, const at_pass *pass, const at_multihead *m, const at_rows *source,
                         at_tensor *R)
{
    return rotate(m, project(model, pass, &m->keys, R), source, 0, m->attention.kv_heads);
}

at_tensor *at_self_attention(const at_model *model, const at_pass *pass, const at_multihead *m, const at_rows *rows,
                             at_tensor *x)
{
    at_tensor *qkv = make_qkv(model, pass, m, rows, x, 0);
    at_packed packed = {.batch = rows->batch,
                        .query_at = rows->at,
                        .query_count = rows->count,
                        .key_at = rows->at,
                        .key_count = rows->count,
                        .k_column = m->attention.heads * m->size,
                        .v_column = (m->attention.heads + m->attention.kv_heads) * m->size};
    return project(model, pass, &m->out, attend(model, pass, m, &(attend_call){.q = qkv, .kv = qkv, .packed = packed}));
}

at_tensor *at_cross_attention(const at_model *model, const at_pass *pass, const at_multihead *m, const at_rows *rows,
                              at_tensor *x, const at_rows *source, at_tensor *kv, at_cross_weights *weights)
{
    at_packed packed = {.batch = rows->batch,
                        .query_at = rows->at,
                        .query_count = rows->count,
                        .key_at = source->at,
                        .key_count = source->count,
                        .v_column = m->attention.kv_heads * m->size};
    at_tensor *q = make_q(model, pass, m, rows, x, 0);
    at_tensor *c = attend(model, pass, m, &(attend_call){.q = q, .kv = kv, .packed = packed, .weights = weights});
    weights->layer++;
    return project(model, pass, &m->out, c);
}

/* ---- With a cache, a step at a time --------------------------------------------------------------------------- */

/* Rows t B .. (t + 1) B - 1 of x [n B,width]. */
static at_tensor *step_of(at_tensor *x, int64_t t, int64_t n)
{
    if (!x || n == 1)
        return x;
    const int64_t B = x->shape.dim[0] / n;
    return at_slice(x, 0, t * B, (t + 1) * B);
}

static at_tensor *join(at_tensor *const *step, int64_t n)
{
    return n == 1 ? step[0] : at_concat(step, (int)n, 0);
}

/* Copies keys and values of the rows to their slots in the cache. */
static void store_keys(const at_cache *cache, const at_multihead *m, const at_tensor *qkv, int64_t first, int64_t n,
                       int64_t column)
{
    const int64_t B = at_cache_rows(cache), width = qkv->shape.dim[1], keys = m->attention.heads * m->size;
    for (int64_t t = 0; t < n; t++)
        for (int64_t b = 0; b < B; b++)
            memcpy(at_cache_slot(cache, b, first + t) + column, qkv->value + (t * B + b) * width + keys,
                   (size_t)at_multihead_cached(m) * sizeof(at_real));
}

at_tensor *at_self_attention_cached(const at_model *model, const at_pass *pass, const at_multihead *m,
                                    const at_rows *rows, at_tensor *x, int64_t first, int64_t column)
{
    const int64_t n = rows->longest;
    at_tensor *qkv = make_qkv(model, pass, m, rows, x, first), **out = at_step_array(pass, n);
    if (!qkv || !out)
        return NULL;
    store_keys(pass->cache, m, qkv, first, n, column);
    for (int64_t t = 0; t < n; t++) {
        at_packed packed = {.k_column = column, .v_column = column + m->attention.kv_heads * m->size};
        if (!at_cache_pack_steps(pass->cache, pass->tape, first + t + 1, &packed))
            return NULL;
        const attend_call call = {.q = step_of(qkv, t, n), .packed = packed, .first = first + t};
        out[t] = attend(model, pass, m, &call);
    }
    return project(model, pass, &m->out, at_tape_ok(pass->tape) ? join(out, n) : NULL);
}

at_tensor *at_cross_attention_cached(const at_model *model, const at_pass *pass, const at_multihead *m,
                                     const at_rows *rows, at_tensor *x, int64_t first, int layer,
                                     at_cross_weights *weights)
{
    const int64_t n = rows->longest;
    at_tensor *q = make_q(model, pass, m, rows, x, first), **out = at_step_array(pass, n);
    for (int64_t t = 0; t < n && q && out; t++) {
        at_packed packed = {.v_column = m->attention.kv_heads * m->size};
        at_tensor *kv = at_cache_pack_source(pass->cache, pass->tape, layer, &packed);
        if (!kv)
            return NULL;
        const attend_call call = {
            .q = step_of(q, t, n), .kv = kv, .packed = packed, .first = first + t, .weights = weights, .step = t};
        out[t] = attend(model, pass, m, &call);
    }
    weights->layer++;
    return project(model, pass, &m->out, q && out && at_tape_ok(pass->tape) ? join(out, n) : NULL);
}
