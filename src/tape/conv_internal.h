/* What the files of the convolution share. */
#ifndef AT_CONV_INTERNAL_H
#define AT_CONV_INTERNAL_H

#include "tape/grid.h"

typedef struct at_conv_shape {
    at_grids in, out;
    at_window window;
    int64_t channels, made; /* C and those of the output */
    int64_t strip, patch;   /* width * C, height * width * C */
    at_act act;
} at_conv_shape;

/* One picture: its sizes, and where its cells begin. */
typedef struct at_conv_picture {
    int64_t height, width, first;             /* of the input */
    int64_t out_height, out_width, out_first; /* of the output */
    int64_t row;                              /* numbers in a row of the input's frame */
} at_conv_picture;
at_conv_picture at_conv_picture_at(const at_conv_shape *c, int64_t index);

/* A picture with `pad` cells of zeros around it, in memory of at_conv_frame_size numbers, enough for the largest of the
 * grids; without padding the picture itself. */
int64_t at_conv_frame_size(const at_grids *grids, int64_t channels, int64_t pad);
const at_real *at_conv_frame(const at_real *x, int64_t height, int64_t width, int64_t channels, int64_t pad,
                             at_real *memory);

/* The gradient of the input. */
typedef struct at_conv_back {
    const at_conv_shape *c;
    at_tape *tape;
    at_tensor *w;
    const at_real *gz; /* [cells of the output, made] */
    at_real *x_grad;   /* [cells, C] */
    bool x_add;        /* false: it is to be written */
} at_conv_back;

void at_conv_phases_back(const at_conv_back *k);  /* conv_phases.c */
void at_conv_patches_back(const at_conv_back *k); /* conv_patches.c */

#endif
