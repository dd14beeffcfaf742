/* Convolution by patches: those of some output cells are copied side by side, [rows, height * width * C], and multiplied at
 * once; a block of them fits into the second-level cache. */
#include <string.h>

#include "tape/block.h"
#include "tape/conv_internal.h"
#include "tape/ops.h"

enum { BLOCK_NUMBERS = 1 << 16 }; /* of a block of patches */

/* The patches of the output cells begin .. begin + rows - 1 of a picture. */
typedef struct patch_job {
    const at_conv_shape *c;
    at_conv_picture p;
    int64_t begin;
    const at_real *frame;
    at_real *patches;    /* [rows, patch] */
    at_real *frame_grad; /* the backward pass */
    int64_t rows;
} patch_job;

/* Where the patch of an output cell begins in the frame. */
static int64_t corner(const patch_job *j, int64_t cell)
{
    const int64_t stride = j->c->window.stride;
    return (cell / j->p.out_width * j->p.frame + cell % j->p.out_width) * stride * j->c->channels;
}

static void copy_patches(void *context, int64_t from, int64_t to)
{
    const patch_job *j = context;
    const int64_t strip = j->c->strip, height = j->c->window.height, row = j->p.frame * j->c->channels;
    for (int64_t cell = from; cell < to; cell++) {
        const at_real *x = j->frame + corner(j, j->begin + cell);
        at_real *patch = j->patches + cell * j->c->patch;
        for (int64_t i = 0; i < height; i++, patch += strip, x += row)
            if (strip <= AT_CONV_SLACK && (height - i) * strip >= AT_CONV_SLACK && !at_conv_is_framed(j->c))
                memcpy(patch, x, AT_CONV_SLACK * sizeof *x); /* the next strips overwrite what is too much */
            else
                memcpy(patch, x, (size_t)strip * sizeof *x);
    }
}

enum { CHANNELS_OF_A_TASK = 16 };

/* The gradient of the frame's channels from .. to - 1, from those of the patches, cell after cell: a thread has its own
 * channels, so every number is added up in the order of the cells. */
static void add_patches(void *context, int64_t from, int64_t to)
{
    const patch_job *j = context;
    const int64_t C = j->c->channels, first = from * CHANNELS_OF_A_TASK, row = j->p.frame * C;
    const int64_t last = to * CHANNELS_OF_A_TASK < C ? to * CHANNELS_OF_A_TASK : C;
    for (int64_t cell = 0; cell < j->rows; cell++) {
        const at_real *g = j->patches + cell * j->c->patch;
        at_real *grad = j->frame_grad + corner(j, j->begin + cell);
        for (int64_t i = 0; i < j->c->window.height; i++, grad += row)
            for (int64_t at = 0; at < j->c->strip; at += C, g += C)
                for (int64_t k = first; k < last; k++)
                    grad[at + k] += g[k];
    }
}

static int64_t block_of(const at_conv_shape *c)
{
    const int64_t rows = c->patch > 0 ? BLOCK_NUMBERS / c->patch : 1;
    return rows < 64 ? 64 : rows;
}

static int64_t rows_of_block(const at_conv_shape *c, const at_conv_picture *p, int64_t begin)
{
    const int64_t left = p->out_height * p->out_width - begin;
    return left < block_of(c) ? left : block_of(c);
}

at_real *at_conv_patch_room(at_tape *tape, const at_conv_shape *c)
{
    return at_room(tape, (size_t)(block_of(c) * c->patch) * sizeof(at_real));
}

bool at_conv_patches(at_tape *tape, const at_conv_shape *c, const at_conv_picture *p, const at_real *frame,
                     at_tensor *w, const at_real *b, at_real *patches, at_real *y)
{
    for (int64_t begin = 0; begin < p->out_height * p->out_width; begin += block_of(c)) {
        const int64_t rows = rows_of_block(c, p, begin);
        at_ranges(rows, c->patch, copy_patches,
                  &(patch_job){.c = c, .p = *p, .begin = begin, .frame = frame, .patches = patches});
        const at_gemm gemm = {.m = rows,
                              .n = c->made,
                              .k = c->patch,
                              .a = patches,
                              .a_row = c->patch,
                              .a_col = 1,
                              .b = w->value,
                              .b_row = 1,
                              .b_col = c->patch,
                              .packed = at_weights_packed(w, true),
                              .c = y + (p->out_first + begin) * c->made,
                              .c_row = c->made,
                              .bias = b,
                              .act = c->act};
        if (!at_product(tape, &gemm))
            return false;
    }
    return true;
}

/* dx += the inside of the frame's gradient */
static void add_frame(const at_conv_back *k, const at_conv_picture *p)
{
    const int64_t row = p->width * k->c->channels, pad = k->c->window.pad;
    for (int64_t y = 0; y < p->height; y++) {
        const at_real *g = k->frame_grad + ((y + pad) * p->frame + pad) * k->c->channels;
        at_real *grad = k->x_grad + p->first * k->c->channels + y * row;
        for (int64_t i = 0; i < row; i++)
            grad[i] += g[i];
    }
}

/* Block by block dw += gz^T patches, d patches = gz w */
void at_conv_patches_back(const at_conv_back *k, const at_conv_picture *p)
{
    const at_conv_shape *c = k->c;
    const at_real *frame = k->w_grad ? at_conv_frame(c, p, k->x, k->frame) : NULL;
    if (k->x_grad)
        memset(k->frame_grad, 0,
               (size_t)((p->height + 2 * c->window.pad) * p->frame * c->channels) * sizeof *k->frame_grad);
    for (int64_t begin = 0; begin < p->out_height * p->out_width && at_tape_ok(k->tape); begin += block_of(c)) {
        patch_job job = {c, *p, begin, frame, k->rows, k->frame_grad, rows_of_block(c, p, begin)};
        const at_real *gz = k->gz + (p->out_first + begin) * c->made; /* [rows, made] */
        if (k->w_grad) {
            at_ranges(job.rows, c->patch, copy_patches, &job);
            at_weights_product(k->tape, k->w_grad, c->patch, c->made, job.rows, gz, k->rows);
        }
        if (!k->x_grad)
            continue;
        const at_gemm gemm = {.m = job.rows,
                              .n = c->patch,
                              .k = c->made,
                              .a = gz,
                              .a_row = c->made,
                              .a_col = 1,
                              .b = k->w->value,
                              .b_row = c->patch,
                              .b_col = 1,
                              .packed = at_weights_packed(k->w, false),
                              .c = k->rows,
                              .c_row = c->patch};
        if (at_product(k->tape, &gemm))
            at_ranges((c->channels + CHANNELS_OF_A_TASK - 1) / CHANNELS_OF_A_TASK, job.rows * CHANNELS_OF_A_TASK,
                      add_patches, &job);
    }
    if (k->x_grad)
        add_frame(k, p);
}
