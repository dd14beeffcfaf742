/* A recurrent cell over whole sequences: one operation, one node on the tape, the recurrent weights packed once. */
#include <string.h>

#include "block.h"
#include "gates.h"

enum { INPUTS = 5 };

typedef struct sequence {
    const at_gates *gates;
    at_params *params;
    int u;
    int64_t rows, steps, hidden, width; /* B, n, H, gates*H */
    const int64_t *lengths;             /* [B] */
    bool backward;
    at_real *h, *c;       /* [n+1,B,H]: the state before each step, and after the last */
    at_real *kept;        /* [n,B,kept*H] */
    at_real *product;     /* [B, gates*H]: U h' of the step at work */
    const at_real *x;     /* [B,n,gates*H] */
    const at_real *extra; /* [B,gates*H] or NULL: added to U h' */
    at_real *out;         /* [B,n,H] */
    int64_t step;         /* at work */
    const at_real *grad;  /* the way back: of out */
    at_real *x_grad;      /* [B,n,gates*H], added to; NULL: not wanted */
    at_real *x_row;       /* [B,gates*H] scratch */
    at_real *u_grad;      /* [n,B,gates*H], set */
    at_real *h_grad;      /* [B,H]: of the state after the step at work, then of the one before it */
    at_real *c_grad;
} sequence;

/* Which position of the sequence the step at work is at. */
static int64_t position_of(const sequence *s)
{
    return s->backward ? s->steps - 1 - s->step : s->step;
}

static at_gate_row row_of(const sequence *s, int64_t b)
{
    int64_t H = s->hidden, at = (s->step * s->rows + b) * H, next = at + s->rows * H;
    return (at_gate_row){.x = s->x + (b * s->steps + position_of(s)) * s->width,
                         .u = s->product + b * s->width,
                         .h0 = s->h + at,
                         .c0 = s->c ? s->c + at : NULL,
                         .h1 = s->h + next,
                         .c1 = s->c ? s->c + next : NULL,
                         .kept = s->kept + at * s->gates->kept};
}

static void forward_range(void *context, int64_t from, int64_t to)
{
    const sequence *s = context;
    size_t bytes = (size_t)s->hidden * sizeof(at_real);
    for (int64_t b = from; b < to; b++) {
        at_gate_row row = row_of(s, b);
        at_real *out = s->out + (b * s->steps + position_of(s)) * s->hidden;
        if (position_of(s) < s->lengths[b]) {
            s->gates->forward(&row, s->hidden);
            memcpy(out, row.h1, bytes);
        } else {
            memcpy(row.h1, row.h0, bytes);
            if (row.c1)
                memcpy(row.c1, row.c0, bytes);
            memset(out, 0, bytes);
        }
    }
}

static void backward_range(void *context, int64_t from, int64_t to)
{
    const sequence *s = context;
    int64_t H = s->hidden, width = s->width;
    for (int64_t b = from; b < to; b++) {
        int64_t place = b * s->steps + position_of(s);
        at_real *u_grad = s->u_grad + (s->step * s->rows + b) * width, *h_grad = s->h_grad + b * H;
        if (position_of(s) >= s->lengths[b]) {
            memset(u_grad, 0, (size_t)width * sizeof *u_grad);
            continue;
        }
        for (int64_t i = 0; i < H; i++)
            h_grad[i] += s->grad[place * H + i];
        /* A row reads each of its gradients before it sets it, so the state's may be the same memory. */
        at_gate_back back = {.row = row_of(s, b),
                             .h1_grad = h_grad,
                             .c1_grad = s->c ? s->c_grad + b * H : NULL,
                             .x_grad = s->x_row + b * width,
                             .u_grad = u_grad,
                             .h0_grad = h_grad,
                             .c0_grad = s->c ? s->c_grad + b * H : NULL};
        s->gates->backward(&back, H);
        for (int64_t i = 0; s->x_grad && i < width; i++)
            s->x_grad[place * width + i] += back.x_grad[i];
    }
}

static bool product(at_tape *tape, const at_gemm *gemm)
{
    return at_gemm_run(gemm, at_tape_arena(tape)) ||
           at_fail(at_tape_error(tape), AT_FAILED, "memory is out: a recurrent product has no scratch");
}

/* The step's h' U^T (+ extra), or on the way back what comes to h' through it. */
static bool recurrent_product(at_tape *tape, const sequence *s, const at_real *u, bool back)
{
    int64_t H = s->hidden, width = s->width;
    if (s->extra && !back)
        memcpy(s->product, s->extra, (size_t)(s->rows * width) * sizeof *s->product);
    at_gemm gemm = {.m = s->rows,
                    .n = back ? H : width,
                    .k = back ? width : H,
                    .a = back ? s->u_grad + s->step * s->rows * width : s->h + s->step * s->rows * H,
                    .a_row = back ? width : H,
                    .a_col = 1,
                    .b = u,
                    .b_row = back ? H : 1,
                    .b_col = back ? 1 : H,
                    .packed = at_params_packed(s->params, s->u, !back),
                    .c = back ? s->h_grad : s->product,
                    .c_row = back ? H : width,
                    .accumulate = back || s->extra};
    return product(tape, &gemm);
}

/* dU += the sum over steps and rows of du^T h' */
static void weights_backward(at_tape *tape, const sequence *s, at_real *grad)
{
    at_gemm gemm = {.m = s->width,
                    .n = s->hidden,
                    .k = s->steps * s->rows,
                    .a = s->u_grad,
                    .a_row = 1,
                    .a_col = s->width,
                    .b = s->h,
                    .b_row = s->hidden,
                    .b_col = 1,
                    .c = grad,
                    .c_row = s->hidden,
                    .accumulate = true};
    product(tape, &gemm);
}

/* Inputs x, U, first h, first c, extra; outputs all h, last h, last c. */
static void sequence_backward(at_node *node)
{
    sequence s = *(const sequence *)node->saved;
    at_tensor *u = node->inputs[1];
    at_tape *tape = u->tape;
    at_real *grad[INPUTS]; /* before the mark: they stay */
    for (int i = 0; i < INPUTS; i++)
        grad[i] = at_tensor_grad(node->inputs[i]);
    int64_t state = s.rows * s.hidden;
    at_mark mark = at_arena_mark(at_tape_arena(tape));
    s.grad = node->outputs[0]->grad;
    s.x_grad = grad[0];
    s.x_row = at_room(tape, (size_t)(s.rows * s.width) * sizeof *s.x_row);
    s.u_grad = at_room(tape, (size_t)(s.steps * s.rows * s.width) * sizeof *s.u_grad);
    s.h_grad = at_keep(tape, node->outputs[1]->grad, (size_t)state * sizeof *s.h_grad);
    s.c_grad = s.c ? at_keep(tape, node->outputs[2]->grad, (size_t)state * sizeof *s.c_grad) : NULL;
    bool ok = s.x_row && s.u_grad && s.h_grad && (!s.c || s.c_grad);
    for (s.step = s.steps - 1; ok && s.step >= 0; s.step--) {
        at_ranges(s.rows, s.width, backward_range, &s);
        ok = recurrent_product(tape, &s, u->value, true);
    }
    if (ok && grad[1])
        weights_backward(tape, &s, grad[1]);
    if (ok) {
        at_grad_add(grad[2], s.h_grad, state);
        at_grad_add(grad[3], s.c_grad, state);
        for (int64_t step = 0; step < s.steps; step++)
            at_grad_add(grad[4], s.u_grad + step * s.rows * s.width, s.rows * s.width);
    }
    at_arena_release(at_tape_arena(tape), mark);
}

static const at_op sequence_op = {"cell_sequence", sequence_backward};

/* The first state: copied, or zeros. */
static bool begin(at_tape *tape, at_real *to, const at_tensor *from, int64_t rows, int64_t hidden)
{
    size_t bytes = (size_t)(rows * hidden) * sizeof *to;
    if (!from) {
        memset(to, 0, bytes);
        return true;
    }
    if (!at_shape_same(from->shape, AT_SHAPE(rows, hidden)))
        return at_fail(at_tape_error(tape), AT_FAILED, "cell_sequence: the first state is %s and must be [%lld,%lld]",
                       AT_TEXT(from->shape), (long long)rows, (long long)hidden);
    memcpy(to, from->value, bytes);
    return true;
}

static const int64_t *kept_lengths(at_tape *tape, const int64_t *lengths, int64_t rows, int64_t steps)
{
    int64_t *kept = at_room(tape, (size_t)rows * sizeof *kept);
    for (int64_t b = 0; kept && b < rows; b++) {
        kept[b] = lengths ? lengths[b] : steps;
        if (kept[b] < 0 || kept[b] > steps)
            return AT_REFUSE(tape, "cell_sequence: length %lld of row %lld is outside 0 to %lld, the steps there are",
                             (long long)kept[b], (long long)b, (long long)steps);
    }
    return kept;
}

at_tensor *at_cell_run(at_tape *tape, at_params *params, const at_cell *cell, at_tensor *x_product, at_tensor *extra,
                       const int64_t *lengths, at_hidden first, bool backward, at_hidden *last)
{
    *last = (at_hidden){0};
    at_tensor *u = at_param(tape, params, cell->u);
    if (!x_product || !u)
        return NULL;
    at_shape shape = x_product->shape;
    sequence s = {.gates = at_gates_of(cell->kind),
                  .params = params,
                  .u = cell->u,
                  .hidden = cell->hidden,
                  .width = at_cell_width(cell),
                  .backward = backward};
    if (shape.rank != 3 || shape.dim[2] != s.width)
        return AT_REFUSE(tape, "cell_sequence: the input products are %s and must be [B,n,%lld]", AT_TEXT(shape),
                         (long long)s.width);
    if (extra && !at_shape_same(extra->shape, AT_SHAPE(shape.dim[0], s.width)))
        return AT_REFUSE(tape, "cell_sequence: what is added to U h' is %s and must be [%lld,%lld]",
                         AT_TEXT(extra->shape), (long long)shape.dim[0], (long long)s.width);
    const int64_t B = s.rows = shape.dim[0], n = s.steps = shape.dim[1], H = s.hidden;
    at_tensor *out = at_tensor_make(tape, AT_SHAPE(B, n, H));
    size_t states = (size_t)((n + 1) * B * H) * sizeof *s.h;
    s.lengths = kept_lengths(tape, lengths, B, n);
    s.h = at_room(tape, states);
    s.c = s.gates->has_c ? at_room(tape, states) : NULL;
    s.kept = at_room(tape, (size_t)(n * B * s.gates->kept * H) * sizeof *s.kept);
    s.product = at_room(tape, (size_t)(B * s.width) * sizeof *s.product);
    if (!at_tape_ok(tape) || !begin(tape, s.h, first.h, B, H) || (s.c && !begin(tape, s.c, first.c, B, H)))
        return NULL;
    s.x = x_product->value;
    s.extra = extra ? extra->value : NULL;
    s.out = out->value;
    for (s.step = 0; s.step < n; s.step++) {
        if (!recurrent_product(tape, &s, u->value, false))
            return NULL;
        at_ranges(B, s.width, forward_range, &s);
    }
    last->h = at_tensor_over(tape, AT_SHAPE(B, H), s.h + n * B * H);
    last->c = s.c ? at_tensor_over(tape, AT_SHAPE(B, H), s.c + n * B * H) : NULL;
    at_tensor *inputs[INPUTS] = {x_product, u, first.h, s.c ? first.c : NULL, extra};
    return at_record(tape, &sequence_op, (at_tensor *[]){out, last->h, last->c}, s.c ? 3 : 2, inputs, INPUTS,
                     at_keep(tape, &s, sizeof s));
}

at_tensor *at_cell_sequence(at_tape *tape, at_params *params, const at_cell *cell, at_tensor *x, const int64_t *lengths,
                            at_hidden first, bool backward, at_hidden *last)
{
    return at_cell_run(tape, params, cell, at_cell_input(tape, params, cell, x), NULL, lengths, first, backward, last);
}
