/* Attention in its shortest form: the plain encoder-decoder, whose output also reads the context.
 *
 *     h_j = cell(x_j, h_{j-1})             x and y are one-hot, so W x is a row of a table
 *     s_0 = h_N,  s_t = cell(y_{t-1}, s_{t-1})
 *     e_tj = s_t^T W_a h_j,  c_t = sum_j a_tj h_j
 *     p(y_t) = softmax(W_o [s_t; c_t] + b)            exact hard attention: sum_j a_tj softmax(W_o [s_t; h_j] + b) */
#include "models/kinds.h"

typedef struct rnn_attention {
    int source_embedding, target_embedding; /* W of either side, a row for each token */
    at_cell encoder, decoder;
    at_dense W_o, gate;
    at_attention_params attention;
} rnn_attention;

static bool declare(at_model *model, at_error *error)
{
    rnn_attention *m = at_model_extra(model, sizeof *m, error);
    if (!m)
        return false;
    const at_model_settings *s = &model->settings;
    at_params *p = model->params;
    m->encoder = at_cell_declare(p, "encoder", at_model_cell(model), 0, s->hidden, error);
    m->decoder = at_cell_declare(p, "decoder", at_model_cell(model), 0, s->hidden, error);
    const int64_t width = at_cell_width(&m->encoder);
    m->source_embedding = at_params_add_matrix(p, "source.E", AT_SHAPE(s->source_size, width), error);
    m->target_embedding = at_params_add_matrix(p, "target.E", AT_SHAPE(s->target_size, width), error);
    m->W_o = at_dense_declare(p, "output", 2 * s->hidden, s->target_size, true, error);
    return at_attention_params_declare(model, &m->attention, "attention", s->hidden, s->hidden, false, error) &&
           at_coverage_declare(model, &m->attention, "attention", false, error) &&
           at_gate_declare(model, &m->gate, "attention.gate", s->hidden, error);
}

static at_parts encode(const at_model *model, const at_pass *pass, const at_source *source)
{
    const rnn_attention *m = model->extra;
    at_hidden last;
    at_tensor *x = at_embedding(at_weights(pass->tape, model->params, m->source_embedding), source->ids,
                                AT_SHAPE(source->rows, source->length)); /* [B,S,gates*H] */
    x = at_cell_input(pass->tape, model->params, &m->encoder, x);
    at_tensor *h =
        at_cell_run(pass->tape, model->params, &m->encoder, &(at_sequence){.x = x, .lengths = source->lengths}, &last);
    const int64_t H = model->settings.hidden;
    h = at_drop(model, pass, h); /* [B,S,H] */
    at_parts encoded = {.count = 1, .part = {h}};
    at_parts_add(&encoded, &last, 1);
    if (at_is_exact(model)) /* the part of the logits that comes from h_j, W_o [0; h_j]: [B,S,V] */
        encoded.part[encoded.count++] = at_dense_columns(pass, model, &m->W_o, H, 2 * H, h);
    return encoded;
}

static at_tensor *features(const at_model *model, const at_pass *pass, const at_source *source)
{
    return encode(model, pass, source).part[0];
}

static at_parts start(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded)
{
    const rnn_attention *m = model->extra;
    at_hidden s;
    at_parts_take(encoded, 1, &m->decoder, &s, 1);
    at_parts state = {.count = 1, .part = {at_state_position(pass, source->rows, 0)}};
    at_parts_add(&state, &s, 1);
    at_coverage_start(model, pass, source, &state);
    return state;
}

/* The part of the logits that comes from the states h [B,n,H]: W_o [h; 0] + b */
static at_tensor *logits_of_state(const at_model *model, const at_pass *pass, at_tensor *h)
{
    const rnn_attention *m = model->extra;
    at_tensor *part = at_dense_columns(pass, model, &m->W_o, 0, model->settings.hidden, h);
    return at_add(part, at_param(pass->tape, model->params, m->W_o.b));
}

static at_decoded decode(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded,
                         at_parts *state, const int32_t *ids, int64_t n)
{
    const rnn_attention *m = model->extra;
    at_tape *tape = pass->tape;
    at_params *p = model->params;
    at_hidden s;
    at_parts_take(state, 1, &m->decoder, &s, 1);
    at_tensor *y =
        at_embedding(at_weights(tape, p, m->target_embedding), ids, AT_SHAPE(source->rows, n)); /* [B,n,gates*H] */
    y = at_cell_input(tape, p, &m->decoder, y);
    at_tensor *h = at_cell_run(tape, p, &m->decoder, &(at_sequence){.x = y, .first = s}, &s); /* [B,n,H] */
    h = at_drop(model, pass, h);
    at_source_attention attention = at_source_attention_begin(model, pass, source, &m->attention, n, state);
    at_tensor *c = at_source_attention_next(&attention, h, encoded->part[0], encoded->part[0]); /* [B,n,H] */
    if (!c)
        return (at_decoded){0};
    *state = (at_parts){.count = 1, .part = {at_state_position(pass, source->rows, attention.position)}};
    at_parts_add(state, &s, 1);
    at_coverage_keep(&attention, state);
    if (at_is_exact(model)) {
        const at_marginal marginal = {.step = logits_of_state(model, pass, h),
                                      .unit = encoded->part[encoded->count - 1],
                                      .gate = at_gate_of(model, pass, &m->gate, h)};
        return at_source_attention_end(&attention, at_marginal_logits(&attention, &marginal));
    }
    c = at_gate_apply(model, pass, &m->gate, h, c);
    at_tensor *both = at_concat((at_tensor *[]){h, c}, 2, 2);
    return at_source_attention_end(&attention, at_dense_apply(tape, p, &m->W_o, both, AT_ACT_NONE));
}

const at_model_kind at_rnn_attention = {
    .name = "rnn-attention",
    .formula = "s_t = rnn(y_{t−1}, s_{t−1}), e_tj = s_tᵀ W_a h_j, softmax(W_o [s_t; c_t])",
    .paper = "Luong, Pham, Manning 2015",
    .fields = "cell reset hidden attention dropout attention-dropout score normaliser window position heads "
              "hard-training coverage coverage-width gate guided-head",
    .defaults = "cell=rnn score=general dropout=0.5",
    .has_source = true,
    .has_attention = true,
    .declare = declare,
    .encode = encode,
    .start = start,
    .decode = decode,
    .features = features,
};
