/* A safetensors file in memory: a list of arrays, and their indices by name. The map is a Jansson object, so that a file
 * with a million names is read in linear time. */
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
    int count;
    size_t room;
    json_t *index; /* name -> index into item */
    json_t *meta;  /* string -> string; NULL if the file has none */
};

/* Adds an array under a new name, and owns it then; if that fails, the caller still owns it. */
bool at_tensors_append(at_tensors *tensors, const char *name, at_array *array, at_error *error);

#endif
