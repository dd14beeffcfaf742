/* What attend show draws: weights of one kind, in the terminal or in a file. */
#ifndef SHOW_H
#define SHOW_H

#include "maps.h"

typedef struct show {
    cli_maps maps; /* one layer at least */
    cli_choice choice;
    const char *row_title, *column_title; /* NULL: not known */
    bool sums;
    at_theme theme;
    const at_drawing_link *links; /* [link_count] */
    int64_t link_count;
    const at_array *picture; /* that the columns are cells of; NULL: none */
    int64_t grid_rows, grid_columns;
    at_error *error;
} show;

bool show_print(const show *s);
bool show_save(const show *s, const char *path);

#endif
