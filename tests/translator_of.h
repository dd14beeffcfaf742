/* Untrained translators from a line of settings: random weights, small vocabularies. */
#ifndef TRANSLATOR_OF_H
#define TRANSLATOR_OF_H

#include <stdlib.h>

#include "model_of.h"
#include "store/translator.h"

static inline at_vocabulary *counted_vocabulary(const char *kind, const char *line)
{
    at_error error = {0};
    at_vocabulary *vocabulary = at_vocabulary_new(kind, &error);
    assert_true(vocabulary && at_vocabulary_count(vocabulary, line, strlen(line), &error) &&
                at_vocabulary_fix(vocabulary, &error));
    return vocabulary;
}

/* With vocabularies of a line. `text`: see model_of. Parameters are four times as large as at the start of a training, so
 * that its outputs differ. */
static inline at_translator *translator_with(const char *text, uint64_t seed, at_vocabulary *source,
                                             at_vocabulary *target)
{
    at_translator *t = calloc(1, sizeof *t);
    t->source = source;
    t->target = target;
    t->max_length = 20;
    t->model = model_of(text, "", t->source ? at_vocabulary_size(t->source) : 0, at_vocabulary_size(t->target), seed);
    at_real *values = at_params_values(t->model->params);
    for (int64_t i = 0; i < at_params_count(t->model->params); i++)
        values[i] *= 4;
    at_params_changed(t->model->params);
    return t;
}

/* Sources are letters, targets words. */
static inline at_translator *translator_of(const char *text, uint64_t seed)
{
    const bool continues = strncmp(text, "transformer-lm", 14) == 0;
    return translator_with(text, seed, continues ? NULL : counted_vocabulary("char", "abcdefgh "),
                           counted_vocabulary("word", "the cat sat on a mat while it rained"));
}

#endif
