/* The gradient of the input of a convolution with a stride s, without copies of patches.
 *
 *   x_X went to the outputs o with X + pad = s o + q, q in the window. With X + pad = s u + r, 0 <= r < s, these are q = r + s t
 *   and o = u - t. So the cells of one phase r, every s-th of a row, see windows of their own, ceil((width - r) / s) wide, that
 *   move by one output at a time: a row of them is a product with a row of the outputs' gradient, as with stride 1, whose
 *   results lie s cells apart.
 *
 * The same holds from row to row. A number is added up over the rows of its window in their order. */
#include <string.h>

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

int64_t at_conv_phase_border(const at_conv_shape *c)
{
    const int64_t most = c->window.height > c->window.width ? c->window.height : c->window.width;
    return (most - 1) / c->window.stride + 1;
}

/* The numbers of the window that a cell of phase r sees in row i, as [taps * made, C] for outputs from left to right; room for
 * the largest. */
static int64_t matrix_size(const at_conv_shape *c)
{
    return at_gemm_packed_size(taps(c->window.width, c->window.stride, 0) * c->made, c->channels);
}

int64_t at_conv_phase_room(const at_conv_shape *c)
{
    return c->window.height * c->window.stride * matrix_size(c);
}

void at_conv_phase_pack(const at_conv_back *k, at_real *scratch)
{
    const at_conv_shape *c = k->c;
    const int64_t stride = c->window.stride, C = c->channels;
    at_real *packed = k->turned;
    for (int64_t i = 0; i < c->window.height; i++)
        for (int64_t r = 0; r < stride; r++, packed += matrix_size(c)) {
            const int64_t count = taps(c->window.width, stride, r);
            for (int64_t j = 0; j < count; j++)
                for (int64_t o = 0; o < c->made; o++)
                    memcpy(scratch + (j * c->made + o) * C,
                           k->w->value + o * c->patch + i * c->strip + (r + stride * (count - 1 - j)) * C,
                           (size_t)C * sizeof *scratch);
            if (count > 0)
                at_gemm_pack(scratch, C, 1, count * c->made, C, packed);
        }
}

/* The cells of phases (row, column) += row i of the window times the outputs' gradient. */
static bool add_phase(const at_conv_back *k, const at_conv_picture *p, const at_real *gz, int64_t i, int64_t column)
{
    const at_conv_shape *c = k->c;
    const int64_t stride = c->window.stride, pad = c->window.pad, border = at_conv_phase_border(c);
    const int64_t wide = p->out_width + 2 * border, count = taps(c->window.width, stride, column);
    int64_t v, u;
    const int64_t rows = inside(p->height, pad, stride, i % stride, &v);
    const int64_t cells = inside(p->width, pad, stride, column, &u);
    if (rows <= 0 || cells <= 0 || count <= 0)
        return true;
    const int64_t y = stride * v + i % stride - pad, x = stride * u + column - pad;
    const at_gemm gemm = {.m = cells,
                          .n = c->channels,
                          .k = count * c->made,
                          .a = gz + ((v - i / stride + border) * wide + u - (count - 1) + border) * c->made,
                          .a_row = c->made,
                          .a_col = 1,
                          .packed = k->turned + (i * stride + column) * matrix_size(c),
                          .c = k->x_grad + (p->first + y * p->width + x) * c->channels,
                          .c_row = stride * c->channels,
                          .accumulate = true};
    return at_gemm_batch(&gemm, rows, wide * c->made, 0, stride * p->width * c->channels, at_tape_arena(k->tape)) ||
           at_no_memory(at_tape_error(k->tape), "a batch of %lld products", (long long)rows);
}

void at_conv_phases_back(const at_conv_back *k, const at_conv_picture *p)
{
    const at_conv_shape *c = k->c;
    const at_real *gz = k->gz + p->out_first * c->made;
    at_conv_put_frame(gz, p->out_height, p->out_width, c->made, at_conv_phase_border(c), k->gz_frame);
    for (int64_t i = 0; i < c->window.height; i++)
        for (int64_t column = 0; column < c->window.stride; column++)
            if (!add_phase(k, p, k->gz_frame, i, column))
                return;
}
