/* The weights of an array as maps that attend show draws. */
#ifndef ARRAY_MAPS_H
#define ARRAY_MAPS_H

#include "maps.h"

/* Start from zeros. */
typedef struct array_maps {
    cli_maps maps;
    at_map layer[MOST_LAYERS];
    at_array *array;
    char **row_names, **column_names;
} array_maps;

/* The array [rows,columns], [heads,rows,columns] or [layers,heads,rows,columns] that `weights` names, with the names of
 * rows and columns that two files hold, or numbers where they are NULL. */
bool array_maps_read(array_maps *a, const char *weights, const char *rows, const char *columns, at_error *error);
void array_maps_free(array_maps *a);

/* What --head chooses: all by default. */
bool array_maps_choose(const array_maps *a, const char *head, cli_choice *choice, at_error *error);

#endif
