/* Convolution through the one gemm. */
#include <string.h>

#include "tape/block.h"
#include "tape/grid.h"
#include "tape/ops.h"

/* ---- conv: y_p = act(b + W patch_p), patch_p the cells under the window at p ----
 *
 * The patches of some output cells are copied side by side, [rows, height * width * C], and multiplied by the weights; a
 * block of them fits into the second-level cache, so the whole array of patches never exists. Each output cell is one
 * chain of multiply-adds over its own patch: neither neighbours nor blocks nor threads change its bits. */

enum { BLOCK_NUMBERS = 1 << 17 }; /* of a block of patches */

typedef struct conv {
    at_grids in, out;
    at_window window;
    int64_t channels, patch; /* C, height * width * C */
    int64_t block;           /* output cells in a block */
    at_act act;
} conv;

/* The patches of output cells begin .. begin + rows - 1. */
typedef struct patch_job {
    const conv *c;
    int64_t begin, rows;
    const at_real *x; /* [cells, C] */
    at_real *patches; /* [rows, patch] */
    at_real *x_grad;  /* [cells, C], the backward pass */
} patch_job;

/* The picture that a cell of `grids` belongs to. */
static int64_t picture_of(const at_grids *grids, int64_t cell)
{
    int64_t low = 0, high = grids->count;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (grids->first[middle] <= cell)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* A row of the window, as far as it lies inside of the picture: `cells` cells from cell `x` of the input on, which are
 * those from cell `patch` of the patch on. */
typedef struct strip {
    int64_t x, patch, cells;
} strip;

/* The strips of the patch at output cell `cell` of picture `p`; at most one for each row of the window. */
static int strips_of(const conv *c, int64_t p, int64_t cell, strip *strips)
{
    const at_window *w = &c->window;
    const int64_t inside = cell - c->out.first[p], height = c->in.height[p], width = c->in.width[p];
    const int64_t top = inside / c->out.width[p] * w->stride - w->pad;
    const int64_t left = inside % c->out.width[p] * w->stride - w->pad;
    const int64_t from = left < 0 ? 0 : left, to = left + w->width < width ? left + w->width : width;
    int count = 0;
    for (int64_t i = 0; i < w->height && to > from; i++)
        if (top + i >= 0 && top + i < height)
            strips[count++] =
                (strip){c->in.first[p] + (top + i) * width + from, i * w->width + (from - left), to - from};
    return count;
}

enum { MOST_WINDOW = 31 }; /* rows of a window */

static void copy_patches(void *context, int64_t from, int64_t to)
{
    const patch_job *j = context;
    const conv *c = j->c;
    const int64_t whole = c->window.height * c->window.width;
    strip strips[MOST_WINDOW];
    int64_t p = picture_of(&c->out, j->begin + from);
    for (int64_t row = from; row < to; row++) {
        while (j->begin + row >= c->out.first[p + 1])
            p++;
        at_real *patch = j->patches + row * c->patch;
        const int count = strips_of(c, p, j->begin + row, strips);
        int64_t cells = 0;
        for (int i = 0; i < count; i++)
            cells += strips[i].cells;
        if (cells < whole)
            memset(patch, 0, (size_t)c->patch * sizeof *patch);
        for (int i = 0; i < count; i++)
            memcpy(patch + strips[i].patch * c->channels, j->x + strips[i].x * c->channels,
                   (size_t)(strips[i].cells * c->channels) * sizeof *patch);
    }
}

enum { CHANNELS_OF_A_TASK = 16 };

/* dx of the channels from .. to - 1, from the gradients of the patches, cell after cell: a thread has its own channels,
 * so every number is added up in the order of the cells. */
static void add_patches(void *context, int64_t from, int64_t to)
{
    const patch_job *j = context;
    const conv *c = j->c;
    const int64_t C = c->channels, first = from * CHANNELS_OF_A_TASK;
    const int64_t last = to * CHANNELS_OF_A_TASK < C ? to * CHANNELS_OF_A_TASK : C;
    strip strips[MOST_WINDOW];
    int64_t p = picture_of(&c->out, j->begin);
    for (int64_t row = 0; row < j->rows; row++) {
        while (j->begin + row >= c->out.first[p + 1])
            p++;
        const at_real *patch = j->patches + row * c->patch;
        const int count = strips_of(c, p, j->begin + row, strips);
        for (int i = 0; i < count; i++)
            for (int64_t cell = 0; cell < strips[i].cells; cell++) {
                at_real *grad = j->x_grad + (strips[i].x + cell) * C;
                const at_real *g = patch + (strips[i].patch + cell) * C;
                for (int64_t k = first; k < last; k++)
                    grad[k] += g[k];
            }
    }
}

/* A window of one cell that visits every cell needs no copies. */
static bool is_pointwise(const at_window *w)
{
    return w->height == 1 && w->width == 1 && w->stride == 1 && w->pad == 0;
}

/* The patches of a block, copied into `patches` or, where the window is one cell, in place. */
static const at_real *patches_of(const conv *c, const at_real *x, int64_t begin, int64_t rows, at_real *patches)
{
    if (is_pointwise(&c->window))
        return x + begin * c->channels;
    at_ranges(rows, c->patch, copy_patches,
              &(patch_job){.c = c, .begin = begin, .rows = rows, .x = x, .patches = patches});
    return patches;
}

static int64_t rows_of_block(const conv *c, int64_t begin)
{
    const int64_t left = c->out.first[c->out.count] - begin;
    return left < c->block ? left : c->block;
}

/* gz = g act'(z), db = the sum of its rows; block by block dw += gz^T patches, d patches = gz w */
static void conv_backward(at_node *node)
{
    const conv *c = node->saved;
    at_tensor *x = node->inputs[0], *w = node->inputs[1], *b = node->inputs[2], *y = node->outputs[0];
    const int64_t out = w->shape.dim[0], cells = c->out.first[c->out.count];
    at_tape *tape = y->tape;
    at_real *x_grad = at_tensor_grad(x), *w_grad = at_tensor_grad(w);
    at_act_grad(y, cells, out, c->act, at_tensor_grad(b));
    at_mark mark = at_arena_mark(at_tape_arena(tape));
    at_real *patches = at_room(tape, (size_t)(c->block * c->patch) * sizeof *patches);
    for (int64_t begin = 0; patches && begin < cells && at_tape_ok(tape); begin += c->block) {
        const int64_t rows = rows_of_block(c, begin);
        const at_real *gz = y->grad + begin * out; /* [rows, out] */
        if (w_grad)
            at_weights_product(tape, w_grad, c->patch, out, rows, gz, patches_of(c, x->value, begin, rows, patches));
        if (!x_grad)
            continue;
        const bool in_place = is_pointwise(&c->window);
        at_gemm gemm = {.m = rows,
                        .n = c->patch,
                        .k = out,
                        .a = gz,
                        .a_row = out,
                        .a_col = 1,
                        .b = w->value,
                        .b_row = c->patch,
                        .b_col = 1,
                        .packed = at_weights_packed(w, false),
                        .c = in_place ? x_grad + begin * c->channels : patches,
                        .c_row = c->patch,
                        .accumulate = in_place};
        if (at_product(tape, &gemm) && !in_place)
            at_ranges((c->channels + CHANNELS_OF_A_TASK - 1) / CHANNELS_OF_A_TASK, rows * CHANNELS_OF_A_TASK,
                      add_patches,
                      &(patch_job){.c = c, .begin = begin, .rows = rows, .patches = patches, .x_grad = x_grad});
    }
    at_arena_release(at_tape_arena(tape), mark);
}

static const at_op conv_op = {"conv", conv_backward};

/* The shapes fit together; records an error on the tape if not. */
static bool fits(const conv *c, at_tensor *x, at_tensor *w, at_tensor *b)
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
    const int64_t channels = x->shape.rank == 2 ? x->shape.dim[1] : 0, cells = out->first[out->count];
    conv c = {.in = *in, .out = *out, .window = window, .channels = channels, .act = act};
    c.patch = window.height * window.width * channels;
    if (!fits(&c, x, w, b))
        return NULL;
    c.block = c.patch > 0 ? BLOCK_NUMBERS / c.patch : 1;
    c.block = c.block < 64 ? 64 : c.block > cells ? cells : c.block;
    at_tensor *y = at_tensor_make(x->tape, AT_SHAPE(cells, w->shape.dim[0]));
    at_mark mark = at_arena_mark(at_tape_arena(x->tape));
    at_real *patches = y ? at_room(x->tape, (size_t)(c.block * c.patch) * sizeof *patches) : NULL;
    for (int64_t begin = 0; patches && begin < cells; begin += c.block) {
        const int64_t rows = rows_of_block(&c, begin);
        at_gemm gemm = {.m = rows,
                        .n = w->shape.dim[0],
                        .k = c.patch,
                        .a = patches_of(&c, x->value, begin, rows, patches),
                        .a_row = c.patch,
                        .a_col = 1,
                        .b = w->value,
                        .b_row = 1,
                        .b_col = c.patch,
                        .packed = at_weights_packed(w, true),
                        .c = y->value + begin * w->shape.dim[0],
                        .c_row = w->shape.dim[0],
                        .bias = b ? b->value : NULL,
                        .act = act};
        if (!at_product(x->tape, &gemm))
            break;
    }
    at_arena_release(at_tape_arena(x->tape), mark);
    if (!at_tape_ok(x->tape))
        return NULL;
    y->spare = act == AT_ACT_NONE;
    return at_record_one(&conv_op, y, (at_tensor *[]){x, w, b}, 3, at_keep(x->tape, &c, sizeof c));
}
