/* Subword regularisation: a corpus whose subwords are sampled again in each epoch. */
#ifndef AT_SUBWORD_SAMPLING_H
#define AT_SUBWORD_SAMPLING_H

#include "text/corpus.h"

typedef struct at_subword_sampling at_subword_sampling;
/* For a corpus made from these lines by these vocabularies; at least one side must have subwords. Needs the corpus and
 * the vocabularies as long as it lives, the lines only during the call. */
at_subword_sampling *at_subword_sampling_new(at_corpus *corpus, const at_lines *lines, const at_vocabulary *source,
                                             const at_vocabulary *target, double alpha, int64_t max_length,
                                             uint64_t seed, at_error *error);
void at_subword_sampling_free(at_subword_sampling *sampling);
/* Samples the sentences of that epoch, a pure function of (seed, epoch, line); call it before at_batches_seek. A
 * sentence whose sample has more than max_length units keeps its best segmentation. */
bool at_subword_sampling_set_epoch(at_subword_sampling *sampling, int64_t epoch, at_error *error);

#endif
