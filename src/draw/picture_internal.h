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

/* shade = (value - low) / (high - low). Values in 0..1 are their own shade; otherwise low and high are the smallest and
 * the largest finite value of the matrix. */
typedef struct at_scale {
    double low, high;
} at_scale;
at_scale at_picture_scale(const at_heatmap *map);
/* One for several maps. Of values in 0..1 `high` is the largest of them rounded up to 1, 2 or 5 times a power of ten, so
 * that small weights can be seen. */
at_scale at_picture_scale_of_all(const at_heatmap *maps, int count);
float at_picture_shade(at_scale scale, float value);

/* The columns [from, to) of the map. */
void at_picture_walk(const at_heatmap *map, at_scale scale, int64_t from, int64_t to, const at_pen *pen, void *form);

/* 0.97, 11.00, nan; very large numbers with an exponent, so that they stay short. Returns the length. */
enum { AT_FIGURE = 32 };
int at_picture_figure(float value, char out[AT_FIGURE]);

/* A name, or the number of a row or column that has none. */
enum { AT_NUMBER = 24 };
const char *at_picture_name(const char *const *names, int64_t index, char number[AT_NUMBER]);

#endif
