/* The values of pictures, as they are and changed a little. Positions are integers in units of 2^-16 pixels, so that every
 * processor computes the same. */
#include "image/pictures_internal.h"

#include <math.h>

enum { ONE = 1 << 16 };

void at_pictures_values(const at_pictures *pictures, int64_t index, at_real *out)
{
    const at_picture *p = &pictures->pictures[index];
    const int64_t count = p->height * p->width * pictures->form.channels;
    const uint8_t *bytes = pictures->bytes + p->offset;
    if (pictures->form.features) {
        const float *floats = (const float *)(const void *)bytes;
        for (int64_t i = 0; i < count; i++)
            out[i] = floats[i];
        return;
    }
    for (int64_t i = 0; i < count; i++)
        out[i] = (at_real)bytes[i] / 255;
}

/* ---- Changes ---------------------------------------------------------------------------------------------------- */

static int32_t draw(at_rng *rng, double most)
{
    return (int32_t)lrint(most * ONE * (2 * at_rng_uniform(rng) - 1));
}

/* The largest 1 + scale of a side that the shear widens by `more` pixels, so that nothing but the BORDER is cut off. */
static double fitting(double side, double more, double scale)
{
    enum { BORDER = 2 };
    const double most = (side + 2 * BORDER) / (side + more);
    return 1 + scale < most ? 1 + scale : most;
}

at_picture_change at_picture_change_draw(at_rng *rng, double strength, int64_t height, int64_t width)
{
    at_picture_change change;
    strength = strength > 0 ? fmin(strength, 4) : 0;
    const double shear = 0.2 * strength * (2 * at_rng_uniform(rng) - 1);
    const double smaller = 0.15 * strength * (at_rng_uniform(rng) - 1);
    const double stretch = 0.05 * strength * (2 * at_rng_uniform(rng) - 1);
    const double wider = fabs(shear) * (double)height;
    const double across = fitting((double)width, wider, fmin(smaller + stretch, 0));
    const double down = fitting((double)height, 0, fmin(smaller - stretch, 0));
    /* what is left of the sides, in shares of them */
    const double room_x = fmax(0, 1 - across * (1 + wider / (double)width)), room_y = 1 - down;
    change.scale_x = (int32_t)lrint((across - 1) * ONE);
    change.scale_y = (int32_t)lrint((down - 1) * ONE);
    change.shear = (int32_t)lrint(shear * ONE);
    change.shift_x = draw(rng, room_x / 2);
    change.shift_y = draw(rng, room_y / 2);
    return change;
}

/* a b / 2^16, rounded down */
static int64_t times(int64_t a, int64_t b)
{
    return (a * b) >> 16;
}

static int64_t within(int64_t position, int64_t size)
{
    const int64_t last = (size - 1) * ONE;
    return position < 0 ? 0 : position > last ? last : position;
}

/* The four pixels around a position, the nearest ones with most weight:
 *   v = sum_{i,j in 0,1} w_i w_j p[y + i, x + j],  w in units of 1/256. */
static void interpolate(const uint8_t *bytes, int64_t height, int64_t width, int64_t channels, int64_t y, int64_t x,
                        at_real *out)
{
    y = within(y, height);
    x = within(x, width);
    const uint32_t part_y = (uint32_t)(y >> 8) & 255, part_x = (uint32_t)(x >> 8) & 255;
    const uint8_t *at = bytes + ((y >> 16) * width + (x >> 16)) * channels;
    const int64_t right = part_x > 0 ? channels : 0, below = part_y > 0 ? width * channels : 0;
    for (int64_t c = 0; c < channels; c++) {
        const uint32_t upper = at[c] * (256 - part_x) + at[right + c] * part_x;
        const uint32_t lower = at[below + c] * (256 - part_x) + at[below + right + c] * part_x;
        out[c] = (at_real)(upper * (256 - part_y) + lower * part_y) / (255 * ONE); /* below 2^24: exact as a float */
    }
}

/* The new pixel at (x, y) shows the old one at
 *   x' = m_x + (x - m_x - shift_x) / (1 + scale_x) - shear (y - m_y),   y' = m_y + (y - m_y - shift_y) / (1 + scale_y)
 * about the middle (m_x, m_y). */
void at_pictures_augmented(const at_pictures *pictures, int64_t index, const at_picture_change *change, at_real *out)
{
    if (pictures->form.features) {
        at_pictures_values(pictures, index, out);
        return;
    }
    const at_picture *p = &pictures->pictures[index];
    const int64_t channels = pictures->form.channels;
    const int64_t middle_x = (p->width - 1) * (ONE / 2), middle_y = (p->height - 1) * (ONE / 2);
    const int64_t shift_x = change->shift_x * p->width, shift_y = change->shift_y * p->height;
    const int64_t shrink_x = (int64_t)ONE * ONE / (ONE + change->scale_x);
    const int64_t shrink_y = (int64_t)ONE * ONE / (ONE + change->scale_y);
    for (int64_t y = 0; y < p->height; y++) {
        const int64_t down = y * ONE - middle_y;
        const int64_t old_y = middle_y + times(down - shift_y, shrink_y), slant = times(change->shear, down);
        for (int64_t x = 0; x < p->width; x++, out += channels)
            interpolate(pictures->bytes + p->offset, p->height, p->width, channels, old_y,
                        middle_x + times(x * ONE - middle_x - shift_x, shrink_x) - slant, out);
    }
}
