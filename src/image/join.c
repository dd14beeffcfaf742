/* Several pictures side by side as one. */
#include "image/pictures_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* The first pixel of a picture, which is taken for the colour of its paper, on every pixel of `to` [height, width]. */
static void paint(uint8_t *to, int64_t pixels, const uint8_t *paper, int64_t channels)
{
    for (int64_t i = 0; i < pixels; i++)
        memcpy(to + i * channels, paper, (size_t)channels);
}

/* Copies a picture into a wider one from column `left` on, in the middle of its height. */
static void place(uint8_t *to, int64_t height, int64_t width, int64_t left, const uint8_t *from,
                  const at_picture *picture, int64_t channels)
{
    const int64_t top = (height - picture->height) / 2;
    for (int64_t y = 0; y < picture->height; y++)
        memcpy(to + ((top + y) * width + left) * channels, from + y * picture->width * channels,
               (size_t)(picture->width * channels));
}

bool at_pictures_join(at_pictures *pictures, size_t first, at_error *error)
{
    const int64_t channels = pictures->form.channels;
    if (pictures->form.features)
        return at_fail(error, AT_USAGE, "features cannot be joined as pictures can");
    if (pictures->form.width > 0)
        return at_fail(
            error, AT_USAGE,
            "pictures that all get one width cannot be joined; they can if they keep it, or get it from their "
            "height");
    int64_t height = 0, width = 0, left = 0;
    for (size_t i = first; i < pictures->count; i++) {
        const at_picture *p = &pictures->pictures[i];
        height = p->height > height ? p->height : height;
        width += p->width;
    }
    if (width > AT_IMAGE_SIDE || height * width > AT_PICTURE_PIXELS)
        return at_fail(error, AT_UNSUPPORTED, "the joined pictures would have %lld x %lld pixels; %d are the most",
                       (long long)height, (long long)width, AT_PICTURE_PIXELS);
    const size_t size = (size_t)(height * width * channels), from = pictures->pictures[first].offset;
    uint8_t *joined = malloc(size ? size : 1);
    if (!joined)
        return at_no_memory(error, "joined pictures");
    paint(joined, height * width, pictures->bytes + from, channels);
    for (size_t i = first; i < pictures->count; i++) {
        const at_picture *p = &pictures->pictures[i];
        place(joined, height, width, left, pictures->bytes + p->offset, p, channels);
        left += p->width;
    }
    pictures->count = first;
    pictures->used = from;
    uint8_t *to = at_pictures_room(pictures, size, "joined pictures", error);
    if (to) {
        memcpy(to, joined, size);
        at_pictures_keep(pictures, height, width, size);
    }
    free(joined);
    return to;
}
