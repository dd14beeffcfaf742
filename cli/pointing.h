/* Pointing: whether a model looks at what it names. The weight on the cells of the thing, when its word is said, against
 * the share of all cells that they are, which is what weights without aim have there. */
#ifndef POINTING_H
#define POINTING_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pointing {
    double inside, chance; /* the weight on the thing, and its share of the cells, summed over the words */
    int64_t words;
} pointing;

/* One word: its weights, and which of the cells are the thing's. */
void pointing_add(pointing *p, const float *weights, const bool *marked, int64_t cells);
/* The mean weight on the thing, 0 to 1; and how many times chance that is. NAN without a word. */
double pointing_share(const pointing *p);
double pointing_times(const pointing *p);

#endif
