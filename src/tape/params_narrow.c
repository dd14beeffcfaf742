/* Parameters in fewer bits: for models that are used and not trained. */
#include <stdlib.h>
#include <string.h>

#include "tape/block.h"
#include "tape/params_internal.h"

bool at_params_is_matrix(const at_params *params, int index)
{
    return params->entries[index].is_matrix;
}

at_number_type at_params_type(const at_params *params, int index)
{
    return params->entries[index].type;
}

int64_t at_params_bytes(const at_params *params)
{
    int64_t bytes = 0;
    for (int i = 0; i < params->number; i++) {
        const at_param_entry *e = &params->entries[i];
        bytes += at_shape_count(e->shape) * (int64_t)at_number_size(e->type);
        bytes += e->type == AT_NUMBERS_INT8 ? e->shape.dim[0] * (int64_t)sizeof(at_real) : 0;
    }
    return bytes;
}

int64_t at_params_held(const at_params *params)
{
    return (int64_t)at_arena_peak(params->arena);
}

bool at_params_is_open(const at_params *params, int index)
{
    return !params->values && params->entries[index].is_matrix;
}

void at_params_set_type(at_params *params, int index, at_number_type type)
{
    if (at_params_is_open(params, index))
        params->entries[index].type = type;
}

void at_params_put_narrow(at_params *params, int index, const void *rows, const at_real *scale)
{
    at_param_entry *e = &params->entries[index];
    at_narrow_pack(e->type, rows, e->shape.dim[0], e->shape.dim[1], e->narrow);
    if (scale)
        memcpy(e->scale, scale, (size_t)e->shape.dim[0] * sizeof *scale);
}

const at_real *at_params_get_narrow(const at_params *params, int index, void *rows)
{
    const at_param_entry *e = &params->entries[index];
    at_narrow_unpack(e->type, e->narrow, e->shape.dim[0], e->shape.dim[1], rows);
    return e->scale;
}

static at_narrow narrow_of(const at_param_entry *e)
{
    return e->type == AT_NUMBERS_REAL ? (at_narrow){0} : (at_narrow){e->type, e->narrow, e->scale};
}

at_narrow at_params_narrow(const at_params *params, int index)
{
    return narrow_of(&params->entries[index]);
}

/* ---- Another type --------------------------------------------------------------------------------------------- */

/* All rows of a matrix, or all numbers of another parameter, which is among `values`. */
static void copy_wide(const at_real *values, const at_param_entry *e, at_real *to)
{
    const at_narrow narrow = narrow_of(e);
    if (!narrow.numbers)
        memcpy(to, values + e->offset, (size_t)at_shape_count(e->shape) * sizeof *to);
    for (int64_t i = 0; narrow.numbers && i < e->shape.dim[0]; i++)
        at_narrow_row(&narrow, e->shape.dim[1], i, to + i * e->shape.dim[1]);
}

/* A matrix in fewer bits. `room` is for memory that is not needed afterwards. */
static bool round_entry(const at_real *values, const at_param_entry *from, at_param_entry *to, at_arena *room,
                        at_error *error)
{
    const int64_t rows = to->shape.dim[0], columns = to->shape.dim[1];
    at_real *wide = at_arena_take(room, (size_t)(rows * columns) * sizeof *wide);
    void *numbers = at_arena_take(room, (size_t)(rows * columns) * at_number_size(to->type));
    if (!wide || !numbers)
        return at_no_memory(error, "the matrix '%s' in fewer bits", to->name);
    copy_wide(values, from, wide);
    if (!at_narrow_round(to->type, wide, rows, columns, numbers, to->scale))
        return at_fail(error, AT_UNSUPPORTED,
                       "the matrix '%s' has a number that %s cannot hold; bf16 holds every finite number below 3.39e38",
                       to->name, at_number_name(to->type));
    at_narrow_pack(to->type, numbers, rows, columns, to->narrow);
    return true;
}

static bool convert_entry(const at_params *params, int index, at_param_entry *to, at_real *values, at_arena *room,
                          at_error *error)
{
    const at_param_entry *from = &params->entries[index];
    const at_mark mark = at_arena_mark(room);
    if (to->type == AT_NUMBERS_REAL) {
        copy_wide(params->values, from, values + to->offset);
    } else if (to->type == from->type) { /* bit for bit: a row of int8 that is rounded twice may lose a bit */
        memcpy(to->narrow, from->narrow,
               (size_t)at_narrow_count(to->shape.dim[0], to->shape.dim[1]) * at_number_size(to->type));
        if (to->scale)
            memcpy(to->scale, from->scale, (size_t)to->shape.dim[0] * sizeof *to->scale);
    } else {
        round_entry(params->values, from, to, room, error);
    }
    at_arena_release(room, mark);
    return error->code == AT_OK;
}

/* The new entries, with memory, and the new block. */
static at_param_entry *new_entries(const at_params *params, at_number_type type, at_arena *arena, at_real **values)
{
    at_param_entry *entries = malloc((size_t)params->number * sizeof *entries + 1);
    int64_t count = 0;
    bool done = entries;
    for (int i = 0; done && i < params->number; i++) {
        entries[i] = params->entries[i];
        entries[i].type = entries[i].is_matrix ? type : AT_NUMBERS_REAL;
        done = at_param_entry_make(&entries[i], arena, &count);
    }
    if (done && at_block_make(arena, count, values))
        return entries;
    free(entries);
    return NULL;
}

bool at_params_convert(at_params *params, at_number_type type, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    at_arena *arena = at_arena_new(), *room = at_arena_new();
    at_real *values = NULL;
    at_param_entry *entries = arena && room ? new_entries(params, type, arena, &values) : NULL;
    if (!entries)
        at_no_memory(error, "%lld parameters as %s", (long long)params->count, at_number_name(type));
    for (int i = 0; error->code == AT_OK && i < params->number; i++)
        convert_entry(params, i, &entries[i], values, room, error);
    if (error->code == AT_OK) {
        memcpy(params->entries, entries, (size_t)params->number * sizeof *entries);
        at_arena_free(params->arena);
        params->arena = arena;
        params->values = values;
        params->grads = NULL;
        arena = NULL;
        at_params_changed(params);
    }
    free(entries);
    at_arena_free(arena);
    at_arena_free(room);
    return error->code == AT_OK;
}

/* ---- On a tape ------------------------------------------------------------------------------------------------ */

const at_real *at_weights_wide(at_tensor *weights)
{
    if (weights->value || !weights->params)
        return weights->value;
    at_real *wide = at_room(weights->tape, (size_t)at_shape_count(weights->shape) * sizeof *wide);
    if (wide)
        copy_wide(NULL, &weights->params->entries[weights->param], wide);
    return wide;
}

at_tensor *at_param(at_tape *tape, at_params *params, int index)
{
    at_tensor *leaf = at_weights(tape, params, index);
    if (!leaf || leaf->value)
        return leaf;
    const at_real *wide = at_weights_wide(leaf);
    return wide ? at_leaf(tape, leaf->shape, wide, NULL, false) : NULL;
}
