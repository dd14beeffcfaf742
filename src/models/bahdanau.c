/* Bahdanau, Cho, Bengio 2014: a bidirectional encoder, whose annotations the decoder attends to at every step.
 *
 *     h_j = [h->_j; h<-_j]                                      annotations
 *     s_0 = tanh(W_s h<-_1)
 *     e_ij = v_a^T tanh(W_a s_{i-1} + U_a h_j)                  or any other score of W_a s_{i-1} and U_a h_j
 *     c_i = sum_j a_ij h_j                                      a_i = normalise(e_i); with a gate, sigmoid(w_b s_{i-1} + b) times it
 *     s_i = cell(W E y_{i-1} + C c_i, s_{i-1})                  a gru's candidate is tanh(W E y + C c + U (r o s))
 *     t~_i = U_o s_{i-1} + V_o E y_{i-1} + C_o c_i
 *     t_i = maxout(t~_i),  p(y_i) = softmax(W_o t_i)
 *
 * Exact hard attention: p(y_i) = sum_j a_ij softmax(W_o t_ij), t_ij with h_j in place of c_i. */
#include "models/kinds.h"

typedef struct bahdanau {
    at_annotator encoder;
    int target_embedding; /* E */
    at_cell decoder;
    at_dense W_s, W_a, U_a, C, U_o, V_o, C_o, W_o;
    at_dense gate;
    at_attention_params attention;
} bahdanau;

enum { ANNOTATIONS, KEYS, FIRST, PARTS, TO_OUTPUT = PARTS };

static bool declare(at_model *model, at_error *error)
{
    bahdanau *m = at_model_extra(model, sizeof *m, error);
    if (!m)
        return false;
    const at_model_settings *s = &model->settings;
    const int64_t E = s->embedding, H = s->hidden, A = s->attention, L = 2 * s->maxout;
    at_params *p = model->params;
    at_cell_kind cell = at_model_cell(model);
    m->encoder = at_annotator_declare(model, cell, error);
    m->W_s = at_dense_declare(p, "decoder.W_s", H, H, true, error);
    m->W_a = at_dense_declare(p, "attention.W_a", H, A, true, error);
    m->U_a = at_dense_declare(p, "attention.U_a", 2 * H, A, false, error);
    m->target_embedding = at_params_add_matrix(p, "target.E", AT_SHAPE(s->target_size, E), error);
    m->decoder = at_cell_declare(p, "decoder", cell, E, H, error);
    m->C = at_dense_declare(p, "decoder.C", 2 * H, at_cell_width(&m->decoder), false, error);
    m->U_o = at_dense_declare(p, "output.U_o", H, L, true, error);
    m->V_o = at_dense_declare(p, "output.V_o", E, L, false, error);
    m->C_o = at_dense_declare(p, "output.C_o", 2 * H, L, false, error);
    m->W_o = at_dense_declare(p, "output.W_o", s->maxout, s->target_size, true, error);
    return at_attention_params_declare(model, &m->attention, "attention", A, 2 * H, true, error) &&
           at_coverage_declare(model, &m->attention, "attention", false, error) &&
           at_gate_declare(model, &m->gate, "attention.gate", H, error);
}

static at_parts encode(const at_model *model, const at_pass *pass, const at_source *source)
{
    const bahdanau *m = model->extra;
    at_tape *tape = pass->tape;
    at_params *p = model->params;
    at_hidden first;
    at_tensor *h = at_annotate(model, pass, &m->encoder, source, &first); /* [B,S,2H] */
    /* U_a h_j does not change from step to step: [B,S,A] */
    at_tensor *keys = at_dense_apply(tape, p, &m->U_a, h, AT_ACT_NONE);
    at_parts encoded = {.count = PARTS, .part = {[ANNOTATIONS] = h, [KEYS] = keys, [FIRST] = first.h}};
    if (at_is_exact(model)) /* C_o h_j [B,S,2L] */
        encoded.part[encoded.count++] = at_dense_apply(tape, p, &m->C_o, h, AT_ACT_NONE);
    return encoded;
}

static at_tensor *features(const at_model *model, const at_pass *pass, const at_source *source)
{
    return encode(model, pass, source).part[ANNOTATIONS];
}

static at_parts start(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded)
{
    const bahdanau *m = model->extra;
    at_hidden s = at_hidden_zeros(pass->tape, &m->decoder, source->rows);
    s.h = at_dense_apply(pass->tape, model->params, &m->W_s, encoded->part[FIRST], AT_ACT_TANH); /* [B,H] */
    at_parts state = {.count = 1, .part = {at_state_position(pass, source->rows, 0)}};
    at_parts_add(&state, &s, 1);
    at_coverage_start(model, pass, source, &state);
    return state;
}

static at_decoded decode(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded,
                         at_parts *state, const int32_t *ids, int64_t n)
{
    const bahdanau *m = model->extra;
    at_tape *tape = pass->tape;
    at_params *p = model->params;
    const int64_t B = source->rows, A = model->settings.attention;
    at_hidden s;
    at_parts_take(state, 1, &m->decoder, &s, 1);
    at_tensor **before = at_step_array(pass, n), **context = at_step_array(pass, n);
    at_tensor *Ey = at_steps_embed(pass, at_weights(tape, p, m->target_embedding), ids, B, n); /* [n,B,E] */
    Ey = at_drop(model, pass, Ey);
    at_tensor *x = at_cell_input(tape, p, &m->decoder, Ey); /* [n,B,gates*H] */
    at_source_attention attention = at_source_attention_begin(model, pass, source, &m->attention, n, state);
    for (int64_t i = 0; i < n && at_tape_ok(tape); i++) {
        at_tensor *q = at_dense_apply(tape, p, &m->W_a, s.h, AT_ACT_NONE); /* [B,A] */
        at_tensor *c = at_source_attention_next(&attention, at_reshape(q, AT_SHAPE(B, 1, A)), encoded->part[KEYS],
                                                encoded->part[ANNOTATIONS]); /* [B,1,2H] */
        before[i] = s.h;
        context[i] = at_gate_apply(model, pass, &m->gate, s.h, at_reshape(c, AT_SHAPE(B, 2 * m->decoder.hidden)));
        at_tensor *Cc = at_dense_apply(tape, p, &m->C, context[i], AT_ACT_NONE);
        s = at_cell_step(tape, p, &m->decoder, at_add(at_steps_at(x, i), Cc), s);
    }
    if (!at_tape_ok(tape))
        return (at_decoded){0};
    at_tensor *t = at_dense_apply(tape, p, &m->U_o, at_steps_join(before, n), AT_ACT_NONE); /* [n,B,2L] */
    t = at_add(t, at_dense_apply(tape, p, &m->V_o, Ey, AT_ACT_NONE));
    *state = (at_parts){.count = 1, .part = {at_state_position(pass, B, attention.position)}};
    at_parts_add(state, &s, 1);
    at_coverage_keep(&attention, state);
    if (at_is_exact(model)) {
        at_tensor *gate = at_gate_of(model, pass, &m->gate, at_steps_join(before, n)); /* [n,B,1] */
        const at_marginal marginal = {.step = at_rows_first(t),
                                      .unit = encoded->part[TO_OUTPUT],
                                      .gate = at_rows_first(gate),
                                      .join = AT_MARGINAL_MAXOUT,
                                      .output = &m->W_o,
                                      .drops = true};
        return at_source_attention_end(&attention, at_marginal_logits(&attention, &marginal));
    }
    t = at_add(t, at_dense_apply(tape, p, &m->C_o, at_steps_join(context, n), AT_ACT_NONE));
    t = at_drop(model, pass, at_rows_first(at_maxout(t))); /* [B,n,L] */
    return at_source_attention_end(&attention, at_dense_apply(tape, p, &m->W_o, t, AT_ACT_NONE));
}

const at_model_kind at_bahdanau = {
    .name = "bahdanau",
    .formula = "e_ij = v_aᵀ tanh(W_a s_{i−1} + U_a h_j), s_i = gru(E y_{i−1}, c_i, s_{i−1}), maxout",
    .paper = "Bahdanau, Cho, Bengio 2014",
    .fields = "cell reset embedding hidden attention maxout dropout attention-dropout score normaliser window position "
              "heads hard-training coverage coverage-width gate guided-head",
    .defaults = "cell=gru score=additive",
    .has_source = true,
    .has_attention = true,
    .declare = declare,
    .encode = encode,
    .start = start,
    .decode = decode,
    .features = features,
};
