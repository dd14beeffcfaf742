/* Sennrich et al. 2017 (Nematus; Marian's type s2s): the decoder has two cells a step, and attention between them.
 *
 *     h_j = [h->_j; h<-_j]                                      annotations
 *     s_0 = tanh(W_s mean_j h_j)
 *     e = E y_{i-1},  e(y_0) = 0
 *     s'_i = gru_1(e, s_{i-1})
 *     e_ij = v_a^T tanh(W_a s'_i + U_a h_j)                     or any other score of W_a s'_i and U_a h_j
 *     c_i = sum_j a_ij h_j                                      a_i = normalise(e_i); with a gate, sigmoid(w_b s'_i + b) times it
 *     s_i = gru_2(c_i, s'_i)                                    with a bias of U s'
 *     t_i = tanh(O_e e + O_s s_i + O_c c_i),  p(y_i) = softmax(W_o t_i)
 *
 * Exact hard attention: p(y_i) = sum_j a_ij softmax(W_o t_ij), t_ij with h_j in place of c_i; s_i reads c_i.
 * All cells reset after the product. */
#include "models/kinds.h"
#include "tape/block.h"

typedef struct nematus {
    at_annotator encoder;
    int target_embedding; /* E */
    at_cell first, second;
    at_dense W_s, W_a, U_a, O_e, O_s, O_c, W_o, gate;
    at_attention_params attention;
} nematus;

enum { ANNOTATIONS, KEYS, MEAN, PARTS, TO_OUTPUT = PARTS };

static bool declare(at_model *model, at_error *error)
{
    nematus *m = at_model_extra(model, sizeof *m, error);
    if (!m)
        return false;
    const at_model_settings *s = &model->settings;
    const int64_t E = s->embedding, H = s->hidden, A = s->attention;
    at_params *p = model->params;
    m->encoder = at_annotator_declare(model, AT_CELL_GRU_AFTER, error);
    m->W_s = at_dense_declare(p, "decoder.W_s", 2 * H, H, true, error);
    m->W_a = at_dense_declare(p, "attention.W_a", H, A, true, error);
    m->U_a = at_dense_declare(p, "attention.U_a", 2 * H, A, false, error);
    m->target_embedding = at_params_add_matrix(p, "target.E", AT_SHAPE(s->target_size, E), error);
    m->first = at_cell_declare(p, "decoder.first", AT_CELL_GRU_AFTER, E, H, error);
    m->second = at_cell_declare(p, "decoder.second", AT_CELL_GRU_BIAS, 2 * H, H, error);
    m->O_e = at_dense_declare(p, "output.O_e", E, E, true, error);
    m->O_s = at_dense_declare(p, "output.O_s", H, E, false, error);
    m->O_c = at_dense_declare(p, "output.O_c", 2 * H, E, false, error);
    m->W_o = at_dense_declare(p, "output.W_o", E, s->target_size, true, error);
    return at_attention_params_declare(model, &m->attention, "attention", A, 2 * H, true, error) &&
           at_coverage_declare(model, &m->attention, "attention", false, error) &&
           at_gate_declare(model, &m->gate, "attention.gate", H, error);
}

/* The mean of h [B,S,2H], zeros beyond each length, over the units of each row: [B,2H] */
static at_tensor *mean_of(const at_pass *pass, const at_source *source, at_tensor *h)
{
    at_tensor *share = at_tensor_make(pass->tape, AT_SHAPE(source->rows, 1));
    for (int64_t b = 0; share && b < source->rows; b++)
        share->value[b] = 1 / (at_real)source->lengths[b];
    return at_mul(at_sum(h, 1), share);
}

static at_parts encode(const at_model *model, const at_pass *pass, const at_source *source)
{
    const nematus *m = model->extra;
    at_tape *tape = pass->tape;
    at_params *p = model->params;
    at_hidden first;
    at_tensor *h = at_annotate(model, pass, &m->encoder, source, &first); /* [B,S,2H] */
    at_tensor *keys = at_dense_apply(tape, p, &m->U_a, h, AT_ACT_NONE);   /* [B,S,A] */
    at_parts encoded = {.count = PARTS, .part = {h, keys, mean_of(pass, source, h)}};
    if (at_is_exact(model)) /* O_c h_j [B,S,E] */
        encoded.part[encoded.count++] = at_dense_apply(tape, p, &m->O_c, h, AT_ACT_NONE);
    return encoded;
}

static at_tensor *features(const at_model *model, const at_pass *pass, const at_source *source)
{
    return encode(model, pass, source).part[ANNOTATIONS];
}

static at_parts start(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded)
{
    const nematus *m = model->extra;
    at_hidden s = {.h = at_dense_apply(pass->tape, model->params, &m->W_s, encoded->part[MEAN], AT_ACT_TANH)};
    at_parts state = {.count = 1, .part = {at_state_position(pass, source->rows, 0)}};
    at_parts_add(&state, &s, 1);
    at_coverage_start(model, pass, source, &state);
    return state;
}

/* The embeddings of the tokens before, time first: [n,B,E]. Before the first there is none. */
static at_tensor *embed(const at_model *model, const at_pass *pass, const int32_t *ids, int64_t B, int64_t n,
                        int64_t position)
{
    const nematus *m = model->extra;
    int32_t *previous = at_keep(pass->tape, ids, (size_t)(B * n) * sizeof *ids);
    for (int64_t b = 0; previous && position == 0 && b < B; b++)
        previous[b * n] = -1;
    if (!previous)
        return NULL;
    at_tensor *table = at_weights(pass->tape, model->params, m->target_embedding);
    return at_drop(model, pass, at_steps_embed(pass, table, previous, B, n));
}

static at_decoded decode(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded,
                         at_parts *state, const int32_t *ids, int64_t n)
{
    const nematus *m = model->extra;
    at_tape *tape = pass->tape;
    at_params *p = model->params;
    const int64_t B = source->rows, A = model->settings.attention, H = model->settings.hidden;
    at_hidden s;
    at_parts_take(state, 1, &m->first, &s, 1);
    at_tensor **asked = at_step_array(pass, n), **after = at_step_array(pass, n), **context = at_step_array(pass, n);
    at_tensor *e = embed(model, pass, ids, B, n, at_state_position_of(state->part[0]));
    at_tensor *x = at_cell_input(tape, p, &m->first, e); /* [n,B,3H] */
    at_source_attention attention = at_source_attention_begin(model, pass, source, &m->attention, n, state);
    for (int64_t i = 0; i < n && at_tape_ok(tape); i++) {
        at_hidden between = at_cell_step(tape, p, &m->first, at_steps_at(x, i), s);
        at_tensor *q = at_dense_apply(tape, p, &m->W_a, between.h, AT_ACT_NONE); /* [B,A] */
        at_tensor *c = at_source_attention_next(&attention, at_reshape(q, AT_SHAPE(B, 1, A)), encoded->part[KEYS],
                                                encoded->part[ANNOTATIONS]); /* [B,1,2H] */
        asked[i] = between.h;
        context[i] = at_gate_apply(model, pass, &m->gate, between.h, at_reshape(c, AT_SHAPE(B, 2 * H)));
        s = at_cell_step(tape, p, &m->second, at_cell_input(tape, p, &m->second, context[i]), between);
        after[i] = s.h;
    }
    if (!at_tape_ok(tape))
        return (at_decoded){0};
    at_tensor *t = at_dense_apply(tape, p, &m->O_e, e, AT_ACT_NONE); /* [n,B,E] */
    t = at_add(t, at_dense_apply(tape, p, &m->O_s, at_steps_join(after, n), AT_ACT_NONE));
    *state = (at_parts){.count = 1, .part = {at_state_position(pass, B, attention.position)}};
    at_parts_add(state, &s, 1);
    at_coverage_keep(&attention, state);
    if (at_is_exact(model)) {
        at_tensor *gate = at_gate_of(model, pass, &m->gate, at_steps_join(asked, n)); /* [n,B,1] */
        const at_marginal marginal = {.step = at_rows_first(t),
                                      .unit = encoded->part[TO_OUTPUT],
                                      .gate = at_rows_first(gate),
                                      .join = AT_MARGINAL_TANH,
                                      .output = &m->W_o,
                                      .drops = true};
        return at_source_attention_end(&attention, at_marginal_logits(&attention, &marginal));
    }
    t = at_add(t, at_dense_apply(tape, p, &m->O_c, at_steps_join(context, n), AT_ACT_NONE));
    t = at_drop(model, pass, at_rows_first(at_tanh(t))); /* [B,n,E] */
    return at_source_attention_end(&attention, at_dense_apply(tape, p, &m->W_o, t, AT_ACT_NONE));
}

const at_model_kind at_nematus = {
    .name = "nematus",
    .formula = "s'_i = gru(E y_{i−1}, s_{i−1}), c_i by attention from s'_i, s_i = gru(c_i, s'_i), tanh",
    .paper = "Sennrich et al. 2017",
    .fields = "embedding hidden attention dropout attention-dropout score normaliser window position heads "
              "hard-training coverage coverage-width gate guided-head",
    .defaults = "score=additive",
    .has_source = true,
    .has_attention = true,
    .declare = declare,
    .encode = encode,
    .start = start,
    .decode = decode,
    .features = features,
};
