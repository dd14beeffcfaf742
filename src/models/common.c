/* Functions that several models use. */
#include "models/kinds.h"

#include <string.h>

#include "tape/block.h"

at_tensor *at_drop(const at_model *model, const at_pass *pass, at_tensor *x)
{
    return pass->rng ? at_dropout(x, (at_real)(1 - model->settings.dropout), pass->rng) : x;
}

at_weight_drop at_weight_dropout(const at_model *model, const at_pass *pass)
{
    const double share = model->settings.attention_dropout;
    if (!pass->rng || share == 0)
        return (at_weight_drop){0};
    return (at_weight_drop){.share = (at_real)share, .seed = pass->rng->seed, .counter = pass->rng->counter++};
}

at_tensor *at_steps_embed(const at_pass *pass, at_tensor *table, const int32_t *ids, int64_t rows, int64_t n)
{
    int32_t *transposed = at_room(pass->tape, (size_t)(rows * n) * sizeof *transposed);
    if (!transposed)
        return NULL;
    for (int64_t t = 0; t < n; t++)
        for (int64_t b = 0; b < rows; b++)
            transposed[t * rows + b] = ids[b * n + t];
    return at_embedding(table, transposed, AT_SHAPE(n, rows));
}

at_tensor *at_steps_at(at_tensor *x, int64_t t)
{
    return x ? at_reshape(at_slice(x, 0, t, t + 1), AT_SHAPE(x->shape.dim[1], x->shape.dim[2])) : NULL;
}

at_tensor *at_steps_join(at_tensor *const *step, int64_t n)
{
    at_tensor *joined = n == 1 ? step[0] : at_concat(step, (int)n, 0);
    return joined ? at_reshape(joined, AT_SHAPE(n, step[0]->shape.dim[0], step[0]->shape.dim[1])) : NULL;
}

at_tensor *at_rows_first(at_tensor *x)
{
    return at_permute(x, (const int[]){1, 0, 2});
}

at_tensor **at_step_array(const at_pass *pass, int64_t n)
{
    return at_room(pass->tape, (size_t)n * sizeof(at_tensor *));
}

at_annotator at_annotator_declare(at_model *model, at_cell_kind cell, at_error *error)
{
    const int64_t E = model->settings.embedding, H = model->settings.hidden;
    at_params *p = model->params;
    at_annotator annotator;
    annotator.embedding = at_params_add_matrix(p, "source.E", AT_SHAPE(model->settings.source_size, E), error);
    annotator.forward = at_cell_declare(p, "encoder.forward", cell, E, H, error);
    annotator.backward = at_cell_declare(p, "encoder.backward", cell, E, H, error);
    return annotator;
}

at_tensor *at_annotate(const at_model *model, const at_pass *pass, const at_annotator *annotator,
                       const at_source *source, at_hidden *first)
{
    at_tape *tape = pass->tape;
    at_params *p = model->params;
    at_hidden end;
    at_tensor *x = at_embedding(at_weights(tape, p, annotator->embedding), source->ids,
                                AT_SHAPE(source->rows, source->length)); /* [B,S,E] */
    x = at_drop(model, pass, x);
    at_tensor *ahead =
        at_cell_sequence(tape, p, &annotator->forward, &(at_sequence){.x = x, .lengths = source->lengths}, &end);
    at_tensor *back = at_cell_sequence(tape, p, &annotator->backward,
                                       &(at_sequence){.x = x, .lengths = source->lengths, .backward = true}, first);
    return at_concat((at_tensor *[]){ahead, back}, 2, 2); /* [B,S,2H] */
}

void at_parts_add(at_parts *parts, const at_hidden *hidden, int layers)
{
    for (int i = 0; i < layers; i++) {
        parts->part[parts->count++] = hidden[i].h;
        if (hidden[i].c)
            parts->part[parts->count++] = hidden[i].c;
    }
}

void at_parts_take(const at_parts *parts, int from, const at_cell *cell, at_hidden *hidden, int layers)
{
    for (int i = 0; i < layers; i++) {
        hidden[i].h = parts->part[from++];
        hidden[i].c = cell->kind == AT_CELL_LSTM ? parts->part[from++] : NULL;
    }
}

bool at_gate_declare(at_model *model, at_dense *gate, const char *name, int64_t size, at_error *error)
{
    if (model->settings.gate)
        *gate = at_dense_declare(model->params, name, size, 1, true, error);
    return error->code == AT_OK;
}

at_tensor *at_gate_of(const at_model *model, const at_pass *pass, const at_dense *gate, at_tensor *h)
{
    return model->settings.gate ? at_dense_apply(pass->tape, model->params, gate, h, AT_ACT_SIGMOID) : NULL;
}

at_tensor *at_gate_apply(const at_model *model, const at_pass *pass, const at_dense *gate, at_tensor *h, at_tensor *c)
{
    return model->settings.gate ? at_mul(c, at_gate_of(model, pass, gate, h)) : c; /* [...,D] by [...,1] */
}

at_tensor *at_state_position(const at_pass *pass, int64_t rows, int64_t position)
{
    at_tensor *tensor = at_tensor_make(pass->tape, AT_SHAPE(rows, 1));
    for (int64_t b = 0; tensor && b < rows; b++)
        tensor->value[b] = (at_real)position;
    return tensor;
}

int64_t at_state_position_of(const at_tensor *position)
{
    return position && position->shape.dim[0] > 0 ? (int64_t)position->value[0] : 0;
}
