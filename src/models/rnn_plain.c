/* The plain encoder-decoder: one recurrent network reads the source, and its last state is the first of the decoder.
 *
 *     h_j = cell(x_j, h_{j-1})             x and y are one-hot, so W x is a row of a table
 *     s_0 = h_N,  s_t = cell(y_{t-1}, s_{t-1})
 *     p(y_t) = softmax(W_o s_t + b) */
#include "models/kinds.h"

typedef struct rnn_plain {
    int source_embedding, target_embedding; /* W of either side, a row for each token */
    at_cell encoder, decoder;
    at_dense W_o;
} rnn_plain;

static bool declare(at_model *model, at_error *error)
{
    rnn_plain *m = at_model_extra(model, sizeof *m, error);
    if (!m)
        return false;
    const at_model_settings *s = &model->settings;
    at_params *p = model->params;
    m->encoder = at_cell_declare(p, "encoder", at_model_cell(model), 0, s->hidden, error);
    m->decoder = at_cell_declare(p, "decoder", at_model_cell(model), 0, s->hidden, error);
    const int64_t width = at_cell_width(&m->encoder);
    m->source_embedding = at_params_add_matrix(p, "source.E", AT_SHAPE(s->source_size, width), error);
    m->target_embedding = at_params_add_matrix(p, "target.E", AT_SHAPE(s->target_size, width), error);
    m->W_o = at_dense_declare(p, "output", s->hidden, s->target_size, true, error);
    return error->code == AT_OK;
}

static at_parts encode(const at_model *model, const at_pass *pass, const at_source *source)
{
    const rnn_plain *m = model->extra;
    at_hidden last;
    at_tensor *x = at_embedding(at_weights(pass->tape, model->params, m->source_embedding), source->ids,
                                AT_SHAPE(source->rows, source->length)); /* [B,S,gates*H] */
    x = at_cell_input(pass->tape, model->params, &m->encoder, x);
    at_cell_run(pass->tape, model->params, &m->encoder, &(at_sequence){.x = x, .lengths = source->lengths}, &last);
    at_parts encoded = {0};
    at_parts_add(&encoded, &last, 1);
    return encoded;
}

static at_parts start(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded)
{
    (void)model, (void)pass, (void)source;
    return *encoded;
}

static at_decoded decode(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded,
                         at_parts *state, const int32_t *ids, int64_t n)
{
    (void)encoded;
    const rnn_plain *m = model->extra;
    at_tape *tape = pass->tape;
    at_params *p = model->params;
    at_hidden s;
    at_parts_take(state, 0, &m->decoder, &s, 1);
    at_tensor *y =
        at_embedding(at_weights(tape, p, m->target_embedding), ids, AT_SHAPE(source->rows, n)); /* [B,n,gates*H] */
    y = at_cell_input(tape, p, &m->decoder, y);
    at_tensor *h = at_cell_run(tape, p, &m->decoder, &(at_sequence){.x = y, .first = s}, &s); /* [B,n,H] */
    *state = (at_parts){0};
    at_parts_add(state, &s, 1);
    return (at_decoded){.logits = at_dense_apply(tape, p, &m->W_o, at_drop(model, pass, h), AT_ACT_NONE)};
}

const at_model_kind at_rnn_plain = {
    .name = "rnn-plain",
    .formula = "s_0 = h_N, s_t = rnn(y_{t−1}, s_{t−1}), softmax(W_o s_t)",
    .paper = "Sutskever, Vinyals, Le 2014",
    .fields = "cell reset hidden dropout",
    .defaults = "cell=rnn dropout=0.5",
    .has_source = true,
    .declare = declare,
    .encode = encode,
    .start = start,
    .decode = decode,
};
