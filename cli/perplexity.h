/* attend score perplexity. */
#ifndef PERPLEXITY_H
#define PERPLEXITY_H

#include "console.h"

/* The perplexity per unit of pairs of lines; `source` NULL for a language model. */
bool perplexity_of(at_translator *translator, const at_line_list *source, const at_line_list *target,
                   double *perplexity, at_error *error);

/* Reads the files and prints the perplexity of `target` by forced decoding; `source` NULL for a language model. */
bool score_perplexity(const char *model, const char *source, const char *target, bool json, bool quiet,
                      at_error *error);

#endif
