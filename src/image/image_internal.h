/* What the readers of the kinds of pictures share. */
#ifndef AT_IMAGE_INTERNAL_H
#define AT_IMAGE_INTERNAL_H

#include "image/image.h"

/* A file that is read. */
typedef struct at_image_file {
    const unsigned char *bytes;
    size_t size;
    const char *name, *kind; /* "PNG", "JPEG" */
    at_error *error;
} at_image_file;

/* A reader of one kind: false with an error. The image is zeros before, and released by the caller after a failure. */
typedef bool at_image_reader(const at_image_file *file, at_image *image);
at_image_reader at_png_read, at_jpeg_read;

/* "'x.png' is a truncated PNG picture" and "'x.png' is a damaged PNG picture: WHY". */
bool at_image_truncated(const at_image_file *file);
bool at_image_damaged(const at_image_file *file, const char *why);

/* Whether the picture may be that large. `most` is how many pixels a file of its size can describe. */
bool at_image_size_check(const at_image_file *file, uint64_t height, uint64_t width, uint64_t most);

/* Memory for the pixels, of that many bytes each. */
bool at_image_allocate(const at_image_file *file, at_image *image, size_t pixel_bytes);

#endif
