/* attend score perplexity. */
#ifndef PERPLEXITY_H
#define PERPLEXITY_H

#include "console.h"

/* The perplexity per unit of pairs of lines; `source` NULL for a language model. */
bool perplexity_of(at_translator *translator, const at_line_list *source, const at_line_list *target,
                   double *perplexity, at_error *error);

/* Reads the files and prints the perplexity of `target` by forced decoding; `source` NULL for a language model. All ranks of
 * the group compute, rank 0 reads the lines and prints; an error is that of all. */
typedef struct perplexity_job {
    const char *model, *source, *target;
    bool json, quiet;
    at_group *group;
} perplexity_job;
bool score_perplexity(const perplexity_job *job, at_error *error);

#endif
