/* A corpus whose pieces are drawn anew in each epoch. */
#ifndef AT_DRAWS_H
#define AT_DRAWS_H

#include "text/corpus.h"

typedef struct at_draws at_draws;
/* For a corpus made from these lines by these vocabularies; one side at least must have pieces. Needs the corpus and
 * the vocabularies as long as it lives, the lines only now. */
at_draws *at_draws_new(at_corpus *corpus, const at_lines *lines, const at_vocabulary *source,
                       const at_vocabulary *target, double alpha, int64_t max_length, uint64_t seed, at_error *error);
void at_draws_free(at_draws *draws);
/* The sentences of that epoch, a pure function of (seed, epoch, line); to be called before its batches are planned. A
 * sentence whose draw has more than max_length units keeps the best ones. */
bool at_draws_go(at_draws *draws, int64_t epoch, at_error *error);

#endif
