/* Attention weights of attend show: which of them are chosen, and the files they are written to. */
#ifndef MAPS_H
#define MAPS_H

#include "console.h"

enum { MOST_LAYERS = 64 };

/* The maps of one kind: all layers have as many heads, rows and columns. */
typedef struct cli_maps {
    const at_map *map[MOST_LAYERS]; /* [layers] */
    int layers;
    bool of_array; /* and not of a model */
} cli_maps;
cli_maps maps_of_kind(const at_maps *maps, at_attention_kind kind);

enum { KINDS = AT_CROSS_ATTENTION + 1 };
const char *kind_name(at_attention_kind kind); /* "encoder", "decoder", "cross" */
const char *kind_title(const cli_maps *maps);  /* "cross attention", or "weights" for those of an array */

/* What is chosen of them. */
typedef struct cli_choice {
    bool all;        /* every layer and head; else */
    int layer, head; /* one of them, both from 1; 0: the mean of all */
} cli_choice;

/* Fails if there is no such head. */
bool choice_exists(const cli_maps *maps, const cli_choice *choice, at_error *error);

/* The weights [rows, columns] of one head or of the mean of all, to be released with free. */
float *choice_weights(const cli_maps *maps, const cli_choice *choice, at_error *error);

/* Whether the name of a file ends as one that can be written: .npy, .safetensors, .tsv or a drawing. */
bool maps_file_known(const char *path, at_error *error);

/* Writes the chosen weights of one kind, or with `kind` -1 of all kinds, of which a .npy file holds one. */
bool maps_write(const at_maps *maps, int kind, const cli_choice *choice, const char *path, at_error *error);

#endif
