/* Known alignments for a head of attention to learn (guided alignment, Chen et al. 2016). */
#ifndef AT_GUIDE_INTERNAL_H
#define AT_GUIDE_INTERNAL_H

#include "base/real.h"
#include "text/corpus.h"

typedef struct at_guide at_guide;

/* Reads a file of links between words, which are separated by blanks: a line such as "0-0 1-2" for every pair of `lines`,
 * an empty line if its alignment is not known. Possible links ("1?3") count as links. All units of a word have the
 * word's links. Fails, naming the line, if the numbers of lines differ, if a line is not an alignment or if it links a
 * word that the line does not have. */
at_guide *at_guide_new(const char *path, const at_lines *lines, const at_vocabulary *source,
                       const at_vocabulary *target, at_error *error);
void at_guide_free(at_guide *guide);
uint64_t at_guide_hash(const at_guide *guide); /* over all links */

/* shares [rows, target_length, source_length]: 1/n for each of the n source units that a target unit is linked to, 0
 * elsewhere, at units without links and at the end of a sentence. */
void at_guide_fill(const at_guide *guide, const at_batch *batch, at_real *shares);

#endif
