/* What the demos share: printing text, matrices and weights. */
#ifndef DEMO_H
#define DEMO_H

#include "commands.h"

enum { DEMO_INDENT = 4, DEMO_WIDTH = 80, DEMO_SETTINGS = 11 };

/* The settings of the demos that train a model, to try another one. */
typedef struct demo_options {
    cli_common common;
    const char *setting[DEMO_SETTINGS]; /* by its index in demo_settings; NULL: not given */
} demo_options;
extern const at_setting demo_settings[];

extern const cli_demo demo_antonyms, demo_beer, demo_dates;

/* Prints a paragraph, broken into lines; newlines at either end stand for empty lines. */
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

/* ---- For the demos that learn (demo_learn.c) ---- */

/* Hands the settings that were given to `set`, one by one. */
typedef bool demo_setter(void *target, const char *name, const char *value, at_error *error);
bool demo_hand_over(const demo_options *options, demo_setter *set, void *target, at_error *error);
/* The value given for a setting, or `fallback`. */
const char *demo_setting(const demo_options *options, const char *name, const char *fallback);

double seconds_now(void);

/* A listing with the settings given, or else the model and the 128 hidden units of the listing. */
at_listing *demo_listing(const demo_options *options, const at_listing_task *task, const char *model, at_error *error);
/* Trains for `steps` times `epochs` epochs and prints the loss after each step, then the seconds beside those of
 * TensorFlow. */
bool demo_listing_train(at_listing *listing, int steps, int epochs, const char *tensorflow, at_error *error);

/* A heat map of float weights, as the models return them. */
bool show_weights(const float *weights, int64_t rows, int64_t columns, const char *const *row_names,
                  const char *const *column_names, at_error *error);

/* What dividing the score by √d does as d grows. */
bool demo_scaling(const cli_common *options, at_error *error);

#endif
