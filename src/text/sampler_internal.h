/* Random segmentations instead of the best ones: subword regularisation. A sample is a pure function of its text, its
 * seed and its number, so it is the same in any order and for any number of threads.
 *
 * Unigram (Kudo 2018): a segmentation s of the text has the probability p(s) = prod_i p(s_i)^alpha / Z.
 * BPE-dropout (Provilkov et al. 2020): each merge is left out with the probability alpha. */
#ifndef AT_SAMPLER_INTERNAL_H
#define AT_SAMPLER_INTERNAL_H

#include "text/vocabulary.h"

typedef struct at_sampler at_sampler;
/* False if its units are not those of a unigram or BPE model. */
bool at_sampler_can(const at_vocabulary *vocabulary);
/* Needs the vocabulary as long as it lives. User-defined, unused and byte pieces are refused. */
at_sampler *at_sampler_new(const at_vocabulary *vocabulary, double alpha, at_error *error);
void at_sampler_free(at_sampler *sampler);

/* Memory that the samples of one thread reuse. */
typedef struct at_sampler_scratch at_sampler_scratch;
at_sampler_scratch *at_sampler_scratch_new(void);
void at_sampler_scratch_free(at_sampler_scratch *scratch);

/* Samples the units of a text as at_vocabulary_spell returns it, into `ids`, which holds one per character. Returns
 * how many; -1 if out of memory. */
int64_t at_sampler_segment(const at_sampler *sampler, at_sampler_scratch *scratch, const char *text, size_t size,
                           uint64_t seed, uint64_t number, int32_t *ids);

#endif
