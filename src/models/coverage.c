/* Coverage (Zhang et al. 2017): the score of a source unit sees where attention has been.
 *
 *     c_t = sum of the weights a_1 .. a_{t-1}                       [B,S], 0 at first
 *     F_t = Q * c_t                                                 a convolution, N filters: [B,S,N]
 *     e_tj = v^T act(W q_t + U k_j + U_f f_tj + b)                  f_tj the row of F_t for unit j
 *
 * A sequence is a grid of height 1. The cells of all sources lie one after another without padding, so no bit depends on
 * a neighbour in the batch. */
#include <stdio.h>

#include "models/kinds.h"
#include "tape/block.h"

bool at_coverage_declare(at_model *model, at_attention_params *params, const char *name, bool grid, at_error *error)
{
    const int64_t filters = model->settings.coverage, wide = model->settings.coverage_width;
    const int64_t width = params->prepared ? params->width : model->settings.attention * model->settings.heads;
    char full[120];
    if (error->code != AT_OK || filters == 0)
        return error->code == AT_OK;
    if (!params->prepared && at_attention_predicts(&model->attention))
        return at_fail(
            error, AT_USAGE,
            "`coverage` cannot be used with `window` local-p in model '%s', whose queries are prepared for the "
            "score before the window could be predicted from them",
            model->kind->name);
    params->coverage = (at_coverage_params){.height = grid ? wide : 1, .width = wide};
    snprintf(full, sizeof full, "%s.Q", name);
    params->coverage.filters =
        at_params_add(model->params, full, AT_SHAPE(filters, params->coverage.height * wide), error);
    snprintf(full, sizeof full, "%s.U_f", name);
    params->coverage.U_f = at_params_add(model->params, full, AT_SHAPE(width, filters), error);
    return error->code == AT_OK;
}

void at_coverage_start(const at_model *model, const at_pass *pass, const at_source *source, at_parts *state)
{
    const at_shape shape = AT_SHAPE(source->rows, source->length);
    at_tensor *none = model->settings.coverage ? at_tensor_make(pass->tape, shape) : NULL;
    for (int64_t i = 0; none && i < at_shape_count(shape); i++)
        none->value[i] = 0;
    if (model->settings.coverage)
        state->part[state->count++] = none;
}

void at_coverage_keep(const at_source_attention *a, at_parts *state)
{
    if (a->model->settings.coverage)
        state->part[state->count++] = a->covered;
}

/* ---- Cells ---- */

/* Where the cells lie: those of every source with a border of zeros, which the window then never leaves. */
struct at_cells {
    at_grids bordered, inside;
    const int32_t *from; /* [cells with borders]: which number of [B,S] each is; -1: border */
};

static at_cells *place(at_cells *cells, const at_source *source, int64_t down, int64_t across, int32_t *from)
{
    for (int64_t b = 0; b < source->rows; b++) {
        const int64_t height = cells->inside.height[b], width = cells->inside.width[b];
        const int64_t wide = cells->bordered.width[b];
        int32_t *row = from + cells->bordered.first[b];
        for (int64_t i = 0; i < cells->bordered.height[b] * wide; i++) {
            const int64_t y = i / wide - down, x = i % wide - across;
            const bool is_inside = y >= 0 && y < height && x >= 0 && x < width;
            row[i] = is_inside ? (int32_t)(b * source->length + y * width + x) : -1;
        }
    }
    cells->from = from;
    return cells;
}

static at_cells *cells_of(const at_source_attention *a)
{
    const at_source *source = a->source;
    at_tape *tape = a->pass->tape;
    const at_coverage_params *c = &a->params->coverage;
    const int64_t B = source->rows, down = c->height / 2, across = c->width / 2;
    at_cells *cells = at_room(tape, sizeof *cells);
    int64_t *size = at_room(tape, (size_t)(4 * B) * sizeof *size); /* heights and widths, inside and with borders */
    if (!cells || !size)
        return NULL;
    for (int64_t b = 0; b < B; b++) {
        size[b] = a->grids ? a->grids->height[b] : 1;
        size[B + b] = a->grids ? a->grids->width[b] : source->lengths[b];
        size[2 * B + b] = size[b] + 2 * down;
        size[3 * B + b] = size[B + b] + 2 * across;
    }
    *cells = (at_cells){.inside = at_grids_make(tape, B, size, size + B),
                        .bordered = at_grids_make(tape, B, size + 2 * B, size + 3 * B)};
    if (!cells->inside.first || !cells->bordered.first)
        return NULL;
    int32_t *from = at_room(tape, (size_t)cells->bordered.first[B] * sizeof *from);
    return from ? place(cells, source, down, across, from) : NULL;
}

bool at_coverage_term(at_source_attention *a, at_attention_in *in)
{
    at_tape *tape = a->pass->tape;
    const at_coverage_params *c = &a->params->coverage;
    const int64_t B = a->source->rows, S = a->source->length;
    if (!a->cells)
        a->cells = cells_of(a);
    if (!a->cells || !a->covered)
        return false;
    at_tensor *Q = at_param(tape, a->model->params, c->filters), *U_f = at_param(tape, a->model->params, c->U_f);
    const at_grids *bordered = &a->cells->bordered;
    at_tensor *sum = at_embedding(at_reshape(a->covered, AT_SHAPE(B * S, 1)), a->cells->from,
                                  AT_SHAPE(bordered->first[bordered->count])); /* [cells with borders, 1] */
    const at_window window = {.height = c->height, .width = c->width, .stride = 1};
    at_tensor *F = at_conv(sum, bordered, window, Q, NULL, AT_ACT_NONE, &a->cells->inside); /* [cells, N] */
    in->term = at_linear(F, U_f, NULL, AT_ACT_NONE);                                        /* [cells, A] */
    in->term_first = a->cells->inside.first;
    return in->term != NULL;
}
