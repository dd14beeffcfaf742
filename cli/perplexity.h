/* attend score perplexity. */
#ifndef PERPLEXITY_H
#define PERPLEXITY_H

#include "console.h"

/* Reads the files and prints the perplexity of `target` by forced decoding; `source` NULL for a language model. */
bool score_perplexity(const char *model, const char *source, const char *target, bool json, bool quiet,
                      at_error *error);

#endif
