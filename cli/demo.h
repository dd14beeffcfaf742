/* What the demos share: how they speak and how they show matrices and weights. */
#ifndef DEMO_H
#define DEMO_H

#include "commands.h"

enum { DEMO_INDENT = 4, DEMO_WIDTH = 80 };

/* A paragraph, broken into lines; newlines at either end stand for empty lines. */
void say(const char *text);

/* Rows of figures under each other, one blank between the columns. A column of whole numbers is shown without decimals;
 * `names` may be NULL. */
void show_matrix(const double *values, int rows, int columns, int decimals, const char *const *names);

/* A heat map of weights [rows, columns]. */
bool show_heat(const double *weights, int rows, int columns, const char *const *row_names,
               const char *const *column_names, at_error *error);

/* One row of weights as a mixture: "z_am   = 0.27 x_I + 0.73 x_am + 0.00 x_good". */
void show_mixture(const double *weights, int count, const char *row_name, int row_width, const char *of,
                  const char *const *names);

/* What dividing the score by √d does as d grows. */
bool demo_scaling(const cli_common *options, at_error *error);

#endif
