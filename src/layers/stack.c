/* Layers of recurrent cells. */
#include <stdio.h>

#include "layers/layers.h"

at_stack at_stack_declare(at_params *params, const char *name, at_cell_kind kind, int layers, int64_t in,
                          int64_t hidden, bool both, at_error *error)
{
    at_stack stack = {.layers = layers, .both = both};
    if (layers < 1 || layers > AT_MOST_LAYERS)
        at_fail(error, AT_USAGE, "`layers` is %d and must be from 1 to %d for recurrent layers", layers,
                AT_MOST_LAYERS);
    if (both && hidden % 2)
        at_fail(error, AT_USAGE,
                "`hidden` is %lld and must be even: half of a bidirectional layer reads each direction",
                (long long)hidden);
    const int64_t each = both ? hidden / 2 : hidden;
    for (int i = 0; i < layers && error->code == AT_OK; i++) {
        char full[100];
        snprintf(full, sizeof full, both ? "%s.%d.forward" : "%s.%d", name, i + 1);
        stack.ahead[i] = at_cell_declare(params, full, kind, i == 0 ? in : hidden, each, error);
        snprintf(full, sizeof full, "%s.%d.backward", name, i + 1);
        if (both)
            stack.back[i] = at_cell_declare(params, full, kind, i == 0 ? in : hidden, each, error);
    }
    return stack;
}

/* [a; b] along the last axis */
static at_tensor *join(at_tensor *a, at_tensor *b)
{
    return a && b ? at_concat((at_tensor *[]){a, b}, 2, a->shape.rank - 1) : NULL;
}

at_tensor *at_stack_run(at_tape *tape, at_params *params, const at_stack *stack, const at_stack_input *in,
                        at_hidden *last)
{
    at_tensor *x = in->x;
    for (int i = 0; i < stack->layers; i++) {
        at_sequence below = {.x = i > 0 && in->rng ? at_dropout(x, in->keep, in->rng) : x,
                             .lengths = in->lengths,
                             .first = in->first ? in->first[i] : (at_hidden){0}};
        x = at_cell_sequence(tape, params, &stack->ahead[i], &below, &last[i]);
        if (!stack->both)
            continue;
        at_hidden end;
        below.backward = true;
        x = join(x, at_cell_sequence(tape, params, &stack->back[i], &below, &end));
        last[i] = (at_hidden){.h = join(last[i].h, end.h), .c = join(last[i].c, end.c)};
    }
    return x;
}
