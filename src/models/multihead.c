/* Attention with its projections, over rows without padding or over a cache. One operator does the looking; here is
 * only where its operands lie. */
#include <stdio.h>
#include <string.h>

#include "models/transformer_internal.h"
#include "tape/block.h"
#include "tape/ops.h"

/* Which settings each use of attention reads. */
static const char *own_words(const at_model_settings *s, at_use use)
{
    return use == AT_USE_ENCODER   ? s->encoder_attention
           : use == AT_USE_DECODER ? s->decoder_attention
                                   : s->cross_attention;
}

/* "scaled,sliding:8,shaw:16": each word belongs to the axis that has a choice of this name. */
static bool take_words(const char *words, at_settings *names, char room[][32], at_error *error)
{
    const char **slot[] = {&names->score, &names->normaliser, &names->window, &names->position};
    int used = 0;
    for (const char *at = words; *at; at += strcspn(at, ","), at += *at == ',') {
        const size_t length = strcspn(at, ","), name = strcspn(at, ",:");
        const int axis = at_axis_of(at, name);
        if (axis < 0 || length >= 32 || used == AT_AXES)
            return at_fail(error, AT_FAILED,
                           "'%.*s' in '%s' is no score, normaliser, window or position; one word of each may stand "
                           "there, with commas between, as in 'scaled,sliding:8,shaw:16'",
                           (int)length, at, words);
        snprintf(room[used], 32, "%.*s", (int)length, at);
        *slot[axis] = room[used++];
    }
    return true;
}

static bool parse(const at_model *model, at_use use, at_attention *attention, at_error *error)
{
    const at_model_settings *s = &model->settings;
    char room[AT_AXES][32];
    at_settings names = {.score = s->score,
                         .normaliser = s->normaliser,
                         .window = s->window,
                         .position = use == AT_USE_CROSS || model->added != AT_ADDED_NONE ? "none" : s->position,
                         .heads = (int)s->heads,
                         .kv_heads = (int)(s->kv_heads ? s->kv_heads : s->heads)};
    if (!take_words(own_words(s, use), &names, room, error) || !at_attention_parse(&names, attention, error))
        return false;
    if (at_attention_samples(attention))
        return at_fail(error, AT_FAILED,
                       "model '%s' cannot use the normaliser 'hard': its layers would draw thousands of times a "
                       "sentence, and REINFORCE learns from one draw a word; 'sparsemax' is sparse and learns",
                       s->model);
    if (at_attention_predicts(attention) && use == AT_USE_DECODER)
        return at_fail(error, AT_FAILED,
                       "the decoder's self-attention cannot use the window 'local-p': its centre is a share of the "
                       "words, and a decoder does not know how many there will be; 'sliding' looks back a fixed way");
    attention->causal = use == AT_USE_DECODER;
    return true;
}

at_multihead at_multihead_declare(at_model *model, const char *name, at_use use, at_error *error)
{
    at_multihead m = {0};
    const int64_t d = model->settings.hidden;
    char full[100];
    if (!parse(model, use, &m.attention, error))
        return m;
    const int64_t H = m.attention.heads, G = m.attention.kv_heads;
    if (d % H) {
        at_fail(error, AT_FAILED, "`heads` is %lld and must divide `hidden`, which is %lld", (long long)H,
                (long long)d);
        return m;
    }
    m.size = d / H;
    if (at_attention_rotates(&m.attention) && m.size % 2) {
        at_fail(error, AT_FAILED,
                "position 'rope' turns pairs of numbers, so the head size must be even, and `hidden` %lld over `heads` "
                "%lld makes it %lld",
                (long long)d, (long long)H, (long long)m.size);
        return m;
    }
    m.turns = at_attention_rotates(&m.attention);
    if (m.turns)
        at_attention_drop_position(&m.attention);
    const int64_t keys = 2 * G * m.size;
    snprintf(full, sizeof full, "%s.%s", name, use == AT_USE_CROSS ? "Q" : "QKV");
    m.in = at_dense_declare(model->params, full, d, use == AT_USE_CROSS ? d : d + keys, true, error);
    snprintf(full, sizeof full, "%s.KV", name);
    if (use == AT_USE_CROSS)
        m.memory = at_dense_declare(model->params, full, d, keys, true, error);
    snprintf(full, sizeof full, "%s.O", name);
    m.out = at_dense_declare(model->params, full, d, d, true, error);
    at_look_declare_for(model, &m.attention, &m.look, name, d, d, false, error);
    return m;
}

int64_t at_multihead_cached(const at_multihead *m)
{
    return 2 * m->attention.kv_heads * m->size;
}

/* ---- Weights on their way out --------------------------------------------------------------------------------- */

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

/* ---- Looking -------------------------------------------------------------------------------------------------- */

static int64_t largest(const int64_t *x, int64_t count)
{
    int64_t most = 0;
    for (int64_t i = 0; i < count; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

/* Packed operands through the operator. `weights` NULL: nobody asks for them. */
static at_tensor *look(const at_model *model, const at_pass *pass, const at_multihead *m, at_tensor *q, at_tensor *kv,
                       at_packed packed, int64_t start, at_cross_weights *weights, int64_t from)
{
    const int64_t H = m->attention.heads, Q = largest(packed.query_count, packed.batch),
                  K = largest(packed.key_count, packed.batch);
    at_packed *kept = at_keep(pass->tape, &packed, sizeof packed); /* the way back looks at it again */
    at_real *w =
        weights && is_wanted(weights) ? at_room(pass->tape, (size_t)(packed.batch * H * Q * K) * sizeof *w) : NULL;
    if (!kept || !q || (weights && is_wanted(weights) && !w))
        return NULL;
    kept->size = kept->value_size = m->size;
    at_attention_in in = {.query = q,
                          .key = kv,
                          .value = kv,
                          .packed = kept,
                          .query_start = start,
                          .drop = at_drop_of(model, pass),
                          .asked = &(at_asked){.weights = w}};
    at_look_params(pass->tape, model->params, &m->look, &in);
    at_attention attention = m->attention;
    /* Of the layer that is guided the weights need a way back, which the plain path has. */
    const bool guides = weights && pass->guided_layer == weights->layer + 1;
    attention.plain = attention.plain || guides;
    at_attention_out out = at_attention_run(pass->tape, &attention, &in);
    if (w && out.out)
        gather(weights, w, H, Q, K, from);
    if (guides)
        weights->guided = at_one_head(out.weights, pass->guided_head);
    return out.out;
}

static at_tensor *project(const at_model *model, const at_pass *pass, const at_dense *dense, at_tensor *x)
{
    return at_dense_apply(pass->tape, model->params, dense, x, AT_ACT_NONE);
}

/* rope: the first `heads` heads of the rows turn by their places, which count from `first`. A cache then holds turned
 * keys, and none is turned twice. */
static at_tensor *turn(const at_multihead *m, at_tensor *x, const at_rows *rows, int64_t first, int64_t heads)
{
    return m->turns ? at_rotate_rows(x, rows->places, first, heads, m->size) : x;
}

/* [q; k; v] of the rows' words, the first of which is word `first`: [N,(H+2G)D] */
static at_tensor *make_qkv(const at_model *model, const at_pass *pass, const at_multihead *m, const at_rows *rows,
                           at_tensor *x, int64_t first)
{
    return turn(m, project(model, pass, &m->in, x), rows, first, m->attention.heads + m->attention.kv_heads);
}

static at_tensor *make_q(const at_model *model, const at_pass *pass, const at_multihead *m, const at_rows *rows,
                         at_tensor *x, int64_t first)
{
    return turn(m, project(model, pass, &m->in, x), rows, first, m->attention.heads);
}

at_tensor *at_cross_memory(const at_model *model, const at_pass *pass, const at_multihead *m, const at_rows *source,
                           at_tensor *R)
{
    return turn(m, project(model, pass, &m->memory, R), source, 0, m->attention.kv_heads);
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
    return project(model, pass, &m->out, look(model, pass, m, qkv, qkv, packed, 0, NULL, 0));
}

at_tensor *at_cross_attention(const at_model *model, const at_pass *pass, const at_multihead *m, const at_rows *rows,
                              at_tensor *x, const at_rows *source, at_tensor *memory, at_cross_weights *weights)
{
    at_packed packed = {.batch = rows->batch,
                        .query_at = rows->at,
                        .query_count = rows->count,
                        .key_at = source->at,
                        .key_count = source->count,
                        .v_column = m->attention.kv_heads * m->size};
    at_tensor *c = look(model, pass, m, make_q(model, pass, m, rows, x, 0), memory, packed, 0, weights, 0);
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

/* The keys and values of x's rows go to their words' places in the cache. */
static void remember(const at_cache *cache, const at_multihead *m, const at_tensor *qkv, int64_t first, int64_t n,
                     int64_t column)
{
    const int64_t B = at_cache_rows(cache), width = qkv->shape.dim[1], keys = m->attention.heads * m->size;
    for (int64_t t = 0; t < n; t++)
        for (int64_t b = 0; b < B; b++)
            memcpy(at_cache_word(cache, b, first + t) + column, qkv->value + (t * B + b) * width + keys,
                   (size_t)at_multihead_cached(m) * sizeof(at_real));
}

at_tensor *at_self_attention_cached(const at_model *model, const at_pass *pass, const at_multihead *m,
                                    const at_rows *rows, at_tensor *x, int64_t first, int64_t column)
{
    const int64_t n = rows->longest;
    at_tensor *qkv = make_qkv(model, pass, m, rows, x, first), **out = at_steps_room(pass, n);
    if (!qkv || !out)
        return NULL;
    remember(pass->cache, m, qkv, first, n, column);
    for (int64_t t = 0; t < n; t++) {
        at_packed packed = {.k_column = column, .v_column = column + m->attention.kv_heads * m->size};
        if (!at_cache_look(pass->cache, pass->tape, first + t + 1, &packed))
            return NULL;
        out[t] = look(model, pass, m, step_of(qkv, t, n), NULL, packed, first + t, NULL, 0);
    }
    return project(model, pass, &m->out, at_tape_ok(pass->tape) ? join(out, n) : NULL);
}

at_tensor *at_cross_attention_cached(const at_model *model, const at_pass *pass, const at_multihead *m,
                                     const at_rows *rows, at_tensor *x, int64_t first, int layer,
                                     at_cross_weights *weights)
{
    const int64_t n = rows->longest;
    at_tensor *q = make_q(model, pass, m, rows, x, first), **out = at_steps_room(pass, n);
    for (int64_t t = 0; t < n && q && out; t++) {
        at_packed packed = {.v_column = m->attention.kv_heads * m->size};
        at_tensor *kv = at_cache_look_source(pass->cache, pass->tape, layer, &packed);
        if (!kv)
            return NULL;
        out[t] = look(model, pass, m, step_of(q, t, n), kv, packed, first + t, weights, t);
    }
    weights->layer++;
    return project(model, pass, &m->out, q && out && at_tape_ok(pass->tape) ? join(out, n) : NULL);
}
