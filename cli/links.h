/* Alignments as text: pairs in Pharaoh format, or the weights themselves. */
#ifndef LINKS_H
#define LINKS_H

#include "console.h"

/* 1 if the model adds a unit before those of a source, else 0: what the units of the line are counted from. */
int64_t first_unit(const at_result *result);
/* "0-0 1-2 2-1": for every target unit the source unit it is linked to, counted from `first`, ordered by source, then by
 * target. No newline. False if out of memory. */
bool print_links(FILE *stream, const int32_t *links, int64_t target_units, int64_t first);

/* The weight of each target word or unit on each source word or unit. */
typedef struct cli_links {
    int64_t rows, columns; /* of the target, of the source */
    double *weight;        /* [rows, columns] */
} cli_links;

/* Of units: the weights without the row of the end symbol and the columns of what a model adds to a source. Of words, separated by blanks: the sum over the units of the
 * source word, the mean over those of the target word; `lines` are the source and the target that the offsets in `found`
 * refer to. False if out of memory; release with links_free either way. */
bool links_by_unit(const at_result *result, const at_hypothesis *hypothesis, cli_links *links);
bool links_by_word(const at_result *result, const at_line lines[2], cli_links *links);
void links_free(cli_links *links);

/* The links as print_links writes them: a row is linked to the column of its largest weight. */
bool links_print(FILE *stream, const cli_links *links);
/* How many rows are linked to a column whose own largest weight is in that row. */
int64_t links_agreed(const cli_links *links);
/* "0.9800 1.0500 0.0300 ||| 2": the sum of every column over the rows, then the columns with less than UNATTENDED. */
#define UNATTENDED 0.1
void links_print_coverage(FILE *stream, const cli_links *links);

/* "0.9,0.1 0.2,0.8": target units separated by blanks, source weights by commas. No newline. */
void print_weights(FILE *stream, const at_hypothesis *hypothesis);

#endif
