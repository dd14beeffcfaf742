/* A recurrent cell over whole sequences: one operation, one node on the tape, the recurrent weights packed once.
 *
 * The input products W x + b of all steps are one product before it. States lie with time first, [n+1,B,H], so that the
 * gradient of U is one product over all steps, too. At positions beyond its length a row keeps its state: padding changes
 * no bit. */
#include <string.h>

#include "kernels/isa.h"
#include "layers/gates_internal.h"
#include "tape/block.h"

enum { INPUTS = 6 };

typedef struct sequence {
    const at_gates *gates;
    at_params *params;
    int u, candidate;                          /* candidate: the U of r o h', with a reset */
    int64_t rows, steps, hidden, width, first; /* B, n, H, gates*H, and how much of that is U h' */
    const int64_t *lengths;                    /* [B] */
    bool backward;
    at_real *h, *c;        /* [n+1,B,H]: the state before each step, and after the last */
    at_real *saved;        /* [n,B,saved*H] */
    at_real *product;      /* [B,first]: U h' of the current step */
    at_real *reset;        /* [n,B,H]: r o h'; NULL without a reset */
    at_real *u_reset;      /* [B,H]: U (r o h') of the current step */
    const at_real *x;      /* [B,n,gates*H] */
    const at_real *extra;  /* [B,gates*H] or NULL: added to U h' */
    at_real *out;          /* [B,n,H] */
    int64_t step;          /* the current one */
    const at_real *grad;   /* backward pass: of out */
    at_real *x_grad;       /* [B,n,gates*H], added to; NULL: not wanted */
    at_real *x_row;        /* [B,gates*H] scratch */
    at_real *u_grad;       /* [n,B,first], set */
    at_real *u_reset_grad; /* [n,B,H], set */
    at_real *reset_grad;   /* [B,H] scratch */
    at_real *h_grad;       /* [B,H]: of the state after the current step, then of the state before it */
    at_real *c_grad;
} sequence;

/* The position of the current step in the sequence. */
static int64_t position_of(const sequence *s)
{
    return s->backward ? s->steps - 1 - s->step : s->step;
}

static at_gate_row row_of(const sequence *s, int64_t b)
{
    int64_t H = s->hidden, at = (s->step * s->rows + b) * H, next = at + s->rows * H;
    return (at_gate_row){.x = s->x + (b * s->steps + position_of(s)) * s->width,
                         .u = s->product + b * s->first,
                         .u_reset = s->reset ? s->u_reset + b * H : NULL,
                         .reset = s->reset ? s->reset + at : NULL,
                         .h0 = s->h + at,
                         .c0 = s->c ? s->c + at : NULL,
                         .h1 = s->h + next,
                         .c1 = s->c ? s->c + next : NULL,
                         .saved = s->saved + at * s->gates->saved};
}

static void reset_range(void *context, int64_t from, int64_t to)
{
    const sequence *s = context;
    for (int64_t b = from; b < to; b++) {
        at_gate_row row = row_of(s, b);
        if (position_of(s) < s->lengths[b])
            s->gates->reset(&row, s->hidden);
        else
            memset(row.reset, 0, (size_t)s->hidden * sizeof *row.reset);
    }
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

/* A row reads each gradient before it writes it, so the state's before and after a step share memory. */
static at_gate_back back_of(const sequence *s, int64_t b)
{
    int64_t H = s->hidden, slot = s->step * s->rows + b;
    return (at_gate_back){.row = row_of(s, b),
                          .h1_grad = s->h_grad + b * H,
                          .c1_grad = s->c ? s->c_grad + b * H : NULL,
                          .x_grad = s->x_row + b * s->width,
                          .u_grad = s->u_grad + slot * s->first,
                          .u_reset_grad = s->reset ? s->u_reset_grad + slot * H : NULL,
                          .reset_grad = s->reset ? s->reset_grad + b * H : NULL,
                          .h0_grad = s->h_grad + b * H,
                          .c0_grad = s->c ? s->c_grad + b * H : NULL};
}

/* Adds the row's gradient of x when it is complete. */
static void add_x_grad(const sequence *s, int64_t b)
{
    at_real *to = s->x_grad + (b * s->steps + position_of(s)) * s->width;
    for (int64_t i = 0; s->x_grad && i < s->width; i++)
        to[i] += s->x_row[b * s->width + i];
}

static void backward_range(void *context, int64_t from, int64_t to)
{
    const sequence *s = context;
    int64_t H = s->hidden;
    for (int64_t b = from; b < to; b++) {
        at_gate_back back = back_of(s, b);
        if (position_of(s) >= s->lengths[b]) {
            memset(back.u_grad, 0, (size_t)s->first * sizeof *back.u_grad);
            if (back.u_reset_grad)
                memset(back.u_reset_grad, 0, (size_t)H * sizeof *back.u_reset_grad);
            continue;
        }
        const at_real *grad = s->grad + (b * s->steps + position_of(s)) * H;
        for (int64_t i = 0; i < H; i++)
            s->h_grad[b * H + i] += grad[i];
        s->gates->backward(&back, H);
        if (!s->reset)
            add_x_grad(s, b);
    }
}

static void reset_back_range(void *context, int64_t from, int64_t to)
{
    const sequence *s = context;
    for (int64_t b = from; b < to; b++) {
        if (position_of(s) >= s->lengths[b])
            continue;
        at_gate_back back = back_of(s, b);
        s->gates->reset_backward(&back, s->hidden);
        add_x_grad(s, b);
    }
}

static bool product(at_tape *tape, const at_gemm *gemm)
{
    return at_gemm_run(gemm, at_tape_arena(tape)) || at_no_memory(at_tape_error(tape), "a recurrent product");
}

/* The step's h' U^T (+ extra); in the backward pass the gradient of h' by way of it. The sum starts from `extra`, but in a
 * product with weights of fewer bits, which starts from 0. */
static bool recurrent_product(at_tape *tape, const sequence *s, const at_real *u, bool back)
{
    int64_t H = s->hidden, width = s->first;
    const at_narrow narrow = back ? (at_narrow){0} : at_params_narrow(s->params, s->u);
    const bool starts = s->extra && !back && !narrow.numbers, adds = s->extra && narrow.numbers;
    if (starts)
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
                    .narrow = narrow,
                    .c = back ? s->h_grad : s->product,
                    .c_row = back ? H : width,
                    .accumulate = back || starts};
    const bool done = product(tape, &gemm);
    if (done && adds)
        at_isa()->rows->add(s->product, width, s->extra, width, s->rows, width, 1);
    return done;
}

/* The step's (r o h') U^T of the candidate; in the backward pass the gradient of r o h'. */
static bool reset_product(at_tape *tape, const sequence *s, const at_real *u, bool back)
{
    int64_t H = s->hidden, at = s->step * s->rows * H;
    at_gemm gemm = {.m = s->rows,
                    .n = H,
                    .k = H,
                    .a = back ? s->u_reset_grad + at : s->reset + at,
                    .a_row = H,
                    .a_col = 1,
                    .b = u,
                    .b_row = back ? H : 1,
                    .b_col = back ? 1 : H,
                    .packed = at_params_packed(s->params, s->candidate, !back),
                    .narrow = back ? (at_narrow){0} : at_params_narrow(s->params, s->candidate),
                    .c = back ? s->reset_grad : s->u_reset,
                    .c_row = H};
    return product(tape, &gemm);
}

static bool step_back(at_tape *tape, sequence *s, const at_real *u, const at_real *candidate)
{
    at_ranges(s->rows, s->width, backward_range, s);
    if (s->reset) {
        if (!reset_product(tape, s, candidate, true))
            return false;
        at_ranges(s->rows, s->width, reset_back_range, s);
    }
    return recurrent_product(tape, s, u, true);
}

/* Inputs x, U, first h, first c, extra, the candidate's U; outputs all h, last h, last c. */
static void sequence_backward(at_node *node)
{
    sequence s = *(const sequence *)node->saved;
    at_tensor *u = node->inputs[1], *candidate = node->inputs[5];
    at_tape *tape = u->tape;
    at_real *grad[INPUTS]; /* allocated before the mark, so they outlive the scratch */
    for (int i = 0; i < INPUTS; i++)
        grad[i] = at_tensor_grad(node->inputs[i]);
    int64_t state = s.rows * s.hidden, all = s.steps * s.rows;
    at_mark all_scratch = at_arena_mark(at_tape_arena(tape));
    s.u_grad = at_room(tape, (size_t)(all * s.first) * sizeof *s.u_grad);
    s.u_reset_grad = s.reset ? at_room(tape, (size_t)(all * s.hidden) * sizeof *s.u_reset_grad) : NULL;
    at_mark scratch = at_arena_mark(at_tape_arena(tape));
    s.grad = node->outputs[0]->grad;
    s.x_grad = grad[0];
    s.x_row = at_room(tape, (size_t)(s.rows * s.width) * sizeof *s.x_row);
    s.reset_grad = s.reset ? at_room(tape, (size_t)state * sizeof *s.reset_grad) : NULL;
    s.h_grad = at_keep(tape, node->outputs[1]->grad, (size_t)state * sizeof *s.h_grad);
    s.c_grad = s.c ? at_keep(tape, node->outputs[2]->grad, (size_t)state * sizeof *s.c_grad) : NULL;
    const at_real *u_wide = at_weights_wide(u), *candidate_wide = candidate ? at_weights_wide(candidate) : NULL;
    bool ok = at_tape_ok(tape);
    for (s.step = s.steps - 1; ok && s.step >= 0; s.step--)
        ok = step_back(tape, &s, u_wide, candidate_wide);
    if (ok) {
        at_grad_add(grad[2], s.h_grad, state);
        at_grad_add(grad[3], s.c_grad, state);
        for (int64_t step = 0; step < s.steps; step++)
            at_grad_add(grad[4], s.u_grad + step * s.rows * s.first, s.rows * s.first);
    }
    at_arena_release(at_tape_arena(tape), scratch);
    if (ok)
        at_weights_grad(tape, u, all, s.u_grad, s.h);
    if (ok && s.reset)
        at_weights_grad(tape, candidate, all, s.u_reset_grad, s.reset);
    if (!at_weights_wait(u, all))
        at_arena_release(at_tape_arena(tape), all_scratch);
}

static const at_op sequence_op = {"cell_sequence", sequence_backward};

/* The first state: copied, or zeros. */
static bool set_first(at_tape *tape, at_real *to, const at_tensor *from, int64_t rows, int64_t hidden)
{
    size_t bytes = (size_t)(rows * hidden) * sizeof *to;
    if (!from) {
        memset(to, 0, bytes);
        return true;
    }
    if (!at_shape_same(from->shape, AT_SHAPE(rows, hidden)))
        return at_fail(at_tape_error(tape), AT_SHAPE, "cell_sequence: the first state is %s and must be [%lld,%lld]",
                       AT_TEXT(from->shape), (long long)rows, (long long)hidden);
    memcpy(to, from->value, bytes);
    return true;
}

static const int64_t *checked_lengths(at_tape *tape, const int64_t *lengths, int64_t rows, int64_t steps)
{
    int64_t *saved = at_room(tape, (size_t)rows * sizeof *saved);
    for (int64_t b = 0; saved && b < rows; b++) {
        saved[b] = lengths ? lengths[b] : steps;
        if (saved[b] < 0 || saved[b] > steps)
            return AT_REFUSE(tape, AT_SHAPE,
                             "cell_sequence: length %lld of row %lld is outside 0 to %lld, the number of steps",
                             (long long)saved[b], (long long)b, (long long)steps);
    }
    return saved;
}

/* extra + b_u: [B,gates*hidden] */
static at_tensor *with_bias(at_tape *tape, at_params *params, const at_cell *cell, at_tensor *extra, int64_t rows)
{
    if (cell->u_bias < 0)
        return extra;
    at_tensor *sum = extra ? extra : at_tensor_make(tape, AT_SHAPE(rows, at_cell_width(cell)));
    if (sum && !extra)
        memset(sum->value, 0, (size_t)at_shape_count(sum->shape) * sizeof(at_real));
    return at_add(sum, at_param(tape, params, cell->u_bias));
}

at_tensor *at_cell_run(at_tape *tape, at_params *params, const at_cell *cell, const at_sequence *in, at_hidden *last)
{
    const at_hidden first = in->first; /* which may be *last */
    at_tensor *x = in->x, *extra = in->extra;
    *last = (at_hidden){0};
    at_tensor *u = at_weights(tape, params, cell->u);
    at_tensor *candidate = cell->candidate < 0 ? NULL : at_weights(tape, params, cell->candidate);
    if (!x || !at_tape_ok(tape))
        return NULL;
    at_shape shape = x->shape;
    sequence s = {.gates = at_gates_of(cell->kind),
                  .params = params,
                  .u = cell->u,
                  .candidate = cell->candidate,
                  .hidden = cell->hidden,
                  .width = at_cell_width(cell),
                  .backward = in->backward};
    s.first = s.gates->first * s.hidden;
    if (shape.rank != 3 || shape.dim[2] != s.width)
        return AT_REFUSE(tape, AT_SHAPE, "cell_sequence: the input products are %s and must be [B,n,%lld]",
                         AT_TEXT(shape), (long long)s.width);
    if (extra && !at_shape_same(extra->shape, AT_SHAPE(shape.dim[0], s.width)))
        return AT_REFUSE(tape, AT_SHAPE, "cell_sequence: the term added to U h' is %s and must be [%lld,%lld]",
                         AT_TEXT(extra->shape), (long long)shape.dim[0], (long long)s.width);
    const int64_t B = s.rows = shape.dim[0], n = s.steps = shape.dim[1], H = s.hidden;
    extra = with_bias(tape, params, cell, extra, B);
    if (extra && candidate) { /* W x + U (r o h') + extra: extra is added to W x */
        x = at_add(x, at_reshape(extra, AT_SHAPE(B, 1, s.width)));
        extra = NULL;
    }
    at_tensor *out = at_tensor_make(tape, AT_SHAPE(B, n, H));
    size_t states = (size_t)((n + 1) * B * H) * sizeof *s.h;
    s.lengths = checked_lengths(tape, in->lengths, B, n);
    s.h = at_room(tape, states);
    s.c = s.gates->has_c ? at_room(tape, states) : NULL;
    s.saved = at_room(tape, (size_t)(n * B * s.gates->saved * H) * sizeof *s.saved);
    s.product = at_room(tape, (size_t)(B * s.first) * sizeof *s.product);
    s.reset = candidate ? at_room(tape, (size_t)(n * B * H) * sizeof *s.reset) : NULL;
    s.u_reset = candidate ? at_room(tape, (size_t)(B * H) * sizeof *s.u_reset) : NULL;
    if (!at_tape_ok(tape) || !set_first(tape, s.h, first.h, B, H) || (s.c && !set_first(tape, s.c, first.c, B, H)))
        return NULL;
    s.x = x->value;
    s.extra = extra ? extra->value : NULL;
    s.out = out->value;
    for (s.step = 0; s.step < n; s.step++) {
        if (!recurrent_product(tape, &s, u->value, false))
            return NULL;
        if (candidate) {
            at_ranges(B, s.width, reset_range, &s);
            if (!reset_product(tape, &s, candidate->value, false))
                return NULL;
        }
        at_ranges(B, s.width, forward_range, &s);
    }
    last->h = at_tensor_over(tape, AT_SHAPE(B, H), s.h + n * B * H);
    last->c = s.c ? at_tensor_over(tape, AT_SHAPE(B, H), s.c + n * B * H) : NULL;
    at_tensor *inputs[INPUTS] = {x, u, first.h, s.c ? first.c : NULL, extra, candidate};
    return at_record(tape, &sequence_op, (at_tensor *[]){out, last->h, last->c}, s.c ? 3 : 2, inputs, INPUTS,
                     at_keep(tape, &s, sizeof s));
}

at_tensor *at_cell_sequence(at_tape *tape, at_params *params, const at_cell *cell, const at_sequence *in,
                            at_hidden *last)
{
    at_sequence products = *in;
    products.x = at_cell_input(tape, params, cell, in->x);
    return at_cell_run(tape, params, cell, &products, last);
}
