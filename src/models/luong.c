/* Luong, Pham, Manning 2015: the decoder attends to the source after its step.
 *
 *     h_s                          the top layer of a stacked encoder; the decoder starts from its last states
 *     h_t = cell(W E y_{t-1}, h_{t-1})                 stacked; with input feeding the first layer also reads h~_{t-1}
 *     c_t = sum_s a_t(s) h_s       a_t by dot, general or additive (concat), over all of the source, local-m or local-p
 *     h~_t = tanh(W_c [c_t; h_t])
 *     p(y_t) = softmax(W_s h~_t)
 *
 * Exact hard attention: p(y_t) = sum_s a_t(s) softmax(W_s tanh(W_c [h_s; h_t])); input feeding reads h~_t as above. */
#include "models/kinds.h"

typedef struct luong {
    int source_embedding, target_embedding; /* E of either side */
    at_stack encoder, decoder;
    at_dense feed; /* F h~_{t-1}, with input feeding */
    at_dense W_c, W_s, gate;
    at_attention_params attention;
} luong;

static bool declare(at_model *model, at_error *error)
{
    luong *m = at_model_extra(model, sizeof *m, error);
    if (!m)
        return false;
    const at_model_settings *s = &model->settings;
    const int64_t E = s->embedding, H = s->hidden;
    const int layers = (int)s->layers;
    at_params *p = model->params;
    at_cell_kind cell = at_model_cell(model);
    m->source_embedding = at_params_add_matrix(p, "source.E", AT_SHAPE(s->source_size, E), error);
    m->encoder = at_stack_declare(p, "encoder", cell, layers, E, H, s->bidirectional, error);
    m->target_embedding = at_params_add_matrix(p, "target.E", AT_SHAPE(s->target_size, E), error);
    m->decoder = at_stack_declare(p, "decoder", cell, layers, E, H, false, error);
    if (s->input_feeding)
        m->feed = at_dense_declare(p, "decoder.feed", H, at_cell_width(&m->decoder.ahead[0]), false, error);
    m->W_c = at_dense_declare(p, "output.W_c", 2 * H, H, false, error);
    m->W_s = at_dense_declare(p, "output.W_s", H, s->target_size, true, error);
    return at_attention_params_declare(model, &m->attention, "attention", H, H, false, error) &&
           at_coverage_declare(model, &m->attention, "attention", false, error) &&
           at_gate_declare(model, &m->gate, "attention.gate", H, error);
}

static at_real keep_of(const at_model *model)
{
    return (at_real)(1 - model->settings.dropout);
}

static at_parts encode(const at_model *model, const at_pass *pass, const at_source *source)
{
    const luong *m = model->extra;
    at_hidden last[AT_MOST_LAYERS];
    at_tensor *x = at_embedding(at_weights(pass->tape, model->params, m->source_embedding), source->ids,
                                AT_SHAPE(source->rows, source->length)); /* [B,S,E] */
    at_tensor *h = at_stack_run(
        pass->tape, model->params, &m->encoder,
        &(at_stack_input){
            .x = at_drop(model, pass, x), .lengths = source->lengths, .keep = keep_of(model), .rng = pass->rng},
        last); /* [B,S,H] */
    at_parts encoded = {.count = 1, .part = {h}};
    at_parts_add(&encoded, last, m->encoder.layers);
    if (at_is_exact(model)) /* W_c [h_s; 0] [B,S,H] */
        encoded.part[encoded.count++] = at_dense_columns(pass, model, &m->W_c, 0, model->settings.hidden, h);
    return encoded;
}

static at_tensor *features(const at_model *model, const at_pass *pass, const at_source *source)
{
    return encode(model, pass, source).part[0];
}

/* The state: its position, h~ with input feeding, then the layers; that of coverage is added to it. */
static at_parts state_of(const at_model *model, at_tensor *position, at_tensor *attentional, const at_hidden *layer)
{
    const luong *m = model->extra;
    at_parts state = {.count = 1, .part = {position}};
    if (model->settings.input_feeding)
        state.part[state.count++] = attentional;
    at_parts_add(&state, layer, m->decoder.layers);
    return state;
}

static at_parts start(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded)
{
    const luong *m = model->extra;
    at_hidden layer[AT_MOST_LAYERS];
    at_parts_take(encoded, 1, &m->decoder.ahead[0], layer, m->decoder.layers);
    at_hidden zeros = at_hidden_zeros(pass->tape, &m->decoder.ahead[0], source->rows);
    at_parts state = state_of(model, at_state_position(pass, source->rows, 0), zeros.h, layer);
    at_coverage_start(model, pass, source, &state);
    return state;
}

/* The context c [B,n,H] of the states h [B,n,H], and h~ = tanh(W_c [c; h]) from it */
static at_tensor *context_of(const at_model *model, at_source_attention *a, const at_parts *encoded, at_tensor *h)
{
    const luong *m = model->extra;
    at_tensor *c = at_source_attention_next(a, h, encoded->part[0], encoded->part[0]);
    return c ? at_gate_apply(model, a->pass, &m->gate, h, c) : NULL;
}

static at_tensor *attend(const at_model *model, at_source_attention *a, const at_parts *encoded, at_tensor *h)
{
    const luong *m = model->extra;
    at_tensor *c = context_of(model, a, encoded, h);
    if (!c)
        return NULL;
    at_tensor *both = at_concat((at_tensor *[]){c, h}, 2, 2);
    return at_dense_apply(a->pass->tape, model->params, &m->W_c, both, AT_ACT_TANH);
}

/* softmax(W_s h~) for h~ [B,n,H]; of exact hard attention, its sum over the source for the states h [B,n,H] */
static at_tensor *logits_of(const at_model *model, const at_source_attention *a, const at_parts *encoded, at_tensor *h)
{
    const luong *m = model->extra;
    const at_pass *pass = a->pass;
    const int64_t H = model->settings.hidden;
    if (!at_is_exact(model))
        return at_dense_apply(pass->tape, model->params, &m->W_s, at_drop(model, pass, h), AT_ACT_NONE);
    const at_marginal marginal = {.step = at_dense_columns(pass, model, &m->W_c, H, 2 * H, h),
                                  .unit = encoded->part[encoded->count - 1],
                                  .gate = at_gate_of(model, pass, &m->gate, h),
                                  .join = AT_MARGINAL_TANH,
                                  .output = &m->W_s,
                                  .drops = true};
    return at_marginal_logits(a, &marginal);
}

/* With input feeding each step needs the previous one. Returns what logits_of takes, all h~ or h [B,n,H]. */
static at_tensor *fed_steps(const at_model *model, at_source_attention *a, const at_parts *encoded, at_tensor *x,
                            at_hidden *layer, at_tensor **attentional)
{
    const luong *m = model->extra;
    const at_pass *pass = a->pass;
    at_tape *tape = pass->tape;
    at_params *p = model->params;
    const int64_t n = x->shape.dim[0], B = x->shape.dim[1], H = model->settings.hidden;
    at_tensor **all = at_step_array(pass, n);
    at_tensor *first = at_cell_input(tape, p, &m->decoder.ahead[0], x); /* [n,B,gates*H] */
    for (int64_t t = 0; t < n && at_tape_ok(tape); t++) {
        at_tensor *fed = at_dense_apply(tape, p, &m->feed, *attentional, AT_ACT_NONE);
        layer[0] = at_cell_step(tape, p, &m->decoder.ahead[0], at_add(at_steps_at(first, t), fed), layer[0]);
        for (int i = 1; i < m->decoder.layers; i++) {
            at_tensor *below = at_drop(model, pass, layer[i - 1].h);
            at_tensor *input = at_cell_input(tape, p, &m->decoder.ahead[i], below);
            layer[i] = at_cell_step(tape, p, &m->decoder.ahead[i], input, layer[i]);
        }
        at_tensor *top = layer[m->decoder.layers - 1].h;
        *attentional = at_reshape(attend(model, a, encoded, at_reshape(top, AT_SHAPE(B, 1, H))), AT_SHAPE(B, H));
        all[t] = at_is_exact(model) ? top : *attentional;
    }
    return at_tape_ok(tape) ? at_rows_first(at_steps_join(all, n)) : NULL;
}

static at_decoded decode(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded,
                         at_parts *state, const int32_t *ids, int64_t n)
{
    const luong *m = model->extra;
    at_tape *tape = pass->tape;
    at_params *p = model->params;
    const bool feeds = model->settings.input_feeding;
    const int64_t B = source->rows;
    at_hidden layer[AT_MOST_LAYERS];
    at_tensor *attentional = feeds ? state->part[1] : NULL, *table = at_weights(tape, p, m->target_embedding);
    at_parts_take(state, feeds ? 2 : 1, &m->decoder.ahead[0], layer, m->decoder.layers);
    at_source_attention attention = at_source_attention_begin(model, pass, source, &m->attention, n, state);
    at_tensor *x = feeds ? at_steps_embed(pass, table, ids, B, n)    /* [n,B,E] */
                         : at_embedding(table, ids, AT_SHAPE(B, n)); /* [B,n,E] */
    x = at_drop(model, pass, x);
    if (!x)
        return (at_decoded){0};
    at_tensor *h; /* h~ [B,n,H]; of exact hard attention h */
    if (feeds) {
        h = fed_steps(model, &attention, encoded, x, layer, &attentional);
    } else {
        at_hidden last[AT_MOST_LAYERS];
        h = at_stack_run(tape, p, &m->decoder,
                         &(at_stack_input){.x = x, .first = layer, .keep = keep_of(model), .rng = pass->rng}, last);
        if (at_is_exact(model))
            context_of(model, &attention, encoded, h); /* for its weights */
        else
            h = attend(model, &attention, encoded, h);
        for (int i = 0; i < m->decoder.layers; i++)
            layer[i] = last[i];
    }
    *state = state_of(model, at_state_position(pass, B, attention.position), attentional, layer);
    at_coverage_keep(&attention, state);
    return at_source_attention_end(&attention, h ? logits_of(model, &attention, encoded, h) : NULL);
}

const at_model_kind at_luong = {
    .name = "luong",
    .formula = "h̃_t = tanh(W_c [c_t; h_t]), softmax(W_s h̃_t), stacked cells, optional input feeding",
    .paper = "Luong, Pham, Manning 2015",
    .fields = "cell reset layers embedding hidden attention dropout attention-dropout score normaliser window position "
              "heads input-feeding "
              "bidirectional hard-training coverage coverage-width gate guided-head",
    .defaults = "cell=lstm score=general",
    .has_source = true,
    .has_attention = true,
    .declare = declare,
    .encode = encode,
    .start = start,
    .decode = decode,
    .features = features,
};
