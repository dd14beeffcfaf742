/* Convolution through the one gemm. */
#include <string.h>

#include "tape/block.h"
#include "tape/conv_internal.h"
#include "tape/ops.h"

/* ---- conv: y_p = act(b + W patch_p), patch_p the cells under the window at p ----
 *
 * Picture by picture, each copied once with zeros around it (a frame). A row of the window is then contiguous in the frame,
 * and the patches of neighbouring cells are `stride` cells apart, so a row of outputs is a product whose rows overlap, one
 * for each row of the window; no patch is copied. Where such a row is short (a grey picture), and for the gradient of the
 * weights with a stride, patches are copied (conv_patches.c); the gradient of an input with some channels is divided by its
 * phases then (conv_phases.c).
 *
 * Either way an output is one chain of multiply-adds over its own patch: neither neighbours nor blocks nor threads change
 * its bits. */

enum { WORTH_A_PRODUCT = 32 }; /* numbers in a row of the window */
enum { WORTH_PHASES = 32 };    /* channels of the input */

static at_conv_picture picture_at(const at_conv_shape *c, int64_t i)
{
    return (at_conv_picture){c->in.height[i],
                             c->in.width[i],
                             c->in.first[i],
                             c->out.height[i],
                             c->out.width[i],
                             c->out.first[i],
                             c->in.width[i] + 2 * c->window.pad};
}

/* Rows of the window are multiplied without copies. */
static bool is_direct(const at_conv_shape *c)
{
    return c->strip >= WORTH_A_PRODUCT || (c->window.height == 1 && c->window.width == 1);
}

/* So are those of the backward pass: a window in the middle of its patch that visits every cell. */
static bool is_direct_back(const at_conv_shape *c)
{
    const at_window *w = &c->window;
    return is_direct(c) && w->stride == 1 && w->height == w->width && w->width == 2 * w->pad + 1;
}

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

void at_conv_put_frame(const at_real *x, int64_t height, int64_t width, int64_t channels, int64_t pad, at_real *frame)
{
    at_ranges(height + 2 * pad, (width + 2 * pad) * channels, copy_frame_rows,
              &(frame_job){x, frame, height, width, channels, pad});
}

/* Numbers in the largest frame of pictures of these sizes, and AT_CONV_SLACK that may be read after it. */
static int64_t frame_size(const at_conv_shape *c, const at_grids *grids, int64_t channels)
{
    int64_t most = 0;
    for (int64_t i = 0; i < grids->count; i++) {
        const int64_t cells = (grids->height[i] + 2 * c->window.pad) * (grids->width[i] + 2 * c->window.pad);
        most = cells > most ? cells : most;
    }
    return (most + c->window.width) * channels + AT_CONV_SLACK;
}

/* The frame of a picture of these sizes, in memory of frame_size numbers. */
static const at_real *frame_of(const at_conv_shape *c, const at_real *x, int64_t height, int64_t width,
                               int64_t channels, at_real *memory)
{
    if (at_conv_is_framed(c))
        return x;
    const int64_t pad = c->window.pad, row = (width + 2 * pad) * channels, rows = height + 2 * pad;
    at_conv_put_frame(x, height, width, channels, pad, memory);
    memset(memory + rows * row, 0, (size_t)(c->window.width * channels + AT_CONV_SLACK) * sizeof *memory);
    return memory;
}

const at_real *at_conv_frame(const at_conv_shape *c, const at_conv_picture *p, const at_real *x, at_real *memory)
{
    return frame_of(c, x + p->first * c->channels, p->height, p->width, c->channels, memory);
}

static bool batch_product(at_tape *tape, const at_gemm *gemm, int64_t count, int64_t a_step, int64_t c_step)
{
    return at_gemm_batch(gemm, count, a_step, 0, c_step, at_tape_arena(tape)) ||
           at_no_memory(at_tape_error(tape), "a batch of %lld products", (long long)count);
}

/* Rows of the window packed for products with rows of a frame: `rows` matrices [k,n] with their numbers at b, b + step, ... */
static at_real *packed_rows(at_tape *tape, int64_t rows, int64_t k, int64_t n)
{
    return at_room(tape, (size_t)(rows * at_gemm_packed_size(k, n)) * sizeof(at_real));
}

/* ---- Forward ---- */

/* For every row i of the window: y += patches' rows i times W's rows i, for all rows of outputs. */
static bool forward_rows(at_tape *tape, const at_conv_shape *c, const at_conv_picture *p, const at_real *frame,
                         const at_real *packed, const at_real *b, at_real *y)
{
    const int64_t stride = c->window.stride, row = p->frame * c->channels;
    for (int64_t i = 0; i < c->window.height; i++) {
        const bool last = i + 1 == c->window.height;
        const at_gemm gemm = {.m = p->out_width,
                              .n = c->made,
                              .k = c->strip,
                              .a = frame + i * row,
                              .a_row = stride * c->channels,
                              .a_col = 1,
                              .packed = packed + i * at_gemm_packed_size(c->strip, c->made),
                              .c = y + p->out_first * c->made,
                              .c_row = c->made,
                              .accumulate = i > 0,
                              .bias = last ? b : NULL,
                              .act = last ? c->act : AT_ACT_NONE};
        if (!batch_product(tape, &gemm, p->out_height, stride * row, p->out_width * c->made))
            return false;
    }
    return true;
}

static bool forward(at_tape *tape, const at_conv_shape *c, const at_real *x, at_tensor *w, const at_real *b, at_real *y)
{
    at_mark mark = at_arena_mark(at_tape_arena(tape));
    const bool direct = is_direct(c);
    at_real *memory = at_room(tape, (size_t)frame_size(c, &c->in, c->channels) * sizeof *memory);
    at_real *rows = direct ? packed_rows(tape, c->window.height, c->strip, c->made) : at_conv_patch_room(tape, c);
    bool done = memory && rows;
    for (int64_t i = 0; done && direct && i < c->window.height; i++)
        at_gemm_pack(w->value + i * c->strip, 1, c->patch, c->strip, c->made,
                     rows + i * at_gemm_packed_size(c->strip, c->made));
    for (int64_t i = 0; done && i < c->in.count; i++) {
        const at_conv_picture p = picture_at(c, i);
        const at_real *frame = at_conv_frame(c, &p, x, memory);
        done =
            direct ? forward_rows(tape, c, &p, frame, rows, b, y) : at_conv_patches(tape, c, &p, frame, w, b, rows, y);
    }
    at_arena_release(at_tape_arena(tape), mark);
    return done;
}

/* ---- Backward ---- */

/* The window turned around, row i of it as [width * made, C]: what a cell of the input has sent to the outputs around it. */
static void turn_window(const at_conv_back *k)
{
    const at_conv_shape *c = k->c;
    const int64_t size = c->window.width, n = at_gemm_packed_size(size * c->made, c->channels);
    at_real *turned = k->frame; /* large enough, and not in use yet */
    for (int64_t i = 0; i < size; i++) {
        for (int64_t j = 0; j < size; j++)
            for (int64_t o = 0; o < c->made; o++)
                memcpy(turned + (j * c->made + o) * c->channels,
                       k->w->value + o * c->patch + ((size - 1 - i) * size + size - 1 - j) * c->channels,
                       (size_t)c->channels * sizeof *turned);
        at_gemm_pack(turned, c->channels, 1, size * c->made, c->channels, k->turned + i * n);
    }
}

/* The outputs' gradient has a frame as wide as the input's. Beyond the end of its rows it is zero, so the rows of both go
 * through one product: dW's rows i += gz^T frame, dx += gz's rows i times the turned window's. */
static void back_rows(const at_conv_back *k, const at_conv_picture *p)
{
    const at_conv_shape *c = k->c;
    const int64_t pad = c->window.pad;
    const at_real *gz = frame_of(c, k->gz + p->out_first * c->made, p->height, p->width, c->made, k->gz_frame);
    const at_real *frame = k->w_grad ? at_conv_frame(c, p, k->x, k->frame) : NULL;
    for (int64_t i = 0; k->w_grad && i < c->window.height; i++)
        at_product(k->tape, &(at_gemm){.m = c->made,
                                       .n = c->strip,
                                       .k = p->height * p->frame,
                                       .a = gz + (pad * p->frame + pad) * c->made,
                                       .a_row = 1,
                                       .a_col = c->made,
                                       .b = frame + i * p->frame * c->channels,
                                       .b_row = c->channels,
                                       .b_col = 1,
                                       .c = k->w_grad + i * c->strip,
                                       .c_row = c->patch,
                                       .accumulate = true});
    for (int64_t i = 0; k->x_grad && i < c->window.height; i++)
        batch_product(k->tape,
                      &(at_gemm){.m = p->width,
                                 .n = c->channels,
                                 .k = c->window.width * c->made,
                                 .a = gz + i * p->frame * c->made,
                                 .a_row = c->made,
                                 .a_col = 1,
                                 .packed = k->turned + i * at_gemm_packed_size(c->window.width * c->made, c->channels),
                                 .c = k->x_grad + p->first * c->channels,
                                 .c_row = c->channels,
                                 .accumulate = true},
                      p->height, p->frame * c->made, p->width * c->channels);
}

/* Numbers in the largest frame of the outputs' gradient that at_conv_phases_back makes. */
static int64_t phase_frame_size(const at_conv_shape *c)
{
    const int64_t more = 2 * at_conv_phase_border(c);
    int64_t most = 0;
    for (int64_t i = 0; i < c->out.count; i++) {
        const int64_t cells = (c->out.height[i] + more) * (c->out.width[i] + more);
        most = cells > most ? cells : most;
    }
    return most * c->made + AT_CONV_SLACK;
}

/* gz = g act'(z), db = the sum of its rows; then picture by picture */
static void conv_backward(at_node *node)
{
    const at_conv_shape *c = node->saved;
    at_tensor *x = node->inputs[0], *b = node->inputs[2], *y = node->outputs[0];
    at_tape *tape = y->tape;
    at_conv_back k = {.c = c, .tape = tape, .w = node->inputs[1], .x = x->value};
    k.x_grad = at_tensor_grad(x);
    k.w_grad = at_tensor_grad(k.w);
    at_act_grad(y, c->out.first[c->out.count], c->made, c->act, at_tensor_grad(b));
    k.gz = y->grad;
    const bool direct = is_direct_back(c), phased = !direct && c->channels >= WORTH_PHASES;
    at_mark mark = at_arena_mark(at_tape_arena(tape));
    const int64_t size = frame_size(c, &c->in, c->channels), turned = c->window.width * c->made * c->channels;
    k.frame = at_room(tape, (size_t)(size > turned ? size : turned) * sizeof *k.frame);
    if (direct || phased) {
        const int64_t gz_size = direct ? frame_size(c, &c->in, c->made) : phase_frame_size(c);
        k.gz_frame = at_room(tape, (size_t)gz_size * sizeof *k.gz_frame);
        k.turned = direct ? packed_rows(tape, c->window.height, c->window.width * c->made, c->channels)
                          : at_room(tape, (size_t)at_conv_phase_room(c) * sizeof *k.turned);
    } else {
        k.frame_grad = at_room(tape, (size_t)size * sizeof *k.frame_grad);
    }
    if (!direct)
        k.rows = at_conv_patch_room(tape, c);
    if ((direct || phased) && k.x_grad && at_tape_ok(tape))
        direct ? turn_window(&k) : at_conv_phase_pack(&k, k.frame);
    at_conv_back weights = k; /* their gradient alone */
    weights.x_grad = NULL;
    for (int64_t i = 0; i < c->in.count && at_tape_ok(tape); i++) {
        const at_conv_picture p = picture_at(c, i);
        if (direct)
            back_rows(&k, &p);
        else
            at_conv_patches_back(phased ? &weights : &k, &p);
        if (phased && k.x_grad)
            at_conv_phases_back(&k, &p);
    }
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
