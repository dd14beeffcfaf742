/* Writing a model as a folder of another program: what the writers share. A writer is one file of this folder with its
 * record, and the record's name in the table of export.c. */
#ifndef AT_EXPORT_INTERNAL_H
#define AT_EXPORT_INTERNAL_H

#include "base/error.h"
#include "base/folder.h"
#include "base/json.h"
#include "models/kinds.h"
#include "store/translator.h"

typedef struct at_export at_export;

typedef struct at_export_format {
    const char *name;  /* of --to: "ctranslate2" */
    const char *title; /* for error messages: "CTranslate2" */
    /* What of a Transformer does not fit, beyond what no format takes; refuses by name. */
    bool (*fits)(const at_export *x);
    bool (*write)(at_export *x);
    bool renames; /* special units may have any name, so that a word of theirs stays a word */
} at_export_format;

/* The words of a side: our units by their ids. */
typedef struct at_export_words {
    json_t *list;
    bool begins, ends; /* a source gets <s> before it, </s> after it */
} at_export_words;

struct at_export {
    const at_translator *translator;
    const at_model_settings *settings;
    at_params *params;
    const at_export_format *format;
    at_folder *folder;
    at_export_words source, target;
    at_error *error;
};

/* "CTranslate2 cannot take this model: its `score` is dot, and only scaled fits"; returns false. */
bool at_export_refuse(const at_export *x, const char *setting, const char *is, const char *fits);
/* The position of self-attention: "none", or "shaw:16" and the like, the same in encoder and decoder. */
bool at_export_position(const at_export *x, char position[32]);
bool at_export_has_final_norm(const at_model_settings *settings);

/* ---- Words and texts (export_words.c) ---- */

/* The name of a special unit; NULL: the list is not made yet. */
const char *at_export_special(const at_export_words *words, int id);
bool at_export_words_make(at_export *x);
void at_export_words_free(at_export *x);
/* A file of the folder: JSON, which is released, the SentencePiece model of a side (nothing if it has none). */
bool at_export_json(at_export *x, const char *name, json_t *value);
bool at_export_pieces(at_export *x, const at_vocabulary *vocabulary, const char *name);
/* tokenizer.json of Hugging Face's tokenizers, which cuts a source into words or characters and joins a target; nothing
 * if either side has pieces. With `ends` it adds </s> to a source. */
bool at_export_tokenizer(at_export *x, bool ends);
/* {"source": "char", "target": "word"}: how attend cuts lines of this folder; with pieces "spm". */
json_t *at_export_units(const at_export *x);
json_t *at_export_number_of_words(const json_t *list); /* an object: the number of each word */

/* ---- Parameters (export_arrays.c) ---- */

/* A parameter as files of other programs have it: float32 or fewer bits, [rows,columns]; a vector has one column. */
typedef struct at_exported {
    at_array array;
    int64_t rows, columns;
    float *scale; /* int8: [rows], w = q scale; else NULL */
} at_exported;
/* Copies it; release with at_exported_free, also on failure. */
bool at_exported_take(const at_export *x, const char *name, at_exported *exported);
void at_exported_free(at_exported *exported);
/* The order of rows, or of columns: row i becomes that of from[i]. */
bool at_exported_order_rows(const at_export *x, at_exported *exported, const int64_t *from);
bool at_exported_order_columns(const at_export *x, at_exported *exported, const int64_t *from);

#endif
