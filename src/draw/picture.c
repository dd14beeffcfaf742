#include "draw/picture_internal.h"

#include "base/error.h"
#include "base/files.h"

#include <math.h>
#include <stdio.h>

bool at_picture_check(const at_heatmap *map, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    size_t cells, bytes;
    if (map->rows < 0 || map->columns < 0 || !at_size_mul((size_t)map->rows, (size_t)map->columns, &cells) ||
        !at_size_mul(cells, sizeof *map->values, &bytes) || bytes > PTRDIFF_MAX)
        return at_fail(error, AT_SHAPE, "a heat map cannot have %lld rows and %lld columns", (long long)map->rows,
                       (long long)map->columns);
    if (cells > 0 && !map->values)
        return at_fail(error, AT_USAGE, "a heat map of %lld rows and %lld columns needs its values",
                       (long long)map->rows, (long long)map->columns);
    return true;
}

/* shade = (value - low) / (high - low). Values in 0..1 are their own shade; otherwise low and high are the smallest and
 * the largest finite value of the matrix. */
typedef struct scale {
    double low, high;
} scale;

static scale measure(const at_heatmap *map)
{
    scale s = {INFINITY, -INFINITY};
    for (int64_t i = 0; i < map->rows * map->columns; i++) {
        double value = (double)map->values[i];
        if (isfinite(value)) {
            s.low = fmin(s.low, value);
            s.high = fmax(s.high, value);
        }
    }
    if (s.low >= 0 && s.high <= 1)
        s = (scale){0, 1};
    return s;
}

static float shade_of(scale s, float value)
{
    if (isnan(value))
        return NAN;
    if (isinf(value))
        return value > 0 ? 1 : 0;
    return s.high > s.low ? (float)(((double)value - s.low) / (s.high - s.low)) : 0.5f;
}

static const char *name_of(const char *const *names, int64_t index, char number[24])
{
    if (names)
        return names[index] ? names[index] : "";
    snprintf(number, 24, "%lld", (long long)index);
    return number;
}

void at_picture_walk(const at_heatmap *map, const at_pen *pen, void *form)
{
    char number[24];
    scale s = measure(map);
    for (int64_t j = 0; pen->column && j < map->columns; j++)
        pen->column(form, j, name_of(map->column_names, j, number));
    for (int64_t i = 0; i < map->rows; i++) {
        if (pen->row)
            pen->row(form, i, name_of(map->row_names, i, number));
        for (int64_t j = 0; pen->cell && j < map->columns; j++) {
            float value = map->values[i * map->columns + j];
            pen->cell(form, i, j, value, shade_of(s, value));
        }
        if (pen->end_row)
            pen->end_row(form, i);
    }
}
