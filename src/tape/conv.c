/* Convolution by products of patches, which are read where they lie. */
#include <string.h>

#include "kernels/patches.h"
#include "tape/block.h"
#include "tape/conv_internal.h"
#include "tape/ops.h"

/* ---- conv: y_p = act(b + W patch_p), patch_p the cells under the window at p ----
 *
 * Picture by picture, each copied once with zeros around it (a frame). Rows of the window are then contiguous in the frame,
 * and the patches of neighbouring cells `stride` cells apart, so that the patches are a matrix whose rows overlap, and no
 * patch is copied: y = patches W^T, dW^T = patches^T gz. The gradient of the input is made phase by phase
 * (conv_phases.c), or, if it has few channels, through the gradients of patches (conv_patches.c).
 *
 * An output is one chain of multiply-adds over its own patch: neither neighbours nor blocks nor threads change its bits. */

enum { FEW_CHANNELS = 8 };

/* ---- Frames ---- */

typedef struct frame_job {
    const at_real *x; /* [height * width, channels] */
    at_real *frame;   /* [height + 2 pad, width + 2 pad, channels] */
    int64_t height, width, channels, pad;
} frame_job;

static void copy_frame_rows(void *context, int64_t from, int64_t to)
{
    const frame_job *j = context;
    const int64_t side = j->pad * j->channels, row = j->width * j->channels;
    for (int64_t y = from; y < to; y++) {
        at_real *out = j->frame + y * (row + 2 * side);
        const bool inside = y >= j->pad && y < j->pad + j->height;
        if (!inside) {
            memset(out, 0, (size_t)(row + 2 * side) * sizeof *out);
            continue;
        }
        memset(out, 0, (size_t)side * sizeof *out);
        memcpy(out + side, j->x + (y - j->pad) * row, (size_t)row * sizeof *out);
        memset(out + side + row, 0, (size_t)side * sizeof *out);
    }
}

const at_real *at_conv_frame(const at_real *x, int64_t height, int64_t width, int64_t channels, int64_t pad,
                             at_real *memory)
{
    if (pad == 0)
        return x;
    at_ranges(height + 2 * pad, (width + 2 * pad) * channels, copy_frame_rows,
              &(frame_job){x, memory, height, width, channels, pad});
    return memory;
}

int64_t at_conv_frame_size(const at_grids *grids, int64_t channels, int64_t pad)
{
    int64_t most = 0;
    for (int64_t i = 0; i < grids->count; i++) {
        const int64_t cells = (grids->height[i] + 2 * pad) * (grids->width[i] + 2 * pad);
        most = cells > most ? cells : most;
    }
    return most * channels;
}

static const at_real *input_frame(const at_conv_shape *c, const at_conv_picture *p, const at_real *x, at_real *memory)
{
    return at_conv_frame(x + p->first * c->channels, p->height, p->width, c->channels, c->window.pad, memory);
}

at_conv_picture at_conv_picture_at(const at_conv_shape *c, int64_t i)
{
    return (at_conv_picture){.height = c->in.height[i],
                             .width = c->in.width[i],
                             .first = c->in.first[i],
                             .out_height = c->out.height[i],
                             .out_width = c->out.width[i],
                             .out_first = c->out.first[i],
                             .row = (c->in.width[i] + 2 * c->window.pad) * c->channels};
}

/* ---- Forward ---- */

static bool forward(at_tape *tape, const at_conv_shape *c, const at_real *x, at_tensor *w, const at_real *b, at_real *y)
{
    at_mark mark = at_arena_mark(at_tape_arena(tape));
    at_real *memory = at_room(tape, (size_t)at_conv_frame_size(&c->in, c->channels, c->window.pad) * sizeof *memory);
    const at_real *packed = at_weights_packed(w, true);
    if (!packed) {
        at_real *room = at_room(tape, (size_t)at_gemm_packed_size(c->patch, c->made) * sizeof *room);
        if (room)
            at_gemm_pack(w->value, 1, c->patch, c->patch, c->made, room);
        packed = room;
    }
    const int64_t stride = c->window.stride;
    for (int64_t i = 0; memory && packed && i < c->in.count; i++) {
        const at_conv_picture p = at_conv_picture_at(c, i);
        at_patch_product_run(&(at_patch_product){.lines = p.out_height,
                                                 .cells = p.out_width,
                                                 .spans = c->window.height,
                                                 .steps = c->strip,
                                                 .n = c->made,
                                                 .a = input_frame(c, &p, x, memory),
                                                 .a_line = stride * p.row,
                                                 .a_cell = stride * c->channels,
                                                 .a_span = p.row,
                                                 .a_step = 1,
                                                 .packed = packed,
                                                 .c = y + p.out_first * c->made,
                                                 .c_line = p.out_width * c->made,
                                                 .c_cell = c->made,
                                                 .bias = b,
                                                 .act = c->act});
    }
    at_arena_release(at_tape_arena(tape), mark);
    return memory && packed;
}

/* ---- Backward ---- */

/* to [columns,rows] = from [rows,columns] */
static void transpose(const at_real *from, int64_t rows, int64_t columns, at_real *to)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[j * rows + i] = from[i * columns + j];
}

/* dW^T += patches^T gz, one chain over the cells of all pictures: rows are the numbers of a patch. */
static void weights_back(at_tape *tape, const at_conv_shape *c, const at_real *x, const at_real *gz, at_real *w_grad)
{
    at_real *memory = at_room(tape, (size_t)at_conv_frame_size(&c->in, c->channels, c->window.pad) * sizeof *memory);
    at_real *turned = at_room(tape, (size_t)(c->patch * c->made) * sizeof *turned); /* [patch, made] */
    const int64_t size = at_gemm_packed_size(at_conv_frame_size(&c->out, 1, 0), c->made), stride = c->window.stride;
    at_real *packed = at_room(tape, (size_t)size * sizeof *packed);
    const bool is_panel = at_gemm_packed_size(1, 1) == c->made; /* gz is packed as it is */
    if (!at_tape_ok(tape))
        return;
    transpose(w_grad, c->made, c->patch, turned);
    for (int64_t i = 0; i < c->in.count; i++) {
        const at_conv_picture p = at_conv_picture_at(c, i);
        const at_real *own = gz + p.out_first * c->made;
        if (!is_panel)
            at_gemm_pack(own, c->made, 1, p.out_height * p.out_width, c->made, packed);
        at_patch_product_run(&(at_patch_product){.lines = c->window.height,
                                                 .cells = c->strip,
                                                 .spans = p.out_height,
                                                 .steps = p.out_width,
                                                 .n = c->made,
                                                 .a = input_frame(c, &p, x, memory),
                                                 .a_line = p.row,
                                                 .a_cell = 1,
                                                 .a_span = stride * p.row,
                                                 .a_step = stride * c->channels,
                                                 .packed = is_panel ? own : packed,
                                                 .c = turned,
                                                 .c_line = c->strip * c->made,
                                                 .c_cell = c->made,
                                                 .accumulate = true});
    }
    transpose(turned, c->patch, c->made, w_grad);
}

/* gz = g act'(z), db = the sum of its rows; then the gradients of the weights and of the input */
static void conv_backward(at_node *node)
{
    const at_conv_shape *c = node->saved;
    at_tensor *x = node->inputs[0], *w = node->inputs[1], *b = node->inputs[2], *y = node->outputs[0];
    at_tape *tape = y->tape;
    bool x_add;
    at_real *x_grad = at_tensor_grad_whole(x, &x_add), *w_grad = at_tensor_grad(w);
    at_act_grad(y, c->out.first[c->out.count], c->made, c->act, at_tensor_grad(b));
    at_mark mark = at_arena_mark(at_tape_arena(tape));
    if (w_grad && at_tape_ok(tape))
        weights_back(tape, c, x->value, y->grad, w_grad);
    at_arena_release(at_tape_arena(tape), mark);
    const at_conv_back k = {.c = c, .tape = tape, .w = w, .gz = y->grad, .x_grad = x_grad, .x_add = x_add};
    if (x_grad && at_tape_ok(tape))
        (c->channels < FEW_CHANNELS ? at_conv_patches_back : at_conv_phases_back)(&k);
    at_arena_release(at_tape_arena(tape), mark);
}

enum { MOST_WINDOW = 31 }; /* cells of a side */

static const at_op conv_op = {"conv", conv_backward};

/* The shapes fit together; records an error on the tape if not. */
static bool fits(const at_conv_shape *c, at_tensor *x, at_tensor *w, at_tensor *b)
{
    at_error *error = at_tape_error(x->tape);
    const int64_t cells = c->in.first[c->in.count];
    if (x->shape.rank != 2 || x->shape.dim[0] != cells)
        return at_fail(error, AT_SHAPE, "conv: the input is %s and must be [%lld,channels], a row for each cell",
                       AT_TEXT(x->shape), (long long)cells);
    if (w->shape.rank != 2 || w->shape.dim[1] != c->patch)
        return at_fail(error, AT_SHAPE,
                       "conv: the weights are %s and must be [out,%lld], a window of %lld x %lld x %lld",
                       AT_TEXT(w->shape), (long long)c->patch, (long long)c->window.height, (long long)c->window.width,
                       (long long)c->channels);
    if (b && (b->shape.rank != 1 || b->shape.dim[0] != w->shape.dim[0]))
        return at_fail(error, AT_SHAPE, "conv: the bias is %s and must be [%lld], the first size of the weights %s",
                       AT_TEXT(b->shape), (long long)w->shape.dim[0], AT_TEXT(w->shape));
    if (c->window.height > MOST_WINDOW || c->window.width > MOST_WINDOW)
        return at_fail(error, AT_USAGE, "conv: a window of %lld x %lld is larger than %d x %d",
                       (long long)c->window.height, (long long)c->window.width, MOST_WINDOW, MOST_WINDOW);
    return true;
}

at_tensor *at_conv(at_tensor *x, const at_grids *in, at_window window, at_tensor *w, at_tensor *b, at_act act,
                   const at_grids *out)
{
    if (!x || !w || !in->first || !out->first)
        return NULL;
    at_conv_shape c = {.in = *in, .out = *out, .window = window, .act = act};
    c.channels = x->shape.rank == 2 ? x->shape.dim[1] : 0;
    c.strip = window.width * c.channels;
    c.patch = window.height * c.strip;
    if (!fits(&c, x, w, b))
        return NULL;
    c.made = w->shape.dim[0];
    at_tensor *y = at_tensor_make(x->tape, AT_SHAPE(out->first[out->count], c.made));
    if (!y || !forward(x->tape, &c, x->value, w, b ? b->value : NULL, y->value))
        return NULL;
    y->spare = act == AT_ACT_NONE;
    return at_record_one(&conv_op, y, (at_tensor *[]){x, w, b}, 3, at_keep(x->tape, &c, sizeof c));
}
