/* The gradient of the input of a convolution with stride s, by products of patches.
 *
 *   x_X went to the outputs o with X + pad = s o + q, q in the window. With X + pad = s u + r, 0 <= r < s, these are q = r + s t
 *   and o = u - t. So the cells of one phase r, every s-th of a row, see windows of their own, ceil((width - r) / s) wide, that
 *   move by one output at a time: a convolution with stride 1 of the outputs' gradient, whose results lie s cells apart.
 *
 * The same holds from row to row. Each number is one chain over the outputs that it went to, from top to bottom and from left to
 * right. */
#include <string.h>

#include "kernels/patches.h"
#include "tape/block.h"
#include "tape/conv_internal.h"
#include "tape/ops.h"

/* Values of t for a phase. */
static int64_t taps(int64_t window, int64_t stride, int64_t phase)
{
    return phase < window ? (window - phase - 1) / stride + 1 : 0;
}

/* The first u of a phase whose cell is inside, and how many there are. */
static int64_t inside(int64_t size, int64_t pad, int64_t stride, int64_t phase, int64_t *first)
{
    *first = phase < pad ? (pad - phase + stride - 1) / stride : 0;
    const int64_t last = size - 1 + pad - phase; /* s u at most */
    return last >= stride * *first ? last / stride - *first + 1 : 0;
}

/* Cells of zeros around the outputs' gradient. */
static int64_t border_of(const at_conv_shape *c)
{
    const int64_t most = c->window.height > c->window.width ? c->window.height : c->window.width;
    return (most - 1) / c->window.stride + 1;
}

/* The numbers of the window that cells of the phases (row, column) see, [taps down * taps across * made, C], packed. */
static void pack_phase(const at_conv_back *k, int64_t row, int64_t column, at_real *scratch, at_real *packed)
{
    const at_conv_shape *c = k->c;
    const int64_t stride = c->window.stride, C = c->channels;
    const int64_t down = taps(c->window.height, stride, row), across = taps(c->window.width, stride, column);
    at_real *to = scratch;
    for (int64_t i = down - 1; i >= 0; i--)
        for (int64_t j = across - 1; j >= 0; j--)
            for (int64_t o = 0; o < c->made; o++, to += C)
                memcpy(to, k->w->value + o * c->patch + (row + stride * i) * c->strip + (column + stride * j) * C,
                       (size_t)C * sizeof *to);
    at_gemm_pack(scratch, C, 1, down * across * c->made, C, packed);
}

/* The cells of a picture in the phases (row, column); gz with its border. */
static void add_phase(const at_conv_back *k, const at_conv_picture *p, const at_real *gz, int64_t row, int64_t column,
                      const at_real *packed)
{
    const at_conv_shape *c = k->c;
    const int64_t stride = c->window.stride, pad = c->window.pad, border = border_of(c);
    const int64_t down = taps(c->window.height, stride, row), across = taps(c->window.width, stride, column);
    const int64_t wide = (p->out_width + 2 * border) * c->made;
    int64_t v, u;
    const int64_t lines = inside(p->height, pad, stride, row, &v);
    const int64_t cells = inside(p->width, pad, stride, column, &u);
    const int64_t y = stride * v + row - pad, x = stride * u + column - pad;
    if (lines <= 0 || cells <= 0)
        return;
    at_patch_product_run(
        &(at_patch_product){.lines = lines,
                            .cells = cells,
                            .spans = across > 0 ? down : 0,
                            .steps = across * c->made,
                            .n = c->channels,
                            .a = gz + (v - (down - 1) + border) * wide + (u - (across - 1) + border) * c->made,
                            .a_line = wide,
                            .a_cell = c->made,
                            .a_span = wide,
                            .a_step = 1,
                            .packed = packed,
                            .c = k->x_grad + (p->first + y * p->width + x) * c->channels,
                            .c_line = stride * p->width * c->channels,
                            .c_cell = stride * c->channels,
                            .accumulate = k->x_add});
}

void at_conv_phases_back(const at_conv_back *k)
{
    const at_conv_shape *c = k->c;
    const int64_t stride = c->window.stride, border = border_of(c);
    const int64_t most = taps(c->window.height, stride, 0) * taps(c->window.width, stride, 0) * c->made;
    const int64_t size = at_gemm_packed_size(most, c->channels);
    at_real *scratch = at_room(k->tape, (size_t)(most * c->channels) * sizeof *scratch);
    at_real *packed = at_room(k->tape, (size_t)(stride * stride * size) * sizeof *packed);
    at_real *memory = at_room(k->tape, (size_t)at_conv_frame_size(&c->out, c->made, border) * sizeof *memory);
    if (!at_tape_ok(k->tape))
        return;
    for (int64_t phase = 0; phase < stride * stride; phase++)
        pack_phase(k, phase / stride, phase % stride, scratch, packed + phase * size);
    for (int64_t i = 0; i < c->in.count; i++) {
        const at_conv_picture p = at_conv_picture_at(c, i);
        const at_real *gz =
            at_conv_frame(k->gz + p.out_first * c->made, p.out_height, p.out_width, c->made, border, memory);
        for (int64_t phase = 0; phase < stride * stride; phase++)
            add_phase(k, &p, gz, phase / stride, phase % stride, packed + phase * size);
    }
}
