/* Vaswani et al. 2017: the Transformer.
 *
 *     x = E y sqrt(d) + P                                    embeddings and positions
 *     encoder layer   self-attention, FFN                    N times
 *     decoder layer   causal self-attention, cross-attention, FFN
 *     MultiHead(Q,K,V) = [head_1; ...; head_h] W_O           head_i = attention(Q W_Qi, K W_Ki, V W_Vi)
 *     FFN(x) = act(x W_1 + b_1) W_2 + b_2
 *     each sub-layer f   post-norm: x = LN(x + f(x))         pre-norm: x = x + f(LN(x))
 *     p(y_t) = softmax(x E^T)                                tied to the target's embeddings, or W_o x
 *
 * A batch is rows without padding, [N,d], its sentences one after another; at_packed holds the rows of each one.
 * `transformer-lm` is the decoder without cross-attention. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/transformer_internal.h"
#include "tape/block.h"

enum { MOST_LAYERS = 32, MOST_NORMS = 3 * MOST_LAYERS };

/* ---- Parameters ----------------------------------------------------------------------------------------------- */

typedef struct layer {
    at_multihead self, cross;
    at_ffn ffn;
} layer;

/* A stack of layers and their norms: norm s belongs to sub-layer s. */
typedef struct side {
    int layers, norms;
    layer layer[MOST_LAYERS];
    at_norm norm[MOST_NORMS], final;
    bool has_final;
} side;

typedef struct transformer {
    int source_embedding, target_embedding; /* E of either side */
    int source_positions, target_positions; /* learned P of either side; -1: none */
    int output, output_bias;                /* W_o and the bias; -1: tied, or none */
    side encoder, decoder;
    bool has_sinusoids;
    at_real sinusoids[]; /* [AT_TABLE_POSITIONS,d], or none */
} transformer;

static at_ffn_act activation_of(at_activation activation)
{
    return activation == AT_GELU_UNITS ? AT_FFN_GELU : activation == AT_SWISH_UNITS ? AT_FFN_SWISH : AT_FFN_RELU;
}

static bool settings_fit(const at_model *model, at_error *error)
{
    const at_model_settings *s = &model->settings;
    if (model->added == AT_ADDED_SINUSOIDAL && s->hidden % 2)
        return at_fail(error, AT_USAGE, "`hidden` is %lld and must be even for `position` sinusoidal",
                       (long long)s->hidden);
    if (s->share_embeddings && s->source_size != s->target_size)
        return at_fail(error, AT_USAGE,
                       "`share-embeddings` needs one vocabulary for both sides, and they have %lld and %lld entries; "
                       "`joint-vocab` makes one",
                       (long long)s->source_size, (long long)s->target_size);
    return true;
}

static at_real keep_of(const at_model *model)
{
    return (at_real)(1 - model->settings.dropout);
}

static bool is_pre(const at_model *model)
{
    return model->settings.norm == AT_PRE_NORM;
}

static bool declare_stack(at_model *model, side *s, const char *which, int layers, bool crosses, at_error *error)
{
    const at_model_settings *m = &model->settings;
    char name[80];
    const bool decodes = strcmp(which, "decoder") == 0;
    s->layers = layers;
    for (int l = 0; l < layers && error->code == AT_OK; l++) {
        layer *at = &s->layer[l];
        const int sublayers = crosses ? 3 : 2;
        at->self = at_multihead_declare(model, decodes ? AT_DECODER_ATTENTION : AT_ENCODER_ATTENTION, l + 1, error);
        if (crosses)
            at->cross = at_multihead_declare(model, AT_CROSS_ATTENTION, l + 1, error);
        snprintf(name, sizeof name, "%s.%d.ffn", which, l + 1);
        at->ffn = at_ffn_declare(model->params, name, m->hidden, m->ffn, activation_of(m->activation), error);
        for (int i = 0; i < sublayers; i++) {
            snprintf(name, sizeof name, "%s.%d.norm%d", which, l + 1, i + 1);
            s->norm[s->norms++] = at_norm_declare(model->params, name, m->hidden, m->norm_epsilon, error);
        }
    }
    s->has_final = m->final_norm == AT_FINAL_AUTO ? is_pre(model) : m->final_norm == AT_FINAL_TRUE;
    snprintf(name, sizeof name, "%s.norm", which);
    if (s->has_final)
        s->final = at_norm_declare(model->params, name, m->hidden, m->norm_epsilon, error);
    return error->code == AT_OK;
}

static bool declare(at_model *model, at_error *error)
{
    const at_model_settings *s = &model->settings;
    const bool sinusoidal = model->added == AT_ADDED_SINUSOIDAL;
    const size_t table = sinusoidal ? (size_t)(AT_TABLE_POSITIONS * s->hidden) * sizeof(at_real) : 0;
    transformer *m = at_model_extra(model, sizeof *m + table, error);
    at_params *p = model->params;
    const int64_t d = s->hidden;
    const bool has_source = model->kind->has_source, learned = model->added == AT_ADDED_LEARNED;
    if (!m || !settings_fit(model, error))
        return false;
    m->has_sinusoids = sinusoidal;
    if (sinusoidal)
        at_sinusoids(s, (int64_t)s->first_position, AT_TABLE_POSITIONS, m->sinusoids);
    m->source_embedding = m->source_positions = m->target_positions = m->output = m->output_bias = -1;
    m->target_embedding = at_params_add_matrix(p, "target.E", AT_SHAPE(s->target_size, d), error);
    if (learned)
        m->target_positions = at_params_add(p, "target.P", AT_SHAPE(s->positions, d), error);
    if (has_source) {
        m->source_embedding = s->share_embeddings
                                  ? m->target_embedding
                                  : at_params_add_matrix(p, "source.E", AT_SHAPE(s->source_size, d), error);
        if (learned)
            m->source_positions = at_params_add(p, "source.P", AT_SHAPE(s->positions, d), error);
        if (!declare_stack(model, &m->encoder, "encoder", (int)s->layers, false, error))
            return false;
    }
    if (!s->tie)
        m->output = at_params_add_matrix(p, "output.W", AT_SHAPE(s->target_size, d), error);
    if (s->output_bias)
        m->output_bias = at_params_add(p, "output.b", AT_SHAPE(s->target_size), error);
    const int64_t layers = s->decoder_layers ? s->decoder_layers : s->layers;
    return declare_stack(model, &m->decoder, "decoder", (int)layers, has_source, error);
}

const at_real *at_sinusoid_table(const at_model *model)
{
    const transformer *m = model->extra;
    return m->has_sinusoids ? m->sinusoids : NULL;
}

/* Embeddings are normal with deviation d^-1/2, so that times sqrt(d) it is 1; learned positions have a tenth of
 * that. */
static void initialise(at_model *model, uint64_t seed)
{
    const transformer *m = model->extra;
    const int embeddings[] = {m->source_embedding, m->target_embedding},
              positions[] = {m->source_positions, m->target_positions};
    const double deviation = 1 / sqrt((double)model->settings.hidden);
    for (int i = 0; i < 2; i++) {
        if (embeddings[i] >= 0)
            at_init_normal(model->params, embeddings[i], deviation, seed);
        if (positions[i] >= 0)
            at_init_normal(model->params, positions[i], deviation / 10, seed);
    }
}

/* ---- Sub-layers ----------------------------------------------------------------------------------------------- */

/* The residual stream through a stack: sub-layers add to `x`, and the next one reads `in`. */
typedef struct stream {
    const at_model *model;
    const at_pass *pass;
    const side *stack;
    int sublayer;
    at_tensor *x, *in; /* [N,d] */
} stream;

static at_tensor *norm(const stream *s, const at_norm *n, at_tensor *x)
{
    return at_norm_apply(s->pass->tape, s->model->params, n, x);
}

static stream enter(const at_model *model, const at_pass *pass, const side *stack, at_tensor *x)
{
    stream s = {.model = model, .pass = pass, .stack = stack, .x = x, .in = x};
    if (is_pre(model))
        s.in = norm(&s, &stack->norm[0], x);
    return s;
}

/* post-norm: x = LN(x + y).  pre-norm: x = x + y, and the next sub-layer reads its own LN(x). */
static void add(stream *s, at_tensor *y)
{
    const side *stack = s->stack;
    const at_real keep = s->pass->rng ? keep_of(s->model) : 1;
    const int number = s->sublayer++;
    const bool pre = is_pre(s->model), last = s->sublayer == stack->norms;
    if (pre && last && !stack->has_final) {
        s->x = s->in = at_add(s->x, s->pass->rng ? at_dropout(y, keep, s->pass->rng) : y);
        return;
    }
    const at_norm *n = !pre ? &stack->norm[number] : last ? &stack->final : &stack->norm[number + 1];
    at_tensor *sum = NULL;
    s->in = at_norm_residual(s->pass->tape, s->model->params, n, s->x, y, keep, s->pass->rng, pre ? &sum : NULL);
    s->x = pre ? sum : s->in;
}

static void feed_forward(stream *s, const layer *l)
{
    const at_real keep = s->pass->rng ? (at_real)(1 - s->model->settings.ffn_dropout) : 1;
    add(s, at_ffn_apply(s->pass->tape, s->model->params, &l->ffn, s->in, keep, s->pass->rng));
}

static at_tensor *leave(const stream *s)
{
    return !is_pre(s->model) && s->stack->has_final ? norm(s, &s->stack->final, s->in) : s->in;
}

/* ---- The two sides -------------------------------------------------------------------------------------------- */

/* x = E y sqrt(d) + P for the rows: [N,d] */
static at_tensor *embed(const at_model *model, const at_pass *pass, int embedding, int positions, const at_rows *rows,
                        int64_t first)
{
    at_tensor *x = at_embedding(at_weights(pass->tape, model->params, embedding), rows->ids, AT_SHAPE(rows->total));
    if (model->settings.scale_embedding)
        x = at_scale(x, (at_real)sqrt((double)model->settings.hidden));
    at_tensor *table = at_position_vectors(model, pass, positions, first, rows->longest); /* [longest,d] or NULL */
    if (table)
        x = at_add(x, at_embedding(table, rows->positions, AT_SHAPE(rows->total)));
    return at_drop(model, pass, x);
}

/* The features R of a source: [N,d], the rows of the sentences one after another. */
static at_tensor *features(const at_model *model, const at_pass *pass, const at_source *source, at_rows *rows)
{
    const transformer *m = model->extra;
    if (!at_rows_of(pass, source->ids, source->rows, source->length, source->lengths, rows))
        return NULL;
    stream s = enter(model, pass, &m->encoder, embed(model, pass, m->source_embedding, m->source_positions, rows, 0));
    for (int l = 0; l < m->encoder.layers && at_tape_ok(pass->tape); l++) {
        add(&s, at_self_attention(model, pass, &m->encoder.layer[l].self, rows, s.in));
        feed_forward(&s, &m->encoder.layer[l]);
    }
    return leave(&s);
}

/* The keys and values of the source for each decoder layer [N,2GD], computed once for all target tokens. With a cache
 * they are stored there, and no parts are returned. */
static at_parts encode(const at_model *model, const at_pass *pass, const at_source *source)
{
    const transformer *m = model->extra;
    at_parts encoded = {0};
    at_rows rows;
    at_tensor *kv[MOST_LAYERS], *R = model->kind->has_source ? features(model, pass, source, &rows) : NULL;
    const int layers = R ? m->decoder.layers : 0;
    for (int l = 0; l < layers; l++)
        kv[l] = at_cross_keys(model, pass, &m->decoder.layer[l].cross, &rows, R);
    if (pass->cache && at_tape_ok(pass->tape)) {
        at_cache_begin(pass->cache, source->rows, layers, kv, layers ? rows.at : NULL, layers ? rows.count : NULL,
                       at_tape_error(pass->tape));
    } else {
        for (int l = 0; l < layers; l++)
            encoded.part[encoded.count++] = kv[l];
    }
    return encoded;
}

static at_parts start(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded)
{
    (void)model, (void)encoded;
    return (at_parts){.count = 1, .part = {at_state_position(pass, source->rows, 0)}};
}

/* The decoder's layers over whole targets. */
static at_tensor *decode_whole(const at_model *model, const at_pass *pass, const at_source *source,
                               const at_parts *encoded, const at_rows *rows, at_cross_weights *weights)
{
    const transformer *m = model->extra;
    at_rows source_rows;
    if (model->kind->has_source && !at_rows_of(pass, NULL, source->rows, source->length, source->lengths, &source_rows))
        return NULL;
    stream s = enter(model, pass, &m->decoder, embed(model, pass, m->target_embedding, m->target_positions, rows, 0));
    for (int l = 0; l < m->decoder.layers && at_tape_ok(pass->tape); l++) {
        const layer *at = &m->decoder.layer[l];
        add(&s, at_self_attention(model, pass, &at->self, rows, s.in));
        if (model->kind->has_source)
            add(&s, at_cross_attention(model, pass, &at->cross, rows, s.in, &source_rows, encoded->part[l], weights));
        feed_forward(&s, at);
    }
    return leave(&s);
}

/* The same for the next tokens of every row, with the previous ones in the cache. Rows [n B,d], time first. */
static at_tensor *decode_cached(const at_model *model, const at_pass *pass, const at_rows *rows,
                                at_cross_weights *weights)
{
    const transformer *m = model->extra;
    at_cache *cache = pass->cache;
    const int64_t first = at_cache_steps(cache), width = at_multihead_cached(&m->decoder.layer[0].self);
    if (!at_cache_extend(cache, rows->longest, m->decoder.layers * width, at_tape_error(pass->tape)))
        return NULL;
    stream s =
        enter(model, pass, &m->decoder, embed(model, pass, m->target_embedding, m->target_positions, rows, first));
    for (int l = 0; l < m->decoder.layers && at_tape_ok(pass->tape); l++) {
        const layer *at = &m->decoder.layer[l];
        add(&s, at_self_attention_cached(model, pass, &at->self, rows, s.in, first, l * width));
        if (model->kind->has_source)
            add(&s, at_cross_attention_cached(model, pass, &at->cross, rows, s.in, first, l, weights));
        feed_forward(&s, at);
    }
    return leave(&s);
}

static at_tensor *output(const at_model *model, const at_pass *pass, at_tensor *x)
{
    const transformer *m = model->extra;
    at_tensor *w = at_weights(pass->tape, model->params, m->output < 0 ? m->target_embedding : m->output);
    at_tensor *b = m->output_bias < 0 ? NULL : at_param(pass->tape, model->params, m->output_bias);
    return at_linear(x, w, b, AT_ACT_NONE); /* [N,V] */
}

static at_decoded decode(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded,
                         at_parts *state, const int32_t *ids, int64_t n)
{
    const transformer *m = model->extra;
    at_tape *tape = pass->tape;
    const int64_t B = source->rows, position = at_state_position_of(state->part[0]);
    at_rows rows;
    at_cross_weights weights = {0};
    if (model->kind->has_source)
        weights = at_cross_weights_begin(pass, source, n, m->decoder.layers);
    if (!pass->cache && position > 0) {
        at_fail(at_tape_error(tape), AT_UNSUPPORTED, "model '%s' continues from target position %lld only with a cache",
                model->kind->name, (long long)position);
        return (at_decoded){0};
    }
    if (!(pass->cache ? at_rows_of_steps(pass, ids, B, n, &rows) : at_rows_of(pass, ids, B, n, pass->lengths, &rows)))
        return (at_decoded){0};
    at_tensor *x = pass->cache ? decode_cached(model, pass, &rows, &weights)
                               : decode_whole(model, pass, source, encoded, &rows, &weights);
    at_tensor *logits = output(model, pass, x);
    if (!logits)
        return (at_decoded){0};
    state->part[0] = at_state_position(pass, B, position + n);
    const int64_t V = logits->shape.dim[1];
    const bool packed = !pass->cache && rows.total < B * n;
    if (pass->cache && n > 1)
        logits = at_rows_first(at_reshape(logits, AT_SHAPE(n, B, V)));
    else if (!packed)
        logits = at_reshape(logits, AT_SHAPE(B, n, V));
    return (at_decoded){.logits = logits, .packed = packed, .weights = weights.mean, .guided = weights.guided};
}

static at_tensor *encode_only(const at_model *model, const at_pass *pass, const at_source *source)
{
    at_rows rows;
    return features(model, pass, source, &rows);
}

#define FIELDS                                                                                                         \
    "layers hidden ffn heads kv-heads attention dropout attention-dropout ffn-dropout activation norm norm-epsilon "   \
    "final-norm score normaliser "                                                                                     \
    "window position positions position-layout position-denominator first-position scale-embedding tie output-bias "
/* Layer norm first, and a warm-up: without either, a few thousand pairs teach it no more than how frequent words are. */
#define DEFAULTS                                                                                                       \
    "layers=3 score=scaled heads=4 position=sinusoidal tie=true scale-embedding=true attention=64 dropout=0.1 "        \
    "norm=pre schedule=inverse-sqrt learning-rate=0.002 warmup=200 label-smoothing=0.1"

const at_model_kind at_transformer = {
    .name = "transformer",
    .formula = "x = LN(x + MultiHead(x,·,·)), x = LN(x + FFN(x)), softmax(x Eᵀ), encoder and decoder of N layers",
    .paper = "Vaswani et al. 2017",
    .fields = FIELDS "decoder-layers share-embeddings encoder-attention decoder-attention cross-attention guided-head",
    .defaults = DEFAULTS,
    .has_source = true,
    .has_attention = true,
    .has_cross_layers = true,
    .has_multihead = true,
    .adds_positions = true,
    .most_layers = MOST_LAYERS,
    .declare = declare,
    .initialise = initialise,
    .encode = encode,
    .start = start,
    .decode = decode,
    .features = encode_only,
};

const at_model_kind at_transformer_lm = {
    .name = "transformer-lm",
    .formula = "p(y) = Π_t p(y_t | y_<t): the transformer's decoder alone, without a source",
    .paper = "Liu et al. 2018",
    .fields = FIELDS "decoder-attention",
    .defaults = DEFAULTS,
    .has_attention = true,
    .has_multihead = true,
    .adds_positions = true,
    .most_layers = MOST_LAYERS,
    .declare = declare,
    .initialise = initialise,
    .encode = encode,
    .start = start,
    .decode = decode,
};
