/* Pictures on the tape. A batch of pictures of any sizes is one tensor [cells, channels] without padding: picture after
 * picture, each row by row. at_grids says where each one lies, so no operation sees a neighbour or a padded cell. */
#ifndef AT_GRID_H
#define AT_GRID_H

#include "kernels/gemm.h"
#include "tape/tape.h"

typedef struct at_grids {
    int64_t count;                 /* pictures */
    const int64_t *height, *width; /* [count], in cells */
    const int64_t *first;          /* [count + 1]: the first cell of each picture; the last entry is the sum */
} at_grids;

/* The window that a convolution or a pooling moves over a picture. Cells outside of the picture count as zeros in a
 * convolution, and do not count in a pooling. */
typedef struct at_window {
    int64_t height, width, stride, pad; /* pad: cells that the window may begin outside, on each side */
} at_window;

/* The grids of these sizes, in the tape's arena; the sizes must stay. `first` NULL: out of memory, said on the tape. */
at_grids at_grids_make(at_tape *tape, int64_t count, const int64_t *height, const int64_t *width);
/* What the window makes of them: (size + 2 pad - window) / stride + 1 in each direction, rounded down, or rounded up
 * (`partial`: the last window may lie across the border). A picture smaller than the window is an error on the tape. */
at_grids at_grids_after(at_tape *tape, const at_grids *in, at_window window, bool partial);

/* Grids must stay until the backward pass. */

/* conv.c: y_p = act(b + sum_q w_q x_(p stride - pad + q)), q over the window: x [cells, C], w [out, height * width * C],
 * b [out] or NULL; y [cells of `out`, out]. */
at_tensor *at_conv(at_tensor *x, const at_grids *in, at_window window, at_tensor *w, at_tensor *b, at_act act,
                   const at_grids *out);
/* pool.c: the largest of each channel in the window, `out` made with `partial`; the first of equals gets the gradient. */
at_tensor *at_max_pool(at_tensor *x, const at_grids *in, at_window window, const at_grids *out);
/* group_norm.c: gain (x - mean) / sqrt(variance + eps) + bias, and relu of it if wanted; mean and variance over all cells of a picture and the
 * channels of a group; groups 1 is layer norm of a picture. */
at_tensor *at_group_norm(at_tensor *x, const at_grids *grids, int64_t groups, at_tensor *gain, at_tensor *bias,
                         at_real eps, bool relu);
/* grid.c: 2-D positions, [cells, channels], a multiple of 4: the first half of the channels has sines and cosines of
 * the row (interleaved, rate 10000^(-2i/half)), the second half of the column. */
at_tensor *at_grid_positions(at_tape *tape, const at_grids *grids, int64_t channels);

#endif
