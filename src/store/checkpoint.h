/* Model files: ONE safetensors file holds the parameters by readable names, and in its metadata the settings (JSON),
 * both vocabularies (a language model's one) and the history. Training state is a second file. Writes are atomic, the
 * previous file is kept as FILE.previous. */
#ifndef AT_CHECKPOINT_H
#define AT_CHECKPOINT_H

#include "models/model.h"
#include "text/vocabulary.h"

/* A model with its words: what attend.h hands out, and declares at_translator_load and at_translator_free for. A file
 * of the wrong kind, a truncated one, another version: a sentence. */
struct at_translator {
    at_model *model;
    at_vocabulary *source, *target; /* source NULL: a language model's only vocabulary is the target's */
    char *history;                  /* JSON: an array with an object per validation, as text; may be NULL */
    int64_t max_length;             /* of a source, in units */
    at_model **more;                /* models that speak along with it, over the same words */
    int more_count;
};

bool at_translator_save(const at_translator *translator, const char *path, bool keep_previous, at_error *error);

/* ---- For the training state, which shares the marks and the numbers of a model file ---- */

/* The mark that tells our files apart: `kind` is "model" or "training state", the version is this format's. */
bool at_file_mark(at_tensors *file, const char *kind, at_error *error);
bool at_file_check(const at_tensors *file, const char *kind, const char *path, at_error *error);

/* All parameters by name, bit for bit. Taking refuses a file that does not hold exactly these. */
bool at_params_put(at_params *params, at_tensors *file, at_error *error);
bool at_params_take(at_params *params, const at_tensors *file, const char *path, const char *other_prefix,
                    at_error *error);

/* Removes what a run that was killed while it wrote PATH has left beside it. Only for whoever alone may write it. */
void at_file_tidy(const char *path);

/* PATH.previous becomes PATH, and what was there becomes PATH.previous. PATH is a whole file at every moment. */
bool at_file_go_back(const char *path, at_error *error);

/* Writes the file atomically; what was there before stays as PATH.previous. */
bool at_file_replace(const at_tensors *file, const char *path, bool keep_previous, at_error *error);

#endif
