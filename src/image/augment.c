/* The values of pictures, as they are and changed a little. Positions are integers in units of 2^-16 pixels, so that every
 * processor computes the same. */
#include "image/pictures_internal.h"

#include <math.h>

enum { ONE = 1 << 16 };

/* Pixels between the control points of an elastic change, about a letter's or a small object's half; and how far, in these
 * distances, one may move: from 0.48 on the picture could fold (Choi and Lee 2000). */
enum { SPACING = 12 };
#define MOST_BEND 0.48

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

at_picture_change at_picture_change_draw(at_rng *rng, double strength, double elastic, int64_t height, int64_t width)
{
    at_picture_change change = {0};
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
    if (elastic > 0) {
        change.bend = (int32_t)lrint(fmin(elastic, 1) * MOST_BEND * SPACING * ONE);
        const uint32_t high = at_rng_u32(rng), low = at_rng_u32(rng);
        change.bend_seed = (uint64_t)high << 32 | low;
    }
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

/* ---- Elastic changes ---------------------------------------------------------------------------------------------
 * The control points lie on a grid, and each of them moves by c_ij, both parts uniform in [-bend, bend]. A pixel moves by their
 * cubic B-spline (Lee et al. 1996),
 *   d(x, y) = sum_{k,l in 0..3} B_k(s) B_l(t) c_{i+k,j+l},   x = SPACING (j + t), y = SPACING (i + s)
 * with i, j whole and s, t in [0, 1). */

typedef struct movement {
    int64_t x, y; /* in units of 2^-16 pixels */
} movement;

/* B_0..B_3 at `at` of SPACING: (1-t)^3/6, (3t^3-6t^2+4)/6, (-3t^3+3t^2+3t+1)/6, t^3/6. Their sum is ONE. */
static void spline(int64_t at, int64_t weight[4])
{
    const int64_t n = SPACING, t = at, r = n - t, cube = 6 * n * n * n;
    weight[0] = r * r * r * ONE / cube;
    weight[1] = (3 * t * t * t - 6 * t * t * n + 4 * n * n * n) * ONE / cube;
    weight[3] = t * t * t * ONE / cube;
    weight[2] = ONE - weight[0] - weight[1] - weight[3];
}

/* The rows i .. i+3 of column j, weighted by B(s). */
static movement column_of(const at_picture_change *change, int64_t i, int64_t j, const int64_t weight[4])
{
    movement sum = {0, 0};
    for (int64_t k = 0; k < 4; k++) {
        uint32_t word[4];
        at_philox(change->bend_seed, (uint64_t)(i + k), (uint64_t)j, word);
        sum.x += weight[k] * (((int64_t)(int32_t)word[0] * change->bend) >> 31);
        sum.y += weight[k] * (((int64_t)(int32_t)word[1] * change->bend) >> 31);
    }
    return (movement){sum.x >> 16, sum.y >> 16};
}

/* The columns j .. j+3 that move the pixels of row y from SPACING j on; a row goes through them from left to right. */
typedef struct bent_row {
    const at_picture_change *change;
    int64_t i, rows[4]; /* the first row of control points, and the weights of four */
    movement column[4];
} bent_row;

static bent_row bent_row_at(const at_picture_change *change, int64_t y)
{
    bent_row row = {.change = change, .i = y / SPACING};
    if (change->bend == 0)
        return row;
    spline(y % SPACING, row.rows);
    for (int64_t k = 0; k < 3; k++) /* moved to the front by the first pixel */
        row.column[k + 1] = column_of(change, row.i, k, row.rows);
    return row;
}

/* The movement of pixel x, which follows x - 1. */
static movement bent_row_next(bent_row *row, int64_t x)
{
    if (row->change->bend == 0)
        return (movement){0, 0};
    if (x % SPACING == 0) {
        for (int k = 0; k < 3; k++)
            row->column[k] = row->column[k + 1];
        row->column[3] = column_of(row->change, row->i, x / SPACING + 3, row->rows);
    }
    int64_t weight[4];
    movement sum = {0, 0};
    spline(x % SPACING, weight);
    for (int k = 0; k < 4; k++) {
        sum.x += weight[k] * row->column[k].x;
        sum.y += weight[k] * row->column[k].y;
    }
    return (movement){sum.x >> 16, sum.y >> 16};
}

/* The new pixel at (x, y) shows the old one at
 *   x' = m_x + (x - m_x - shift_x) / (1 + scale_x) - shear (y - m_y) + d_x
 *   y' = m_y + (y - m_y - shift_y) / (1 + scale_y) + d_y
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
        bent_row row = bent_row_at(change, y);
        for (int64_t x = 0; x < p->width; x++, out += channels) {
            const movement d = bent_row_next(&row, x);
            const int64_t old_x = middle_x + times(x * ONE - middle_x - shift_x, shrink_x) - slant;
            interpolate(pictures->bytes + p->offset, p->height, p->width, channels, old_y + d.y, old_x + d.x, out);
        }
    }
}
