/* Alignments that are known, for a head of attention to learn (guided alignment). */
#ifndef AT_GUIDE_INTERNAL_H
#define AT_GUIDE_INTERNAL_H

#include "base/real.h"
#include "text/corpus.h"

typedef struct at_guide at_guide;

/* Reads a file of links between words, what stands between blanks: a line like "0-0 1-2" for every pair of `lines`, and
 * an empty one where nothing is known. Possible links ("1?3") count as links. A sentence naming the line if the numbers
 * of lines differ, if a line is no alignment or if it links a word that is not there. A word's links are those of all
 * its units. */
at_guide *at_guide_new(const char *path, const at_lines *lines, const at_vocabulary *source,
                       const at_vocabulary *target, at_error *error);
void at_guide_free(at_guide *guide);
uint64_t at_guide_hash(const at_guide *guide); /* of all links */

/* Of each target unit in the batch the share of each source unit it is linked to, 1 in all; nothing for units without
 * links and for the end: [rows, target_length, source_length]. */
void at_guide_fill(const at_guide *guide, const at_batch *batch, at_real *shares);

#endif
