#include "tape/grid.h"

#include <math.h>

#include "tape/block.h"

at_grids at_grids_make(at_tape *tape, int64_t count, const int64_t *height, const int64_t *width)
{
    int64_t *first = at_room(tape, (size_t)(count + 1) * sizeof *first);
    if (!first)
        return (at_grids){0};
    first[0] = 0;
    for (int64_t i = 0; i < count; i++)
        first[i + 1] = first[i] + height[i] * width[i];
    return (at_grids){.count = count, .height = height, .width = width, .first = first};
}

/* One direction: how many windows fit. */
static int64_t windows(int64_t size, int64_t window, const at_window *w, bool partial)
{
    const int64_t room = size + 2 * w->pad - window + (partial ? w->stride - 1 : 0);
    const int64_t count = room >= 0 ? room / w->stride + 1 : partial && size > 0 ? 1 : 0;
    /* a partial window must hold at least one cell */
    return count > 0 && (count - 1) * w->stride - w->pad >= size ? count - 1 : count;
}

at_grids at_grids_after(at_tape *tape, const at_grids *in, at_window window, bool partial)
{
    int64_t *height = at_room(tape, (size_t)in->count * 2 * sizeof *height), *width = height + in->count;
    if (!in->first || !height)
        return (at_grids){0};
    for (int64_t i = 0; i < in->count; i++) {
        height[i] = windows(in->height[i], window.height, &window, partial);
        width[i] = windows(in->width[i], window.width, &window, partial);
        if (height[i] < 1 || width[i] < 1) {
            at_fail(at_tape_error(tape), AT_SHAPE,
                    "picture %lld of the batch is %lld x %lld here, which is smaller than the window of %lld x %lld",
                    (long long)i + 1, (long long)in->height[i], (long long)in->width[i], (long long)window.height,
                    (long long)window.width);
            return (at_grids){0};
        }
    }
    return at_grids_make(tape, in->count, height, width);
}

at_tensor *at_grid_positions(at_tape *tape, const at_grids *grids, int64_t channels)
{
    if (!grids->first)
        return NULL;
    if (channels < 4 || channels % 4)
        return AT_REFUSE(tape, AT_SHAPE, "2-D positions need a multiple of 4 channels, not %lld", (long long)channels);
    at_tensor *out = at_tensor_make(tape, AT_SHAPE(grids->first[grids->count], channels));
    const int64_t half = channels / 2;
    at_real *to = out ? out->value : NULL;
    for (int64_t p = 0; to && p < grids->count; p++)
        for (int64_t cell = 0; cell < grids->height[p] * grids->width[p]; cell++, to += channels)
            for (int64_t i = 0; i < half / 2; i++) {
                const double rate = exp(-log(10000.0) * (double)(2 * i) / (double)half);
                const double row = (double)(cell / grids->width[p]) * rate;
                const double column = (double)(cell % grids->width[p]) * rate;
                to[2 * i] = (at_real)sin(row);
                to[2 * i + 1] = (at_real)cos(row);
                to[half + 2 * i] = (at_real)sin(column);
                to[half + 2 * i + 1] = (at_real)cos(column);
            }
    return out;
}
