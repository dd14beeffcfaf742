/* A model of Marian while it is read (reader_marian.c). */
#ifndef AT_MARIAN_INTERNAL_H
#define AT_MARIAN_INTERNAL_H

#include "io/npz.h"
#include "io/yaml.h"
#include "store/imported_internal.h"

typedef struct at_marian {
    at_bundle bundle; /* its folder */
    char name[256];   /* of the .npz in it */
    at_import in;
    json_t *settings, *decoder; /* special:model.yml, and decoder.yml or the like: values are texts */
    at_row_ids source, target;
} at_marian;

/* A setting: "" or `fallback` if there is none. */
const char *at_marian_text(const at_marian *m, const char *name);
int64_t at_marian_number(const at_marian *m, const char *name, int64_t fallback);
bool at_marian_true(const at_marian *m, const char *name);
/* Refuses the model for a setting that is not known; returns false. */
bool at_marian_refuse(const at_marian *m, const char *setting);
/* Both vocabularies, for embeddings of so many rows. */
bool at_marian_words(at_marian *m, int64_t source_rows, int64_t target_rows);

/* marian_s2s.c: a recurrent model with attention. */
bool at_marian_s2s(at_translator *translator, at_marian *m);

#endif
