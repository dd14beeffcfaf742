/* Recurrent cells: their parameters, and one step. */
#include <stdio.h>
#include <string.h>

#include "layers/gates_internal.h"

at_cell at_cell_declare(at_params *params, const char *name, at_cell_kind kind, int64_t in, int64_t hidden,
                        at_error *error)
{
    const at_gates *gates = at_gates_of(kind);
    char full[120];
    at_cell cell = {.kind = kind, .in = in, .hidden = hidden, .w = -1, .u_bias = -1, .candidate = -1};
    snprintf(full, sizeof full, "%s.W", name);
    if (in > 0)
        cell.w = at_params_add_matrix(params, full, AT_SHAPE(at_cell_width(&cell), in), error);
    snprintf(full, sizeof full, "%s.U", name);
    cell.u = at_params_add_matrix(params, full, AT_SHAPE(gates->first * hidden, hidden), error);
    snprintf(full, sizeof full, "%s.recurrent.b", name);
    if (kind == AT_CELL_GRU_BIAS)
        cell.u_bias = at_params_add(params, full, AT_SHAPE(gates->first * hidden), error);
    snprintf(full, sizeof full, "%s.candidate.U", name);
    if (gates->reset)
        cell.candidate = at_params_add_matrix(params, full, AT_SHAPE(hidden, hidden), error);
    snprintf(full, sizeof full, "%s.b", name);
    cell.b = at_params_add(params, full, AT_SHAPE(at_cell_width(&cell)), error);
    return cell;
}

int64_t at_cell_width(const at_cell *cell)
{
    return at_gates_of(cell->kind)->gates * cell->hidden;
}

static at_tensor *zeros(at_tape *tape, at_shape shape)
{
    at_tensor *tensor = at_tensor_make(tape, shape);
    if (tensor)
        memset(tensor->value, 0, (size_t)at_shape_count(shape) * sizeof(at_real));
    return tensor;
}

at_hidden at_hidden_zeros(at_tape *tape, const at_cell *cell, int64_t rows)
{
    at_shape shape = AT_SHAPE(rows, cell->hidden);
    return (at_hidden){.h = zeros(tape, shape), .c = at_gates_of(cell->kind)->has_c ? zeros(tape, shape) : NULL};
}

at_tensor *at_cell_input(at_tape *tape, at_params *params, const at_cell *cell, at_tensor *x)
{
    at_tensor *b = at_param(tape, params, cell->b);
    return cell->w < 0 ? at_add(x, b) : at_linear(x, at_weights(tape, params, cell->w), b, AT_ACT_NONE);
}

/* A sequence of one step. */
at_hidden at_cell_step(at_tape *tape, at_params *params, const at_cell *cell, at_tensor *x_product, at_hidden before)
{
    at_hidden after;
    at_tensor *x = x_product ? at_reshape(x_product, AT_SHAPE(x_product->shape.dim[0], 1, -1)) : NULL;
    at_cell_run(tape, params, cell, &(at_sequence){.x = x, .first = before}, &after);
    return at_tape_ok(tape) ? after : (at_hidden){0};
}
