/* Weights in the page of the explorer. */
#ifndef AT_STORED_INTERNAL_H
#define AT_STORED_INTERNAL_H

#include <stdint.h>

#include "base/buffer.h"

enum {
    AT_STORED_LONG = 256, /* longer rows have their largest weights only, */
    AT_STORED_TOP = 8     /* so many */
};

/* Adds the fields high, steps and bytes of weights [rows, columns], low if there are negative ones, and columns if the rows
 * are long: a weight is low + n (high - low) / steps of its row, n one byte for 255 steps and two for 65535. */
void at_stored_add(at_buffer *text, const float *weights, int64_t rows, int64_t columns, int steps);

#endif
