/* What all attention weights of one line are made of, for the files that compute them. */
#ifndef AT_MAPS_INTERNAL_H
#define AT_MAPS_INTERNAL_H

#include "attend_unstable.h"
#include "search/search_internal.h"

/* What rows and columns stand for: units, and the words they are part of. */
typedef struct at_axis {
    int64_t units, words;
    const char **names;      /* [units] */
    int64_t *word;           /* [units], -1: white space, part of no word */
    const char **word_names; /* [words] */
} at_axis;

enum { AT_AXIS_SOURCE, AT_AXIS_READ, AT_AXIS_PREDICTED, AT_MAP_AXES };
typedef struct at_axes {
    int rows, columns;
} at_axes;
extern const at_axes at_axes_of[]; /* by the kind of attention */

/* The queries and keys of a map, NULL: not known, and how many keys are there already: a decoder's come one by one. */
typedef struct at_kept_vectors {
    at_map_vectors of;
    int64_t keys;
} at_kept_vectors;

struct at_maps {
    at_arena *arena; /* of all that the maps point to */
    at_axis axis[AT_MAP_AXES];
    at_map *map;              /* in the order of kinds and layers */
    at_kept_vectors *vectors; /* of each map */
    int count;
    size_t room, vector_room;
    const char *text;
    double score;
    at_encoded source, target; /* the units of the line, of maps that at_maps_new made */
};

at_maps *at_maps_open(at_error *error);
/* Frees the maps if there is an error. */
at_maps *at_maps_close(at_maps *maps, const at_error *error);
/* Memory of the maps for at least one item, and a copy of a text; NULL with the error. */
void *at_maps_take(at_maps *maps, int64_t count, size_t size, at_error *error);
const char *at_maps_copy(at_maps *maps, const char *text, at_error *error);
/* A map of zeros at its place in the order; returns its weights. */
float *at_maps_add(at_maps *maps, at_attention_kind kind, int layer, int heads, at_error *error);
/* Sets the names of all rows and columns, from the axes. */
void at_maps_name(at_maps *maps);

#endif
