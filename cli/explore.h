/* The page of attend show -o FILE.html. */
#ifndef EXPLORE_H
#define EXPLORE_H

#include "maps.h"

/* What stands in the page beside the weights. */
typedef struct explore {
    const char *title, *source; /* source: NULL for an array */
    const at_maps *relevance;   /* of the line; NULL: none */
    const at_head_list *heads;  /* measured by the line; NULL: none */
    const at_beams *beams;      /* how the target was found; NULL: not shown */
    const char *other;          /* the name of another model, and */
    const at_maps *other_maps;  /* its maps of the same line; NULL: none */
    const at_drawing_link *links;
    int64_t link_count;
    const at_array *picture; /* NULL: none */
    int64_t grid_rows, grid_columns;
} explore;

/* Writes the page of a line's maps between units, to which it adds those between words; or that of an array. */
bool explore_line(const explore *e, const at_maps *maps, const char *path, at_error *error);
bool explore_array(const explore *e, const cli_maps *maps, const char *path, at_error *error);

#endif
