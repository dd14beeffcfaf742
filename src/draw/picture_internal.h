/* A picture of weights is traversed in one order for all output formats: the column names, then for each row its name and
 * its cells. An output format is a pen, a few callbacks that draw them. */
#ifndef AT_PICTURE_INTERNAL_H
#define AT_PICTURE_INTERNAL_H

#include "attend.h"

typedef struct at_pen {
    void (*column)(void *form, int64_t column, const char *name); /* each may be NULL */
    void (*row)(void *form, int64_t row, const char *name);
    /* shade: the value between 0 and 1; NaN for a value that is NaN */
    void (*cell)(void *form, int64_t row, int64_t column, float value, float shade);
    void (*end_row)(void *form, int64_t row);
} at_pen;

/* Whether the sizes and the values are valid. */
bool at_picture_check(const at_heatmap *map, at_error *error);
void at_picture_walk(const at_heatmap *map, const at_pen *pen, void *form);

#endif
