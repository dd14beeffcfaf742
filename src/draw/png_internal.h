/* PNG files that need no library to be written: their pixels are not compressed. */
#ifndef AT_PNG_INTERNAL_H
#define AT_PNG_INTERNAL_H

#include "base/buffer.h"

/* Adds the picture, bytes [height,width,channels] with 1 or 3 channels, as a data: address of a PNG file. */
void at_png_address(at_buffer *text, const unsigned char *pixels, int64_t height, int64_t width, int channels);

#endif
