/* Pictures, or rows of features that another program computed from pictures, as a model takes them: a store that corpora,
 * search and encoding fill line by line. */
#ifndef AT_PICTURES_H
#define AT_PICTURES_H

#include "attend.h"
#include "base/real.h"
#include "base/rng.h"

/* How pictures are given to a model; stored in the model. */
typedef struct at_picture_form {
    int64_t height,
        width;        /* 0 and 0: as they are; one of them 0: it follows from the other, with the same proportions */
    int64_t channels; /* 1 grey, 3 RGB; of features their number D, or 0: that of the first features added */
    bool features;    /* rows of features and not pictures; height and width are 0 */
} at_picture_form;

/* A picture that keeps its size, or gets one from its proportions, may have this many pixels. */
enum { AT_PICTURE_PIXELS = 1 << 22 };

/* Between the names of pictures that are joined to one. */
#define AT_PICTURE_BAR " | "

typedef struct at_pictures at_pictures; /* by index from 0 */
at_pictures *at_pictures_new(const at_picture_form *form, at_error *error);
void at_pictures_free(at_pictures *pictures);
void at_pictures_clear(at_pictures *pictures); /* forgets the pictures, keeps the memory and open arrays */

/* The form, with the number of features once it is known. */
at_picture_form at_pictures_form(const at_pictures *pictures);

/* Adds the picture that a source line names: the path of a PNG or JPEG file, or PATH.npy[INDEX], an item from 0 of an array: uint8 [N,H,W] or [N,H,W,3] of pictures, float16, float32 or float64 [N,L,D]
 * of features. Several of them with AT_PICTURE_BAR between are one picture, side by side. *index is its number, or -1 with an error that names the file. Nothing is added then. */
bool at_pictures_add(at_pictures *pictures, const char *line, size_t length, int64_t *index, at_error *error);

/* A picture can also be in the line itself: data:image/png;base64, or data:image/jpeg;base64, and the bytes of such a file.
 * Whether a line begins so, and is not a path; and whether all of it is one such picture, so that it names no file. */
bool at_picture_is_inline(const char *line, size_t length);
bool at_picture_is_whole(const char *line, size_t length);

int64_t at_pictures_count(const at_pictures *pictures);
uint64_t at_pictures_hash(const at_pictures *pictures); /* of all pictures and their sizes */
size_t at_pictures_bytes(const at_pictures *pictures);  /* of the pictures in memory */
/* Of features: L and 1. */
void at_pictures_size(const at_pictures *pictures, int64_t index, int64_t *height, int64_t *width);

/* The values [height width, channels]: pixels as byte / 255, features as they are. Several threads may read one store. */
void at_pictures_values(const at_pictures *pictures, int64_t index, at_real *out);

/* A small change of a picture, in units of 2^-16; all zeros: none. Integers, so that it is the same everywhere. */
typedef struct at_picture_change {
    int32_t shift_x, shift_y; /* to the right and down, in shares of the width and the height */
    int32_t scale_x, scale_y; /* how much larger: 6554 is 10% */
    int32_t shear;            /* how far to the right per pixel down from the middle */
    int32_t bend;             /* how far, in pixels, the control points of an elastic change move at most */
    uint64_t bend_seed;       /* where to */
} at_picture_change;

/* Draws one for a picture of this size: with strength 1 a shear of up to 0.2 either way, up to 15% smaller, and 5% of
 * stretching; with another strength (0 to 4) that times as much. It is shrunk so that no more than two pixels of its border are
 * cut off, and shifted inside what that leaves. With `elastic` (0 to 1) control points 12 pixels apart move by up to 0.48 of that
 * times `elastic`, and what is between them follows smoothly. Advances rng by five draws, with an elastic change by seven. */
at_picture_change at_picture_change_draw(at_rng *rng, double strength, double elastic, int64_t height, int64_t width);

/* The values of the changed picture, of the same size: each new pixel is interpolated between the four old ones around it,
 * beyond the border the nearest one continues. Without a change exactly at_pictures_values. Features are not changed. */
void at_pictures_augmented(const at_pictures *pictures, int64_t index, const at_picture_change *change, at_real *out);

/* Whether the file is a .npy array, by its first bytes; false too if it cannot be read. */
bool at_pictures_is_array(const char *path);
/* The number of its items, each of which is a line PATH.npy[INDEX]: for a source that is an array as a whole. */
bool at_pictures_array_count(const char *path, int64_t *count, at_error *error);

#endif
