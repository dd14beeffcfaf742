/* What a safetensors file is in memory: arrays in a list, and their places by name. Jansson's object is the map, so
 * that a file with a million names is read in as many steps. */
#ifndef AT_TENSORS_INTERNAL_H
#define AT_TENSORS_INTERNAL_H

#include "attend.h"

#include <jansson.h>

#define AT_METADATA "__metadata__"
enum { AT_MOST_HEADER = 100000000 };

typedef struct at_item {
    char *name;
    at_array *array;
} at_item;

struct at_tensors {
    at_item *item; /* [count], in file order */
    int count, room;
    json_t *places; /* name -> index into item */
    json_t *meta;   /* string -> string; NULL if the file has none */
};

/* Adds an array under a name that is not there yet, and takes it over unless that fails. */
bool at_tensors_append(at_tensors *tensors, const char *name, at_array *array, at_error *error);

#endif
