#include "image/image.h"

#include <stdlib.h>

#include "base/error.h"

bool at_image_to_channels(at_image *image, int channels, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    const size_t pixels = (size_t)image->height * (size_t)image->width;
    if (image->channels == channels)
        return true;
    if (channels == 1) {
        const uint8_t *from = image->bytes;
        for (size_t i = 0; i < pixels; i++, from += 3)
            image->bytes[i] = (uint8_t)((299u * from[0] + 587u * from[1] + 114u * from[2] + 500) / 1000);
    } else {
        uint8_t *larger = realloc(image->bytes, pixels * 3);
        if (!larger)
            return at_no_memory(error, "a picture of %d x %d pixels", image->height, image->width);
        image->bytes = larger;
        for (size_t i = pixels; i-- > 0;) /* from the end, so that nothing is overwritten before it is read */
            larger[3 * i] = larger[3 * i + 1] = larger[3 * i + 2] = larger[i];
    }
    image->channels = channels;
    return true;
}

/* The old pixels that a new one is made of, along one side: `first` to `last`, whose weights are integers with the sum
 * `total`. */
typedef struct span {
    int64_t first, last, total;
    int64_t start, step; /* area: in units of 1/to of an old pixel; else the weight of `last` */
    bool area;
} span;

/* Shorter: the new pixel covers the old ones from i from/to until (i + 1) from/to. Longer: its middle lies at
 * (i + 1/2) from/to - 1/2. The same: itself. */
static span span_of(int64_t i, int64_t from, int64_t to)
{
    if (to < from)
        return (span){i * from / to, ((i + 1) * from - 1) / to, from, i * from, to, true};
    const int64_t middle = (2 * i + 1) * from - to; /* in units of 1 / (2 to) */
    const int64_t before = middle < 0 ? 0 : middle / (2 * to), part = middle < 0 ? 0 : middle % (2 * to);
    return (span){before, part > 0 && before + 1 < from ? before + 1 : before, 2 * to, part, 0, false};
}

static uint32_t weight(const span *s, int64_t old)
{
    if (!s->area)
        return (uint32_t)(s->first == s->last ? s->total : old == s->last ? s->start : s->total - s->start);
    const int64_t from = s->start > old * s->step ? s->start : old * s->step;
    const int64_t until = s->start + s->total, end = (old + 1) * s->step;
    return (uint32_t)((until < end ? until : end) - from);
}

/* One new row of pixels: the rows of `down` summed into `sums` [width channels], then along the row. */
static void resize_row(const at_image *image, const span *down, const span *across, int64_t width, uint32_t *sums,
                       uint8_t *out)
{
    const int64_t channels = image->channels, length = image->width * channels;
    for (int64_t y = down->first; y <= down->last; y++) {
        const uint8_t *row = image->bytes + y * length;
        const uint32_t w = weight(down, y);
        for (int64_t i = 0; i < length; i++)
            sums[i] = (y == down->first ? 0 : sums[i]) + w * row[i];
    }
    for (int64_t x = 0; x < width; x++) {
        const uint64_t total = (uint64_t)down->total * (uint64_t)across[x].total;
        for (int64_t c = 0; c < channels; c++) {
            uint64_t sum = 0;
            for (int64_t old = across[x].first; old <= across[x].last; old++)
                sum += (uint64_t)weight(&across[x], old) * sums[old * channels + c];
            *out++ = (uint8_t)((sum + total / 2) / total);
        }
    }
}

bool at_image_resize(at_image *image, int height, int width, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    if (image->height == height && image->width == width)
        return true;
    const size_t length = (size_t)width * (size_t)image->channels;
    uint8_t *out = malloc((size_t)height * length);
    uint32_t *sums = malloc((size_t)image->width * (size_t)image->channels * sizeof *sums);
    span *across = malloc((size_t)width * sizeof *across);
    const bool done = out && sums && across;
    for (int x = 0; done && x < width; x++)
        across[x] = span_of(x, image->width, width);
    for (int y = 0; done && y < height; y++) {
        const span down = span_of(y, image->height, height);
        resize_row(image, &down, across, width, sums, out + (size_t)y * length);
    }
    free(sums);
    free(across);
    if (!done) {
        free(out);
        return at_no_memory(error, "a picture of %d x %d pixels", height, width);
    }
    free(image->bytes);
    image->bytes = out;
    image->height = height;
    image->width = width;
    return true;
}
