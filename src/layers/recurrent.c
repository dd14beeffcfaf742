/* A recurrent layer on the caller's arrays, the same code as in the models. */
#include <stdlib.h>
#include <string.h>

#include "attend_unstable.h"
#include "layers/gates_internal.h"

struct at_recurrent {
    at_params *params;
    at_cell cell;
    at_arena *arena;
};

static bool cell_named(const char *name, at_cell_kind *kind, at_error *error)
{
    static const at_cell_kind kinds[] = {AT_CELL_RNN, AT_CELL_GRU, AT_CELL_LSTM};
    enum { COUNT = sizeof kinds / sizeof *kinds };
    const char *names[COUNT];
    for (int i = 0; i < COUNT; i++) {
        names[i] = at_gates_of(kinds[i])->name;
        *kind = kinds[i];
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return at_unknown("cell", name, names, COUNT, error);
}

at_recurrent *at_recurrent_new(const char *cell, int64_t size, uint64_t seed, at_error *error)
{
    enum { MOST = 1 << 14 };
    at_cell_kind kind;
    if (error->code != AT_OK || !cell_named(cell, &kind, error))
        return NULL;
    if (size < 1 || size > MOST) {
        at_fail(error, AT_USAGE, "a recurrent layer has the size %lld and must have one from 1 to %d", (long long)size,
                MOST);
        return NULL;
    }
    at_recurrent *layer = calloc(1, sizeof *layer);
    if (layer)
        *layer = (at_recurrent){.params = at_params_new(), .arena = at_arena_new()};
    if (layer && layer->params && layer->arena) {
        layer->cell = at_cell_declare(layer->params, "layer", kind, size, size, error);
        if (error->code == AT_OK && at_params_fix(layer->params, error)) {
            at_init_all(layer->params, seed);
            return layer;
        }
    }
    at_no_memory(error, "a recurrent layer");
    at_recurrent_free(layer);
    return NULL;
}

void at_recurrent_free(at_recurrent *layer)
{
    if (!layer)
        return;
    at_params_free(layer->params);
    at_arena_free(layer->arena);
    free(layer);
}

bool at_recurrent_run(at_recurrent *layer, const float *x, int64_t length, float *states, at_error *error)
{
    const int64_t size = layer->cell.hidden;
    if (error->code != AT_OK || length < 1)
        return at_fail(error, AT_USAGE, "a recurrent layer reads %lld positions and must read at least 1",
                       (long long)length);
    at_arena_reset(layer->arena);
    at_tape *tape = at_tape_new(layer->arena, false);
    at_tensor *in = tape ? at_tensor_make(tape, AT_SHAPE(1, length, size)) : NULL;
    if (!in)
        return at_no_memory(error, "%lld positions of a recurrent layer", (long long)length);
    for (int64_t i = 0; i < length * size; i++)
        in->value[i] = (at_real)x[i];
    at_hidden last;
    at_tensor *h = at_cell_sequence(tape, layer->params, &layer->cell, &(at_sequence){.x = in}, &last);
    if (!h)
        return at_fail(error, at_tape_error(tape)->code, "%s", at_tape_error(tape)->text);
    for (int64_t i = 0; i < length * size; i++)
        states[i] = (float)h->value[i];
    return true;
}
