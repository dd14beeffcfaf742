/* Pictures that were read from files: PNG (libpng) and JPEG (libjpeg-turbo), recognised by their first bytes.
 *
 * Every kind of PNG is read: grey, grey with alpha, palette, RGB and RGBA, 1 to 16 bits, interlaced or not, with a
 * transparent colour or without. 16 bits become 8 by rounding. What is transparent is laid over white:
 * (c a + 255 (255 - a)) / 255, rounded. Colour profiles and gamma are not applied.
 *
 * JPEG: grey, YCbCr, RGB, CMYK and YCCK of 8 bits, baseline, progressive and arithmetic-coded. CMYK becomes RGB as
 * c k / 255 of inverted inks, without a colour profile. The orientation that a camera notes (EXIF) is not applied: pixels
 * are in the order in which they are stored.
 *
 * Refused with a message that names the file: what is truncated or damaged, another kind of file, a side of more than
 * AT_IMAGE_SIDE pixels, more than AT_IMAGE_PIXELS pixels, and more pixels than so few bytes can describe. Sizes are
 * checked before memory is allocated for them. */
#ifndef AT_IMAGE_H
#define AT_IMAGE_H

#include "attend.h"
#include "image/pictures.h"

enum { AT_IMAGE_SIDE = 65500, AT_IMAGE_PIXELS = 1 << 26 };

/* Start from zeros; release with at_image_free. */
typedef struct at_image {
    int height, width, channels; /* channels: 1 grey, 3 RGB */
    uint8_t *bytes;              /* [height,width,channels] */
} at_image;

/* False with an error: the image is all zeros. Only regular files are read. */
bool at_image_read(const char *path, at_image *image, at_error *error);
/* The same from memory; `name` is the name of the file for error messages. */
bool at_image_parse(const unsigned char *bytes, size_t size, const char *name, at_image *image, at_error *error);
void at_image_free(at_image *image);

/* Makes it grey (Rec. 601: (299 R + 587 G + 114 B) / 1000, rounded) or RGB (three times the grey). */
bool at_image_to_channels(at_image *image, int channels, at_error *error);

/* Makes it height x width. Along a side that becomes shorter each new pixel is the mean over the area it covers; along one
 * that becomes longer it is interpolated between the nearest two. In exact integers, rounded once. */
bool at_image_resize(at_image *image, int height, int width, at_error *error);

#endif
