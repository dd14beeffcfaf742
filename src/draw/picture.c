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

/* The smallest and the largest finite value; infinities if there is none. */
static at_scale range_of(const at_heatmap *maps, int count)
{
    at_scale s = {INFINITY, -INFINITY};
    for (int m = 0; m < count; m++)
        for (int64_t i = 0; i < maps[m].rows * maps[m].columns; i++) {
            const double value = (double)maps[m].values[i];
            if (isfinite(value)) {
                s.low = fmin(s.low, value);
                s.high = fmax(s.high, value);
            }
        }
    return s;
}

at_scale at_picture_scale(const at_heatmap *map)
{
    const at_scale s = range_of(map, 1);
    return s.low >= 0 && s.high <= 1 ? (at_scale){0, 1} : s;
}

at_scale at_picture_scale_of_all(const at_heatmap *maps, int count)
{
    static const double steps[] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1};
    const at_scale s = range_of(maps, count);
    if (!(s.low >= 0 && s.high <= 1)) /* nor are there any */
        return s.low <= s.high ? s : (at_scale){0, 1};
    for (size_t i = 0; s.high > 0 && i < sizeof steps / sizeof *steps; i++)
        if (s.high <= steps[i])
            return (at_scale){0, steps[i]};
    return (at_scale){0, 1};
}

float at_picture_shade(at_scale s, float value)
{
    if (isnan(value))
        return NAN;
    if (isinf(value))
        return value > 0 ? 1 : 0;
    return s.high > s.low ? (float)(((double)value - s.low) / (s.high - s.low)) : 0.5f;
}

const char *at_picture_name(const char *const *names, int64_t index, char number[AT_NUMBER])
{
    if (names)
        return names[index] ? names[index] : "";
    snprintf(number, AT_NUMBER, "%lld", (long long)index);
    return number;
}

int at_picture_figure(float value, char out[AT_FIGURE])
{
    if (isnan(value))
        return snprintf(out, AT_FIGURE, "nan"); /* without its sign */
    if (fabsf(value) < 0.005f)
        return snprintf(out, AT_FIGURE, "0.00"); /* nor with that of a zero */
    return snprintf(out, AT_FIGURE, isfinite(value) && fabsf(value) >= 99999.5f ? "%.1e" : "%.2f", (double)value);
}

void at_picture_walk(const at_heatmap *map, at_scale s, int64_t from, int64_t to, const at_pen *pen, void *form)
{
    char number[AT_NUMBER];
    for (int64_t j = from; pen->column && j < to; j++)
        pen->column(form, j, at_picture_name(map->column_names, j, number));
    for (int64_t i = 0; i < map->rows; i++) {
        if (pen->row)
            pen->row(form, i, at_picture_name(map->row_names, i, number));
        for (int64_t j = from; pen->cell && j < to; j++) {
            float value = map->values[i * map->columns + j];
            pen->cell(form, i, j, value, at_picture_shade(s, value));
        }
        if (pen->end_row)
            pen->end_row(form, i);
    }
}
