/* Alignments as text: Pharaoh's pairs, or the weights themselves. */
#ifndef LINKS_H
#define LINKS_H

#include "console.h"

/* "0-0 1-2 2-1": for every target unit the source unit it is linked to, ordered by source, then by target. No newline.
 * False if memory ran out. */
bool print_links(FILE *stream, const int32_t *links, int64_t target_units);

/* The links of whole words instead, from the weights of their units: a target word is linked to the source word with
 * the largest sum. `lines` are the source and the target that the places in `found` are of. */
bool print_word_links(FILE *stream, const at_found *found, const at_line lines[2]);

/* "0.9,0.1 0.2,0.8": target units set apart by blanks, source weights by commas. No newline. */
void print_weights(FILE *stream, const at_hypothesis *hypothesis);

#endif
