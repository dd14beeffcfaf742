/* Spans: the keys a query row may look at are one interval [lo, hi), whatever mask it came from. Two integers per row,
 * no n x n mask. An empty span has hi <= lo. */
#ifndef AT_SPAN_H
#define AT_SPAN_H

#include <stdint.h>

typedef struct at_spans {
    int64_t batch, heads, rows; /* heads 1: the same for all heads */
    int32_t *lo, *hi;           /* [batch, heads, rows] */
} at_spans;

static inline int64_t at_span_row(const at_spans *spans, int64_t b, int64_t h, int64_t i)
{
    return (b * spans->heads + (spans->heads == 1 ? 0 : h)) * spans->rows + i;
}

#endif
