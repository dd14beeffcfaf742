/* Cho et al. 2014: the source is encoded as one vector c, which every step of the decoder reads.
 *
 *     h_j = cell(E x_j, h_{j-1}),  c = tanh(V h_N)
 *     h'_0 = tanh(V' c)
 *     e = E y_{t-1},  e(y_0) = 0
 *     z' = s(W'_z e + U'_z h' + C_z c),  r' likewise,  h~ = tanh(W' e + r' o (U' h' + C c))
 *     s'_t = O_h h'_t + O_y e + O_c c,  s_t = maxout(s'_t),  p(y_t) = softmax(G s_t) */
#include "models/kinds.h"
#include "tape/block.h"

typedef struct rnn_encdec {
    int source_embedding, target_embedding; /* E of either side */
    at_cell encoder, decoder;
    at_dense V, V_decoder, C, O_h, O_y, O_c, G;
} rnn_encdec;

enum { SUMMARY, SUMMARY_TERMS, PARTS };

static bool declare(at_model *model, at_error *error)
{
    rnn_encdec *m = at_model_extra(model, sizeof *m, error);
    if (!m)
        return false;
    const at_model_settings *s = &model->settings;
    const int64_t E = s->embedding, H = s->hidden, L = 2 * s->maxout;
    at_params *p = model->params;
    m->source_embedding = at_params_add_matrix(p, "source.E", AT_SHAPE(s->source_size, E), error);
    m->encoder = at_cell_declare(p, "encoder", at_model_cell(model), E, H, error);
    m->V = at_dense_declare(p, "encoder.V", H, H, true, error);
    m->target_embedding = at_params_add_matrix(p, "target.E", AT_SHAPE(s->target_size, E), error);
    m->V_decoder = at_dense_declare(p, "decoder.V", H, H, true, error);
    /* The decoder's reset is after the product, as in the formula, whatever the encoder's is. */
    at_cell_kind cell = at_model_cell(model);
    m->decoder = at_cell_declare(p, "decoder", cell == AT_CELL_GRU ? AT_CELL_GRU_AFTER : cell, E, H, error);
    m->C = at_dense_declare(p, "decoder.C", H, at_cell_width(&m->decoder), false, error);
    m->O_h = at_dense_declare(p, "output.O_h", H, L, true, error);
    m->O_y = at_dense_declare(p, "output.O_y", E, L, false, error);
    m->O_c = at_dense_declare(p, "output.O_c", H, L, false, error);
    m->G = at_dense_declare(p, "output.G", s->maxout, s->target_size, true, error);
    return error->code == AT_OK;
}

static at_parts encode(const at_model *model, const at_pass *pass, const at_source *source)
{
    const rnn_encdec *m = model->extra;
    at_tape *tape = pass->tape;
    at_params *p = model->params;
    at_hidden last;
    at_tensor *x = at_embedding(at_weights(tape, p, m->source_embedding), source->ids,
                                AT_SHAPE(source->rows, source->length)); /* [B,S,E] */
    at_cell_sequence(tape, p, &m->encoder, &(at_sequence){.x = at_drop(model, pass, x), .lengths = source->lengths},
                     &last);
    at_tensor *c = at_dense_apply(tape, p, &m->V, last.h, AT_ACT_TANH); /* [B,H] */
    /* C c, of the gates and the candidate, does not change from step to step: [B,gates*H] */
    at_tensor *Cc = at_dense_apply(tape, p, &m->C, c, AT_ACT_NONE);
    return (at_parts){.count = PARTS, .part = {[SUMMARY] = c, [SUMMARY_TERMS] = Cc}};
}

static at_parts start(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded)
{
    const rnn_encdec *m = model->extra;
    at_hidden h = at_hidden_zeros(pass->tape, &m->decoder, source->rows);
    h.h = at_dense_apply(pass->tape, model->params, &m->V_decoder, encoded->part[SUMMARY], AT_ACT_TANH);
    at_parts state = {.count = 1, .part = {at_state_position(pass, source->rows, 0)}};
    at_parts_add(&state, &h, 1);
    return state;
}

static at_decoded decode(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded,
                         at_parts *state, const int32_t *ids, int64_t n)
{
    const rnn_encdec *m = model->extra;
    at_tape *tape = pass->tape;
    at_params *p = model->params;
    const int64_t B = source->rows, position = at_state_position_of(state->part[0]);
    int32_t *previous = at_keep(tape, ids, (size_t)(B * n) * sizeof *ids);
    for (int64_t b = 0; previous && position == 0 && b < B; b++)
        previous[b * n] = -1; /* e(y_0) = 0 */
    if (!previous)
        return (at_decoded){0};
    at_hidden last;
    at_parts_take(state, 1, &m->decoder, &last, 1);
    at_tensor *e =
        at_drop(model, pass, at_embedding(at_weights(tape, p, m->target_embedding), previous, AT_SHAPE(B, n)));
    at_tensor *x = at_cell_input(tape, p, &m->decoder, e); /* [B,n,gates*H] */
    at_tensor *h = at_cell_run(tape, p, &m->decoder,
                               &(at_sequence){.x = x, .extra = encoded->part[SUMMARY_TERMS], .first = last}, &last);
    at_tensor *c = at_reshape(encoded->part[SUMMARY], AT_SHAPE(B, 1, m->decoder.hidden)); /* the same at every step */
    at_tensor *s = at_dense_apply(tape, p, &m->O_h, h, AT_ACT_NONE);                      /* [B,n,2L] */
    s = at_add(s, at_dense_apply(tape, p, &m->O_y, e, AT_ACT_NONE));
    s = at_add(s, at_dense_apply(tape, p, &m->O_c, c, AT_ACT_NONE));
    s = at_drop(model, pass, at_maxout(s)); /* [B,n,L] */
    *state = (at_parts){.count = 1, .part = {at_state_position(pass, B, position + n)}};
    at_parts_add(state, &last, 1);
    return (at_decoded){.logits = at_dense_apply(tape, p, &m->G, s, AT_ACT_NONE)};
}

const at_model_kind at_rnn_encdec = {
    .name = "rnn-encdec",
    .formula = "c = tanh(V h_N), h'_t = gru(E y_{t−1}, h'_{t−1}, c), maxout(O_h h'_t + O_y E y_{t−1} + O_c c)",
    .paper = "Cho et al. 2014",
    .fields = "cell reset embedding hidden maxout dropout",
    .defaults = "cell=gru",
    .has_source = true,
    .declare = declare,
    .encode = encode,
    .start = start,
    .decode = decode,
};
