/* Recurrent cells: a step, and a whole sequence as one operation.
 *
 * The input products W x + b of all steps are one product before either. The sequence keeps its states with time first,
 * [n+1,B,H], so that the gradient of U is one product over all steps, too. A row that is not at work in a step, because
 * its own sequence is shorter, keeps its state: padding changes no bit. */
#include <stdio.h>
#include <string.h>

#include "block.h"
#include "gates.h"

at_cell at_cell_declare(at_params *params, const char *name, at_cell_kind kind, int64_t in, int64_t hidden,
                        at_error *error)
{
    char full[120];
    at_cell cell = {.kind = kind, .in = in, .hidden = hidden, .w = -1};
    snprintf(full, sizeof full, "%s.W", name);
    if (in > 0)
        cell.w = at_params_add(params, full, AT_SHAPE(at_cell_width(&cell), in), error);
    snprintf(full, sizeof full, "%s.U", name);
    cell.u = at_params_add(params, full, AT_SHAPE(at_cell_width(&cell), hidden), error);
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
    return cell->w < 0 ? at_add(x, b) : at_linear(x, at_param(tape, params, cell->w), b, AT_ACT_NONE);
}

/* Is the tensor [B,size], and is it there? Says so on the tape if not. */
static bool fits(at_tape *tape, const char *op, const char *what, const at_tensor *t, int64_t rows, int64_t size)
{
    if (!t)
        return at_fail(at_tape_error(tape), AT_FAILED, "%s: the %s is not given", op, what);
    return at_shape_same(t->shape, AT_SHAPE(rows, size)) ||
           at_fail(at_tape_error(tape), AT_FAILED, "%s: the %s is %s and must be [%lld,%lld]", op, what,
                   AT_TEXT(t->shape), (long long)rows, (long long)size);
}

/* ---- cell_step: the gates of one step. Inputs x, u, h', c'; outputs h, c ---- */

typedef struct step {
    at_cell_kind kind;
    int64_t hidden;
    at_real *kept;                  /* [B, kept*H] */
    const at_real *x, *u, *h0, *c0; /* of all rows */
    at_real *h1, *c1;
    const at_real *h1_grad, *c1_grad;
    at_real *x_grad, *u_grad, *h0_grad, *c0_grad; /* scratch, set */
} step;

static at_gate_row step_row(const step *s, int64_t b)
{
    const at_gates *gates = at_gates_of(s->kind);
    int64_t H = s->hidden, width = gates->gates * H;
    return (at_gate_row){.x = s->x + b * width,
                         .u = s->u + b * width,
                         .h0 = s->h0 + b * H,
                         .c0 = gates->has_c ? s->c0 + b * H : NULL,
                         .h1 = s->h1 + b * H,
                         .c1 = gates->has_c ? s->c1 + b * H : NULL,
                         .kept = s->kept + b * gates->kept * H};
}

static void step_range(void *context, int64_t from, int64_t to)
{
    const step *s = context;
    for (int64_t b = from; b < to; b++) {
        at_gate_row row = step_row(s, b);
        at_gates_of(s->kind)->forward(&row, s->hidden);
    }
}

static void step_back_range(void *context, int64_t from, int64_t to)
{
    const step *s = context;
    const at_gates *gates = at_gates_of(s->kind);
    int64_t H = s->hidden, width = gates->gates * H;
    for (int64_t b = from; b < to; b++) {
        at_gate_back back = {.row = step_row(s, b),
                             .h1_grad = s->h1_grad + b * H,
                             .c1_grad = gates->has_c ? s->c1_grad + b * H : NULL,
                             .x_grad = s->x_grad + b * width,
                             .u_grad = s->u_grad + b * width,
                             .h0_grad = s->h0_grad + b * H,
                             .c0_grad = gates->has_c ? s->c0_grad + b * H : NULL};
        gates->backward(&back, H);
    }
}

static void step_backward(at_node *node)
{
    step s = *(const step *)node->saved;
    at_tensor *h = node->outputs[0], *c0 = node->inputs[3];
    at_tape *tape = h->tape;
    int64_t rows = h->shape.dim[0], H = s.hidden, width = at_gates_of(s.kind)->gates * H;
    at_real *grad[4]; /* before the mark: they stay */
    for (int i = 0; i < 4; i++)
        grad[i] = at_tensor_grad(node->inputs[i]);
    at_mark mark = at_arena_mark(at_tape_arena(tape));
    s.h1_grad = h->grad;
    s.c1_grad = c0 ? node->outputs[1]->grad : NULL;
    s.x_grad = at_room(tape, (size_t)(rows * (2 * width + 2 * H)) * sizeof *s.x_grad);
    if (s.x_grad) {
        s.u_grad = s.x_grad + rows * width;
        s.h0_grad = s.u_grad + rows * width;
        s.c0_grad = s.h0_grad + rows * H;
        at_ranges(rows, width, step_back_range, &s);
        at_grad_add(grad[0], s.x_grad, rows * width);
        at_grad_add(grad[1], s.u_grad, rows * width);
        at_grad_add(grad[2], s.h0_grad, rows * H);
        at_grad_add(grad[3], s.c0_grad, rows * H);
    }
    at_arena_release(at_tape_arena(tape), mark);
}

static const at_op step_op = {"cell_step", step_backward};

static at_hidden step_gates(at_tape *tape, const at_cell *cell, at_tensor *x_product, at_tensor *h_product,
                            at_hidden before)
{
    const at_gates *gates = at_gates_of(cell->kind);
    if (!x_product || !h_product || !before.h)
        return (at_hidden){0};
    int64_t H = cell->hidden, rows = before.h->shape.dim[0], width = gates->gates * H;
    if (!fits(tape, "cell_step", "input product", x_product, rows, width) ||
        !fits(tape, "cell_step", "recurrent product", h_product, rows, width) ||
        !fits(tape, "cell_step", "state", before.h, rows, H) ||
        (gates->has_c && !fits(tape, "cell_step", "state's c", before.c, rows, H)))
        return (at_hidden){0};
    at_hidden after = {.h = at_tensor_make(tape, AT_SHAPE(rows, H)),
                       .c = gates->has_c ? at_tensor_make(tape, AT_SHAPE(rows, H)) : NULL};
    step s = {.kind = cell->kind,
              .hidden = H,
              .kept = at_room(tape, (size_t)(rows * gates->kept * H) * sizeof *s.kept),
              .x = x_product->value,
              .u = h_product->value,
              .h0 = before.h->value,
              .c0 = gates->has_c ? before.c->value : NULL,
              .h1 = after.h ? after.h->value : NULL,
              .c1 = after.c ? after.c->value : NULL};
    void *saved = at_keep(tape, &s, sizeof s);
    if (!saved)
        return (at_hidden){0};
    at_ranges(rows, width, step_range, &s);
    at_tensor *inputs[] = {x_product, h_product, before.h, gates->has_c ? before.c : NULL};
    if (!at_record(tape, &step_op, (at_tensor *[]){after.h, after.c}, gates->has_c ? 2 : 1, inputs, 4, saved))
        return (at_hidden){0};
    return after;
}

at_hidden at_cell_step(at_tape *tape, at_params *params, const at_cell *cell, at_tensor *x_product, at_hidden before)
{
    at_tensor *h_product = at_linear(before.h, at_param(tape, params, cell->u), NULL, AT_ACT_NONE);
    return step_gates(tape, cell, x_product, h_product, before);
}
