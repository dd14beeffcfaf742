/* Xu et al. 2015, "Show, Attend and Tell": a convolutional encoder of a picture, whose cells the decoder attends to.
 *
 *     a = convolutions(picture), a_i in R^D                      i over the cells of its grid; or a row of features
 *     h_0 = tanh(W_h mean(a) + b_h), c_0 = tanh(W_c mean(a) + b_c)   a layer of relu units before both, if wanted
 *     e_ti = v_a^T tanh(W_a h_{t-1} + U_a a_i)                   or any other score of W_a h_{t-1} and U_a a_i
 *     z_t = beta_t sum_i alpha_ti a_i,  beta_t = sigmoid(w_b h_{t-1} + b)
 *     h_t = cell(W E y_{t-1} + Z z_t, h_{t-1}),  E y_0 = 0
 *     p(y_t) = softmax(L_o f(E y_{t-1} + L_h h_t + L_z z_t))     f: tanh as in the authors' code, or none as in the paper */
#include "models/kinds.h"
#include "models/pictures.h"
#include "tape/block.h"

typedef struct show_attend_tell {
    at_convolutions layers; /* none: the source is features */
    int64_t size;           /* D */
    at_dense first, W_h, W_c, W_a, U_a, Z, L_h, L_z, L_o;
    int target_embedding;
    at_cell decoder;
    at_dense gate;
    at_attention_params attention;
} show_attend_tell;

enum { CELLS, KEYS, MEAN, PARTS, TO_OUTPUT = PARTS /* with exact hard attention */ };

static bool is_possible(const at_model *model, const show_attend_tell *m, at_error *error)
{
    if (model->added == AT_ADDED_LEARNED)
        return at_fail(error, AT_USAGE,
                       "`position` learned is for the units of a text; a picture's cells have none or sinusoidal");
    if (model->added == AT_ADDED_SINUSOIDAL && (m->size % 4 || model->settings.features))
        return at_fail(error, AT_USAGE,
                       "`position` sinusoidal is for the cells of a picture, whose last convolution then needs a "
                       "multiple of 4 channels");
    return true;
}

static bool declare(at_model *model, at_error *error)
{
    show_attend_tell *m = at_model_extra(model, sizeof *m, error);
    if (!m)
        return false;
    const at_model_settings *s = &model->settings;
    const int64_t E = s->embedding, H = s->hidden, A = s->attention, F = s->start_layer;
    at_params *p = model->params;
    at_picture_form form;
    if (!at_picture_form_of(s, &form, &m->layers, error) ||
        (!form.features && !at_convolutions_declare(p, "encoder", form.channels, &m->layers, error)))
        return false;
    m->size = form.features ? form.channels : m->layers.layer[m->layers.count - 1].channels;
    if (!is_possible(model, m, error))
        return false;
    if (F)
        m->first = at_dense_declare(p, "decoder.first", m->size, F, true, error);
    m->W_h = at_dense_declare(p, "decoder.W_h", F ? F : m->size, H, true, error);
    if (at_model_cell(model) == AT_CELL_LSTM)
        m->W_c = at_dense_declare(p, "decoder.W_c", F ? F : m->size, H, true, error);
    m->W_a = at_dense_declare(p, "attention.W_a", H, A, true, error);
    m->U_a = at_dense_declare(p, "attention.U_a", m->size, A, false, error);
    m->target_embedding = at_params_add_matrix(p, "target.E", AT_SHAPE(s->target_size, E), error);
    m->decoder = at_cell_declare(p, "decoder", at_model_cell(model), E, H, error);
    m->Z = at_dense_declare(p, "decoder.Z", m->size, at_cell_width(&m->decoder), false, error);
    m->L_h = at_dense_declare(p, "output.L_h", H, E, true, error);
    m->L_z = at_dense_declare(p, "output.L_z", m->size, E, false, error);
    m->L_o = at_dense_declare(p, "output.L_o", E, s->target_size, true, error);
    return at_attention_params_declare(model, &m->attention, "attention", A, m->size, true, error) &&
           at_coverage_declare(model, &m->attention, "attention", !form.features, error) &&
           at_gate_declare(model, &m->gate, "attention.gate", H, error);
}

/* ---- The encoder ---------------------------------------------------------------------------------------------- */

/* The cells of all pictures, packed [cells, D] -> with padding [B,S,D], zeros beyond each picture's cells. */
static at_tensor *pad(const at_pass *pass, const at_source *source, at_tensor *packed)
{
    int32_t *from = at_room(pass->tape, (size_t)(source->rows * source->length) * sizeof *from);
    int32_t next = 0;
    int64_t cells = 0;
    for (int64_t b = 0; b < source->rows; b++)
        cells += source->lengths[b];
    if (packed && packed->shape.dim[0] != cells)
        return AT_REFUSE(pass->tape, AT_FAILED, "the pictures have %lld cells, and the source has %lld units",
                         (long long)packed->shape.dim[0], (long long)cells);
    for (int64_t b = 0; from && b < source->rows; b++)
        for (int64_t i = 0; i < source->length; i++)
            from[b * source->length + i] = i < source->lengths[b] ? next++ : -1;
    return from ? at_embedding(packed, from, AT_SHAPE(source->rows, source->length)) : NULL;
}

/* a [B,S,D] */
static at_tensor *annotate(const at_model *model, const at_pass *pass, const at_source *source)
{
    const show_attend_tell *m = model->extra;
    at_tape *tape = pass->tape;
    at_grids pixels, cells;
    at_tensor *x = at_picture_tensor(pass, source, &pixels); /* [pixels, channels] */
    if (!x)
        return NULL;
    if (m->layers.count > 0) {
        x = at_convolutions_apply(tape, model->params, &m->layers, x, &pixels, 1, &cells); /* [cells, D] */
        if (x && model->added == AT_ADDED_SINUSOIDAL)
            x = at_add(x, at_grid_positions(tape, &cells, m->size));
    }
    return pad(pass, source, x);
}

/* The mean over each picture's own cells: [B,D]. */
static at_tensor *mean_of(const at_pass *pass, const at_source *source, at_tensor *a)
{
    at_tensor *share = at_tensor_make(pass->tape, AT_SHAPE(source->rows, 1));
    for (int64_t b = 0; share && b < source->rows; b++)
        share->value[b] = 1 / (at_real)source->lengths[b];
    return share ? at_mul(at_sum(a, 1), share) : NULL;
}

static at_parts encode(const at_model *model, const at_pass *pass, const at_source *source)
{
    const show_attend_tell *m = model->extra;
    at_tensor *a = at_drop(model, pass, annotate(model, pass, source)); /* [B,S,D] */
    /* U_a a_i does not change from step to step: [B,S,A] */
    at_tensor *keys = at_dense_apply(pass->tape, model->params, &m->U_a, a, AT_ACT_NONE);
    at_parts encoded = {.count = PARTS, .part = {[CELLS] = a, [KEYS] = keys, [MEAN] = mean_of(pass, source, a)}};
    if (at_is_exact(model)) /* L_z a_i [B,S,E] */
        encoded.part[encoded.count++] = at_dense_apply(pass->tape, model->params, &m->L_z, a, AT_ACT_NONE);
    return encoded;
}

/* ---- The decoder ---------------------------------------------------------------------------------------------- */

static at_parts start(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded)
{
    const show_attend_tell *m = model->extra;
    at_tensor *mean = encoded->part[MEAN];
    if (model->settings.start_layer)
        mean = at_dense_apply(pass->tape, model->params, &m->first, mean, AT_ACT_RELU);
    at_hidden h = {.h = at_dense_apply(pass->tape, model->params, &m->W_h, mean, AT_ACT_TANH)}; /* [B,H] */
    if (m->decoder.kind == AT_CELL_LSTM)
        h.c = at_dense_apply(pass->tape, model->params, &m->W_c, mean, AT_ACT_TANH);
    at_parts state = {.count = 1, .part = {at_state_position(pass, source->rows, 0)}};
    at_parts_add(&state, &h, 1);
    at_coverage_start(model, pass, source, &state);
    return state;
}

/* The grids of the cells, for coverage. */
static at_grids grids_of(const show_attend_tell *m, const at_pass *pass, const at_source *source)
{
    int64_t *height = at_room(pass->tape, 2 * (size_t)source->rows * sizeof *height), *width = height + source->rows;
    for (int64_t b = 0; height && b < source->rows; b++)
        at_picture_cells(source->pictures, &m->layers, source->ids[b * source->length], &height[b], &width[b]);
    return height ? at_grids_make(pass->tape, source->rows, height, width) : (at_grids){0};
}

/* E y_{t-1} [n,B,E], zeros before the first position. */
static at_tensor *embed(const at_model *model, const at_pass *pass, const int32_t *ids, int64_t rows, int64_t n,
                        int64_t position)
{
    const show_attend_tell *m = model->extra;
    int32_t *known = at_room(pass->tape, (size_t)(rows * n) * sizeof *known);
    for (int64_t i = 0; known && i < rows * n; i++)
        known[i] = position + i % n == 0 ? -1 : ids[i];
    return known ? at_steps_embed(pass, at_weights(pass->tape, model->params, m->target_embedding), known, rows, n)
                 : NULL;
}

static at_decoded decode(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded,
                         at_parts *state, const int32_t *ids, int64_t n)
{
    const show_attend_tell *m = model->extra;
    at_tape *tape = pass->tape;
    at_params *p = model->params;
    const int64_t B = source->rows, A = model->settings.attention, position = at_state_position_of(state->part[0]);
    at_hidden h;
    at_parts_take(state, 1, &m->decoder, &h, 1);
    at_tensor **before = at_step_array(pass, n), **after = at_step_array(pass, n), **context = at_step_array(pass, n);
    at_tensor *Ey = at_drop(model, pass, embed(model, pass, ids, B, n, position)); /* [n,B,E] */
    at_tensor *x = at_cell_input(tape, p, &m->decoder, Ey);                        /* [n,B,gates*H] */
    at_source_attention attention = at_source_attention_begin(model, pass, source, &m->attention, n, state);
    const at_grids grids = model->settings.coverage ? grids_of(m, pass, source) : (at_grids){0};
    attention.grids = &grids;
    for (int64_t t = 0; t < n && at_tape_ok(tape); t++) {
        at_tensor *q = at_dense_apply(tape, p, &m->W_a, h.h, AT_ACT_NONE); /* [B,A] */
        at_tensor *z = at_source_attention_next(&attention, at_reshape(q, AT_SHAPE(B, 1, A)), encoded->part[KEYS],
                                                encoded->part[CELLS]); /* [B,1,D] */
        before[t] = h.h;
        context[t] = at_gate_apply(model, pass, &m->gate, h.h, at_reshape(z, AT_SHAPE(B, m->size)));
        at_tensor *Zz = at_dense_apply(tape, p, &m->Z, context[t], AT_ACT_NONE);
        h = at_cell_step(tape, p, &m->decoder, at_add(at_steps_at(x, t), Zz), h);
        after[t] = h.h;
    }
    if (!at_tape_ok(tape))
        return (at_decoded){0};
    at_tensor *y = at_dense_apply(tape, p, &m->L_h, at_steps_join(after, n), AT_ACT_NONE); /* [n,B,E] */
    y = at_add(y, Ey);
    *state = (at_parts){.count = 1, .part = {at_state_position(pass, B, attention.position)}};
    at_parts_add(state, &h, 1);
    at_coverage_keep(&attention, state);
    const bool linear = model->settings.deep_output == AT_LINEAR_OUTPUT;
    if (at_is_exact(model)) {
        at_tensor *gate = at_gate_of(model, pass, &m->gate, at_steps_join(before, n)); /* [n,B,1] */
        const at_marginal marginal = {.step = at_rows_first(y),
                                      .unit = encoded->part[TO_OUTPUT],
                                      .gate = at_rows_first(gate),
                                      .join = linear ? AT_MARGINAL_SUM : AT_MARGINAL_TANH,
                                      .output = &m->L_o,
                                      .drops = true};
        return at_source_attention_end(&attention, at_marginal_logits(&attention, &marginal));
    }
    y = at_add(y, at_dense_apply(tape, p, &m->L_z, at_steps_join(context, n), AT_ACT_NONE));
    y = linear ? y : at_tanh(y);
    y = at_drop(model, pass, at_rows_first(y)); /* [B,n,E] */
    return at_source_attention_end(&attention, at_dense_apply(tape, p, &m->L_o, y, AT_ACT_NONE));
}

const at_model_kind at_show_attend_tell = {
    .name = "show-attend-tell",
    .formula = "e_ti = v_aᵀ tanh(W_a h_{t−1} + U_a a_i), h_t = lstm(E y_{t−1}, β_t Σ_i α_ti a_i, h_{t−1}), "
               "a = convolutions(picture)",
    .paper = "Xu et al. 2015",
    .fields =
        "cell reset embedding hidden attention dropout attention-dropout score normaliser window position heads "
        "hard-training coverage coverage-width gate features conv image-size image-channels start-layer deep-output",
    .defaults = "cell=lstm score=additive gate=true doubly-stochastic=1",
    .has_source = true,
    .has_pictures = true,
    .has_attention = true,
    .adds_positions = true,
    .declare = declare,
    .encode = encode,
    .start = start,
    .decode = decode,
    .features = annotate,
};
