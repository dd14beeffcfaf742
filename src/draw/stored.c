#include "draw/stored_internal.h"

#include <math.h>
#include <stdlib.h>

#include "draw/base64_internal.h"

/* The range of a row: from 0, or from the smallest weight if that is negative, to the largest. */
static void range_of(const float *row, int64_t columns, float *low, float *high)
{
    *low = *high = 0;
    for (int64_t j = 0; j < columns; j++) {
        *low = fminf(*low, row[j]);
        *high = fmaxf(*high, row[j]);
    }
}

/* steps (w - low) / (high - low), rounded. */
static int step_of(float weight, float low, float high, int steps)
{
    return high > low ? (int)lrint(steps * ((double)weight - (double)low) / ((double)high - (double)low)) : 0;
}

static void put(unsigned char *bytes, int64_t at, bool is_wide, int64_t value)
{
    bytes[is_wide ? 2 * at : at] = (unsigned char)value;
    if (is_wide)
        bytes[2 * at + 1] = (unsigned char)(value >> 8);
}

/* The columns of the largest weights, in falling order. */
static void find_top(const float *row, int64_t columns, int64_t top[AT_STORED_TOP])
{
    int found = 0;
    for (int64_t j = 0; j < columns; j++) {
        int at = found;
        for (; at > 0 && row[j] > row[top[at - 1]]; at--)
            if (at < AT_STORED_TOP)
                top[at] = top[at - 1];
        if (at < AT_STORED_TOP)
            top[at] = j;
        found += found < AT_STORED_TOP;
    }
}

static void add_ends(at_buffer *text, const char *name, const float *weights, int64_t rows, int64_t columns,
                     bool is_high, int digits)
{
    at_buffer_print(text, "\"%s\":[", name);
    for (int64_t i = 0; i < rows; i++) {
        float low, high;
        range_of(weights + i * columns, columns, &low, &high);
        at_buffer_print(text, "%s%.*g", i ? "," : "", digits, (double)(is_high ? high : low));
    }
    at_buffer_add(text, "]", 1);
}

void at_stored_add(at_buffer *text, const float *weights, int64_t rows, int64_t columns, int steps)
{
    const bool is_long = columns > AT_STORED_LONG;
    const bool is_wide = steps > 255;
    const int digits = is_wide ? 5 : 4;
    const int64_t per = is_long ? AT_STORED_TOP : columns;
    bool is_negative = false;
    unsigned char *bytes = malloc((size_t)(4 * rows * per) + 1), *places = bytes ? bytes + 2 * rows * per : NULL;
    if (!bytes) {
        text->failed = true;
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        const float *row = weights + i * columns;
        float low, high;
        int64_t top[AT_STORED_TOP];
        range_of(row, columns, &low, &high);
        is_negative = is_negative || low < 0;
        if (is_long)
            find_top(row, columns, top);
        for (int64_t p = 0; p < per; p++) {
            const int64_t j = is_long ? top[p] : p;
            put(bytes, i * per + p, is_wide, step_of(row[j], low, high, steps));
            if (is_long)
                put(places, i * per + p, true, j);
        }
    }
    if (is_negative) {
        add_ends(text, "low", weights, rows, columns, false, digits);
        at_buffer_add(text, ",", 1);
    }
    add_ends(text, "high", weights, rows, columns, true, digits);
    at_buffer_print(text, ",\"steps\":%d,\"bytes\":\"", steps);
    at_base64_add(text, bytes, (size_t)(rows * per) << is_wide);
    if (is_long) {
        at_buffer_print(text, "\",\"columns\":\"");
        at_base64_add(text, places, (size_t)(2 * rows * per));
    }
    at_buffer_add(text, "\"", 1);
    free(bytes);
}
