/* Subword regularisation: a corpus whose subwords are sampled again in each epoch. */
#ifndef AT_DRAWS_H
#define AT_DRAWS_H

#include "text/corpus.h"

typedef struct at_draws at_draws;
/* For a corpus made from these lines by these vocabularies; at least one side must have subwords. Needs the corpus and
 * the vocabularies as long as it lives, the lines only during the call. */
at_draws *at_draws_new(at_corpus *corpus, const at_lines *lines, const at_vocabulary *source,
                       const at_vocabulary *target, double alpha, int64_t max_length, uint64_t seed, at_error *error);
void at_draws_free(at_draws *draws);
/* Samples the sentences of that epoch, a pure function of (seed, epoch, line); call it before at_batches_go. A sentence
 * whose sample has more than max_length units keeps its best segmentation. */
bool at_draws_go(at_draws *draws, int64_t epoch, at_error *error);

#endif
