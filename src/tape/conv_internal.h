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
    int64_t frame;                            /* cells in a row of the frame */
} at_conv_picture;

/* What the pictures share in the backward pass. */
typedef struct at_conv_back {
    const at_conv_shape *c;
    at_tape *tape;
    at_tensor *w;
    const at_real *x, *gz;      /* [cells, C], [cells of the output, made] */
    at_real *x_grad, *w_grad;   /* NULL: not wanted */
    at_real *frame, *gz_frame;  /* memory */
    at_real *rows, *frame_grad; /* patches; the gradient of a frame */
    at_real *turned;            /* the window packed for the gradient of the input */
} at_conv_back;

/* A picture with `pad` cells of zeros around it. The input is its own frame if there is nothing to put around it; another
 * one may be read AT_CONV_SLACK numbers beyond its end. */
enum { AT_CONV_SLACK = 8 };
static inline bool at_conv_is_framed(const at_conv_shape *c)
{
    return c->window.pad == 0;
}
/* Writes the frame of a picture with any border. */
void at_conv_put_frame(const at_real *x, int64_t height, int64_t width, int64_t channels, int64_t pad, at_real *frame);
/* The frame of an input picture, in memory that is large enough. */
const at_real *at_conv_frame(const at_conv_shape *c, const at_conv_picture *p, const at_real *x, at_real *memory);

/* conv_patches.c: by copies of patches, in memory of at_conv_patch_room: forward, and k->w_grad and k->x_grad of a picture. */
at_real *at_conv_patch_room(at_tape *tape, const at_conv_shape *c);
bool at_conv_patches(at_tape *tape, const at_conv_shape *c, const at_conv_picture *p, const at_real *frame,
                     at_tensor *w, const at_real *b, at_real *patches, at_real *y);
void at_conv_patches_back(const at_conv_back *k, const at_conv_picture *p);

/* conv_phases.c: k->x_grad of a picture, with any stride. The window is packed into k->turned, at_conv_phase_room numbers,
 * through scratch memory for width * made * C; k->gz_frame holds the outputs' gradient with at_conv_phase_border zeros. */
int64_t at_conv_phase_border(const at_conv_shape *c);
int64_t at_conv_phase_room(const at_conv_shape *c);
void at_conv_phase_pack(const at_conv_back *k, at_real *scratch);
void at_conv_phases_back(const at_conv_back *k, const at_conv_picture *p);

#endif
