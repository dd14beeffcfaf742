/* A picture of weights is walked once over, whatever it is drawn with: the column names, then row by row the row's name
 * and its cells. A form of output is a pen, three or four functions that draw what they are told. */
#ifndef AT_PICTURE_INTERNAL_H
#define AT_PICTURE_INTERNAL_H

#include "attend.h"

typedef struct at_pen {
    void (*column)(void *form, int64_t column, const char *name); /* each NULL if it has nothing to draw */
    void (*row)(void *form, int64_t row, const char *name);
    /* shade is the value's place between nothing (0) and all (1); NaN for a value that is NaN */
    void (*cell)(void *form, int64_t row, int64_t column, float value, float shade);
    void (*end_row)(void *form, int64_t row);
} at_pen;

/* False with a sentence if the map is not one. */
bool at_picture_check(const at_heatmap *map, at_error *error);
void at_picture_walk(const at_heatmap *map, const at_pen *pen, void *form);

#endif
