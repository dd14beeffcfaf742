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

at_scale at_picture_scale(const at_heatmap *map)
{
    at_scale s = {INFINITY, -INFINITY};
    for (int64_t i = 0; i < map->rows * map->columns; i++) {
        double value = (double)map->values[i];
        if (isfinite(value)) {
            s.low = fmin(s.low, value);
            s.high = fmax(s.high, value);
        }
    }
    if (s.low >= 0 && s.high <= 1)
        s = (at_scale){0, 1};
    return s;
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

void at_picture_walk(const at_heatmap *map, int64_t from, int64_t to, const at_pen *pen, void *form)
{
    char number[AT_NUMBER];
    at_scale s = at_picture_scale(map);
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
