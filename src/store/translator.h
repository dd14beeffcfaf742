/* A trained model with its vocabularies, as attend.h hands it out. Here are its parts and its model file: ONE
 * safetensors file with the parameters by readable names and, in its metadata, the settings (JSON), both vocabularies
 * (of a language model the one), the training history and how it was trained. */
#ifndef AT_TRANSLATOR_H
#define AT_TRANSLATOR_H

#include "models/model.h"
#include "text/vocabulary.h"

struct at_translator {
    at_model *model;
    at_vocabulary *source, *target; /* source NULL: the one vocabulary of a language model is the target's */
    char *history;                  /* JSON: an array with an object per validation, as text; may be NULL */
    char *training;                 /* JSON: how it was trained (train_record.c), as text; may be NULL */
    char *origin;                   /* the format that it was read from, if that is not ours; may be NULL */
    int64_t max_length;             /* of a source in training, in units; 0: not known */
    at_model **more;                /* the other members of an ensemble, over the same vocabularies */
    int more_count;
    bool never_empty;     /* searched as in CTranslate2: the end's probability at the first step is the others', and a
                           * beam stays full (search_beam.c) */
    bool calibrated;      /* confidence is 1 / (1 + exp(-(confidence[0] + confidence[1] x))), x the mean */
    double confidence[2]; /* log-probability of a translation's units (search/confidence.c) */
    bool expects;         /* hard attention decodes with the expected context instead of the likeliest source unit */
    at_group *group;      /* the processes that compute together (search/search_ranks.c); NULL: this one alone */
};

/* Translators that compute the same have the same number, in this process or another one with the same kernels. */
bool at_translator_fingerprint(const at_translator *translator, uint64_t *fingerprint, at_error *error);

/* Whether a reader knows the file or folder as a model, intact or not. Fails if it cannot be read. */
bool at_is_model(const char *path, at_error *error);

/* Writes the model file atomically; with `keep_previous` the file that was there stays as PATH.previous. */
bool at_translator_save(const at_translator *translator, const char *path, bool keep_previous, at_error *error);

#endif
