/* Model files: ONE safetensors file holds the parameters by readable names, and in its metadata the settings (JSON),
 * both vocabularies and the history. Training state is a second file. Writes are atomic, the previous file is kept as
 * FILE.previous. */
#ifndef AT_CHECKPOINT_H
#define AT_CHECKPOINT_H

#include "model.h"
#include "vocabulary.h"

/* A model with its words: what the public at_model functions hand out. */
typedef struct at_translator {
    at_model *model;
    at_vocabulary *source, *target;
    char *history;      /* JSON: updates, best score ..., as text; may be NULL */
    int64_t max_length; /* of a source, in units */
} at_translator;

bool at_translator_save(const at_translator *translator, const char *path, bool keep_previous, at_error *error);
at_translator *at_translator_load(const char *path,
                                  at_error *error); /* wrong kind, truncated, other version: a sentence */
void at_translator_free(at_translator *translator);

#endif
