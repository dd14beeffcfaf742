/* The gradient of an input with few channels, such as the sums of coverage: of some output cells at a time the gradients of their
 * patches, side by side, [rows, height * width * C], which are then added to the cells under them. */
#include <string.h>

#include "tape/block.h"
#include "tape/conv_internal.h"
#include "tape/ops.h"

enum { BLOCK_NUMBERS = 1 << 14 }; /* of a block of patches: they stay in L2 */

/* Numbers of the frame's gradient += the patches of the output cells begin .. begin + rows - 1, cell after cell. */
static void add_patches(const at_conv_shape *c, const at_conv_picture *p, int64_t begin, int64_t rows,
                        const at_real *patches, at_real *frame_grad)
{
    const int64_t stride = c->window.stride, strip = c->strip;
    for (int64_t cell = begin; cell < begin + rows; cell++) {
        at_real *grad = frame_grad + (cell / p->out_width * p->row + cell % p->out_width * c->channels) * stride;
        for (int64_t i = 0; i < c->window.height; i++, grad += p->row, patches += strip)
            for (int64_t at = 0; at < strip; at++)
                grad[at] += patches[at];
    }
}

/* dx = or += the inside of the frame's gradient */
static void add_frame(const at_conv_back *k, const at_conv_picture *p, const at_real *frame_grad)
{
    const int64_t row = p->width * k->c->channels, pad = k->c->window.pad;
    for (int64_t y = 0; y < p->height; y++) {
        const at_real *g = frame_grad + (y + pad) * p->row + pad * k->c->channels;
        at_real *grad = k->x_grad + p->first * k->c->channels + y * row;
        for (int64_t i = 0; i < row; i++)
            grad[i] = k->x_add ? grad[i] + g[i] : g[i];
    }
}

/* d patches = gz w */
void at_conv_patches_back(const at_conv_back *k)
{
    const at_conv_shape *c = k->c;
    const int64_t pad = c->window.pad, most = BLOCK_NUMBERS / c->patch > 64 ? BLOCK_NUMBERS / c->patch : 64;
    at_real *patches = at_room(k->tape, (size_t)(most * c->patch) * sizeof *patches);
    at_real *frame_grad = at_room(k->tape, (size_t)at_conv_frame_size(&c->in, c->channels, pad) * sizeof *frame_grad);
    for (int64_t i = 0; i < c->in.count && at_tape_ok(k->tape); i++) {
        const at_conv_picture p = at_conv_picture_at(c, i);
        const int64_t cells = p.out_height * p.out_width;
        memset(frame_grad, 0, (size_t)((p.height + 2 * pad) * p.row) * sizeof *frame_grad);
        for (int64_t begin = 0; begin < cells; begin += most) {
            const int64_t rows = cells - begin < most ? cells - begin : most;
            const at_gemm gemm = {.m = rows,
                                  .n = c->patch,
                                  .k = c->made,
                                  .a = k->gz + (p.out_first + begin) * c->made,
                                  .a_row = c->made,
                                  .a_col = 1,
                                  .b = k->w->value,
                                  .b_row = c->patch,
                                  .b_col = 1,
                                  .packed = at_weights_packed(k->w, false),
                                  .c = patches,
                                  .c_row = c->patch};
            if (!at_product(k->tape, &gemm))
                return;
            add_patches(c, &p, begin, rows, patches, frame_grad);
        }
        add_frame(k, &p, frame_grad);
    }
}
