/* What the readers of other programs' models share: their words with our ids, and their arrays as our parameters. */
#ifndef AT_IMPORTED_INTERNAL_H
#define AT_IMPORTED_INTERNAL_H

#include "base/error.h"
#include "base/json.h"
#include "io/zip.h"
#include "store/translator.h"

/* ---- The files of a model (import_files.c) ---- */

bool at_is_folder(const char *path);

/* The files of a model: a folder, or the top folder inside a zip file. */
typedef struct at_bundle {
    char *folder; /* or the path of the zip file */
    at_zip *zip;  /* NULL: a folder */
    char *top;    /* of the zip file; empty: it has none */
} at_bundle;
/* `path`: the folder, one of its files, or a zip file. Close it also on failure. */
bool at_bundle_open(at_bundle *bundle, const char *path, at_error *error);
/* The same, but a file, zip or not, is one of its folder's. */
bool at_bundle_beside(at_bundle *bundle, const char *path, at_error *error);
void at_bundle_close(at_bundle *bundle);
bool at_bundle_has(const at_bundle *bundle, const char *name);
/* "FOLDER/NAME" or "FILE.zip: NAME"; release with free. */
char *at_bundle_path(const at_bundle *bundle, const char *name, at_error *error);
/* A file, as bytes or as JSON; NULL if there is none, or with the error set. Release with free or json_decref. */
unsigned char *at_bundle_read(const at_bundle *bundle, const char *name, size_t *size, at_error *error);
json_t *at_bundle_json(const at_bundle *bundle, const char *name, at_error *error);

/* The words of one side, row by row of the model's matrices. */
typedef struct at_row_names {
    char **name; /* NULL: the row has none */
    int64_t count;
} at_row_names;
void at_row_names_free(at_row_names *names);
/* From a text with a word a line, and from JSON: a list of words, or an object with the row of each word. */
bool at_row_names_of_text(const char *text, size_t size, const char *path, at_row_names *names, at_error *error);
bool at_row_names_of_json(const json_t *words, const char *path, at_row_names *names, at_error *error);

/* ---- Words with our ids (imported.c) ---- */

/* The names of its special units; NULL: it has none. */
typedef struct at_row_specials {
    const char *pad, *unknown, *begin, *end;
    bool characters; /* words are single characters, and a text has no blanks between them */
} at_row_specials;

/* A vocabulary of ours over those words, and the model's row of each of our ids; -1: it has none. */
typedef struct at_row_ids {
    at_vocabulary *vocabulary;
    int64_t *row;
    int64_t units;
} at_row_ids;

/* Tokens are separated by blanks, unless they are characters. A row without a name, which still takes part in the softmax, is called <row499>, and so
 * is one with a name that another row has or that is no token. If no row has the name of the unknown unit, the first one
 * after the names is it. */
bool at_row_ids_make(const at_row_names *names, int64_t rows, const at_row_specials *specials, at_row_ids *ids,
                     at_error *error);
void at_row_ids_free(at_row_ids *ids);
/* Lines are cut into the pieces of the SentencePiece model in this file, which are found by their text among the words. */
bool at_row_ids_pieces(at_row_ids *ids, const at_bundle *bundle, const char *name, bool tags, at_error *error);
/* How a folder that attend wrote says lines of a side ("source", "target") are cut: "char", "word", "spm"; NULL: it does
 * not say. */
const char *at_row_ids_cut(const json_t *config, const char *side);
/* The row of a name, the first of several; -1: there is none. */
int64_t at_row_named(const at_row_names *names, const char *name);

/* to[i] = from[row[i]], rows of `width` numbers; `missing` where there is no such row. */
void at_rows_pick(const at_row_ids *ids, const at_real *from, int64_t width, at_real missing, at_real *to);

/* The bias of a unit that the model does not have: its probability is 0. */
#define AT_NEVER ((at_real)-1e30)

/* ---- A model of CTranslate2 inside another bundle (reader_ctranslate2.c) ---- */

/* From the bytes of model.bin, whose path is for error messages, and its vocabularies in FOLDER ("model/") of the bundle. */
bool at_ct2_load(at_translator *translator, const at_bundle *bundle, const char *folder, const unsigned char *bytes,
                 size_t size, char *path, at_error *error);

/* ---- Settings and parameters from named arrays (import_arrays.c) ---- */

/* A model that is being read: first its settings, then, once there is a model, its parameters. */
typedef struct at_import {
    const char *path; /* for error messages */
    const at_tensors *arrays;
    at_model_settings settings;
    at_given given;
    at_params *params;
    at_error *error;
} at_import;
bool at_import_set(at_import *in, const char *setting, const char *value);
bool at_import_set_number(at_import *in, const char *setting, double value);
/* A name made from parts. One that is too long is cut, and then no array has it. */
void at_import_name(char *name, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Whether there is an array of that name. */
bool at_import_has(const at_import *in, const char *name);
/* The array of that name with `rank` dimensions, dimensions of 1 before them not counted; NULL with the error set. */
const at_array *at_import_need(at_import *in, const char *name, int rank);
/* The last dimension but `back`; 1 if there are fewer. */
int64_t at_import_dim(const at_array *array, int back);
/* The model of the settings, whose parameters the arrays are enough for; NULL with the error set. */
at_model *at_import_model(at_import *in, int64_t source_size, int64_t target_size);

/* Where an array goes: rows from `row` on of our parameter, or with `transposed` its transpose, for weights [in,out]. */
typedef struct at_import_part {
    const char *ours, *theirs;
    int64_t row;
    bool transposed;
    int64_t from, count; /* of their rows (columns if transposed); count 0: all */
    int64_t column,
        columns; /* the first of their columns that is taken, and how many there are; 0: just those of ours */
    bool adds;   /* to what is there, for two biases that are always added */
} at_import_part;
bool at_import_put(at_import *in, const at_import_part *part);
/* How a program names the layers of a Transformer. */
typedef struct at_import_names {
    const char *weights, *biases; /* formats of a name and a part of it: "%s.%s.weight" */
    bool transposed;              /* weights are [in,out] */
    const char *attention[4];     /* the parts of queries, keys, values and output */
} at_import_names;
/* The weights and biases of THEIRS' part, into the rows from `row` on of OURS.W and OURS.b. */
bool at_import_layer(at_import *in, const at_import_names *names, const char *ours, int64_t row, const char *theirs,
                     const char *part);
/* All four layers of attention: OURS.QKV or, if it crosses, OURS.Q and OURS.KV; OURS.O. */
bool at_import_attention(at_import *in, const at_import_names *names, const char *ours, const char *theirs,
                         bool crosses);
/* How many of the arrays there are that a format names from 0 on. */
int64_t at_import_count(const at_import *in, const char *format);
/* The rows of an embedding, or the numbers of a bias, that our ids name; `missing` where there is none. */
bool at_import_rows(at_import *in, const char *ours, const char *theirs, const at_row_ids *ids, at_real missing);
/* The same for an output layer [width,V]. */
bool at_import_columns(at_import *in, const char *ours, const char *theirs, const at_row_ids *ids);
/* The biases of an output layer without one: those of units which the model does not have. */
void at_import_no_bias(at_import *in, const char *ours, const at_row_ids *ids);

#endif
