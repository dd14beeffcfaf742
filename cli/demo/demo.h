/* The demos: each is one file with a record, a list of pages over the helpers below. */
#ifndef DEMO_H
#define DEMO_H

#include "commands.h"

enum { DEMO_INDENT = 4, DEMO_WIDTH = 80, DEMO_SETTINGS = 15, DEMO_PAGES = 12 };

/* The options of attend demo, and the words after the demo's name. */
typedef struct demo_options {
    cli_common common;
    bool all; /* no pauses */
    const char
        *setting[DEMO_SETTINGS]; /* of the demos that train a model, by index in demo_settings; NULL: not given */
    const char *input;           /* the words, joined by blanks; NULL: none */
} demo_options;
extern const at_setting demo_settings[];

/* A page is shown under its title; on a terminal the demo pauses after it. */
typedef struct demo_page {
    const char *title;
    bool (*show)(void *state, at_error *error);
} demo_page;

/* A model that a demo can train, and what suits the two: settings of the model, "hidden=64 embedding=32", and of its
 * training, "updates=800". */
typedef struct demo_model {
    const char *name, *settings, *training;
} demo_model;

struct cli_demo {
    const char *name, *line; /* as attend demo lists them */
    const char *title;
    const char *input;   /* what its own input is, "a row of 2 to 8 scores"; NULL: it takes none */
    const char *example; /* such an input, as one types it */
    /* The models that --model can choose, the default first, ended by a record without a name; NULL: the demo trains
     * none, or only its own. */
    const demo_model *models;
    bool pictures; /* the source of these models is pictures, not text */
    size_t size;   /* of its state */
    /* Fills in the state, which is zeros. Whatever can be wrong with the input or the options is refused here, before a
     * page is shown. */
    bool (*begin)(void *state, const demo_options *options, at_error *error);
    void (*end)(void *state);    /* releases what the state holds, also after a begin that failed; NULL: nothing */
    demo_page pages[DEMO_PAGES]; /* a title NULL ends them */
};

/* The demos that choose a model name their own record. */
extern const cli_demo demo_antonyms, demo_beer, demo_dates, demo_scenes, demo_step, demo_transformer;

/* Runs a demo from its first page to its last, or to where the user stops. */
bool demo_run(const cli_demo *demo, const demo_options *options, at_error *error);

/* ---- Input (input.c) ---- */

/* Rows of numbers, "1 2 3; 4 5 6", each of `columns` numbers (0: as many as the first, at most most_columns). Blanks or
 * commas separate the numbers, semicolons the rows. */
typedef struct demo_matrix {
    int rows, columns;
    double value[64];
} demo_matrix;
typedef struct demo_limits {
    int least_rows, most_rows, least_columns, most_columns;
    double largest; /* absolute value */
} demo_limits;
bool input_matrix(const char *text, demo_limits limits, demo_matrix *matrix, at_error *error);

/* The words of a sentence, separated by blanks. */
enum { DEMO_WORDS = 12, DEMO_WORD = 64 };
typedef struct demo_words {
    int count;
    const char *word[DEMO_WORDS]; /* point into `text` */
    char text[DEMO_WORDS * DEMO_WORD];
} demo_words;
/* `least` to `most` words, none wider than `widest` columns. */
bool input_words(const char *text, int least, int most, int widest, demo_words *words, at_error *error);

/* A vector made of a word's spelling: `size` numbers 1 or -1. */
void input_vector(const char *word, int size, double *vector);

/* ---- Output (show.c) ---- */

/* Prints a paragraph, broken into lines; newlines at either end stand for empty lines. */
void say(const char *text);
void sayf(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* An indented line: a formula, or a sum with its numbers; broken into lines if it is too long. */
void show_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A number in at most four significant figures; in parentheses if it is negative and `factor` is true. Gives `out`. */
enum { DEMO_FIGURE = 32 };
const char *figure(double value, bool factor, char out[DEMO_FIGURE]);
/* "q·k = 1·2 + 2·1 + (-1)·0 = 4" with `name` before it. */
void show_product(const char *name, const double *a, const double *b, int count);
/* The numbers of a vector in a line: "q = (1, 2, 0, -1)". */
void show_vector(const char *name, const double *values, int count);

/* Rows of figures under each other, one blank between the columns. A column of whole numbers is shown without decimals;
 * `names` may be NULL. */
void show_matrix(const double *values, int rows, int columns, int decimals, const char *const *names);

/* The same under names of columns. NAN is an empty cell. */
typedef struct demo_table {
    int rows, columns, decimals;
    const double *values; /* [rows, columns] */
    const char *const *row_names, *const *column_names;
} demo_table;
void show_table(const demo_table *table);

/* A heat map of weights [rows, columns] with their figures, or of shades if that is too wide; floats as the operator and
 * the models return them, or doubles. */
bool show_weights(const float *weights, int64_t rows, int64_t columns, const char *const *row_names,
                  const char *const *column_names, at_error *error);
bool show_heat(const double *weights, int rows, int columns, const char *const *row_names,
               const char *const *column_names, at_error *error);

/* Maps of shades side by side, two columns of the terminal for a cell: values from 0 to 1. */
enum { DEMO_MAPS = 8 };
typedef struct demo_maps {
    int64_t count, rows, columns;
    const float *values[DEMO_MAPS]; /* each [rows, columns] */
    const char *titles[DEMO_MAPS];  /* NULL: none */
    /* [rows, columns] or NULL: '.' for a cell that cannot be seen, '|' for one to mark, ' ' for the others */
    const char *marks[DEMO_MAPS];
    const char *const *row_names;
    const char *const *column_names; /* cut to two columns */
} demo_maps;
void show_maps(const demo_maps *maps);

/* Bars of numbers, the longest for the largest; negative ones are light. */
void show_bars(const char *const *names, const double *values, int count, int decimals);

/* One row of weights as a mixture: "z_am   = 0.27 x_I + 0.73 x_am + 0.00 x_good". */
void show_mixture(const double *weights, int count, const char *row_name, int row_width, const char *of,
                  const char *const *names);

/* ---- The operator (operator.c) ---- */

/* A call with one batch row. Arrays and parameters are converted to float and back. */
typedef struct demo_parameter {
    const char *name;
    int rows, columns; /* rows 0: a vector */
    const double *value;
} demo_parameter;
typedef struct demo_call {
    at_settings settings;
    int queries, keys, width, value_width; /* value_width 0: `value` is NULL and the values are one-hot */
    const double *query, *key, *value;     /* [queries, width], [keys, width], [keys, value_width] */
    demo_parameter parameters[6];
    bool sample; /* hard */
    uint64_t seed;
    const double *grad_out; /* of `out`; NULL: no backward pass */
    double grad_log_prob;   /* hard, of every query */
    /* What is wanted: */
    double *out;                                /* [queries, value_width] */
    double *weights;                            /* [heads, queries, keys] */
    double *entropy, *log_prob;                 /* [heads, queries] */
    double *grad_query, *grad_key, *grad_value; /* with grad_out */
} demo_call;
bool demo_attend(const demo_call *call, at_error *error);
/* w_j = exp(e_j) / Σ_k exp(e_k), by hand. */
void demo_softmax(const double *e, int count, double *w);
/* The operator must return what was computed by hand: differences up to `tolerance`, relative for numbers above 1. */
bool demo_agrees(const double *by_hand, const double *returned, int count, double tolerance, at_error *error);

/* ---- For the demos that train a model (learn.c) ---- */

/* Checks that --model names one of the demo's models and that the settings given fit it. */
bool demo_model_fits(const cli_demo *demo, const demo_options *options, at_error *error);
/* The model that was chosen, and whether it is the default. */
const demo_model *demo_model_chosen(const cli_demo *demo, const demo_options *options);
bool demo_model_is_default(const cli_demo *demo, const demo_options *options);

double seconds_now(void);

/* A listing of the chosen model, with the settings that suit it unless others were given. */
at_listing *demo_listing(const cli_demo *demo, const demo_options *options, const at_listing_task *task,
                         at_error *error);
/* Trains for `steps` times `epochs` epochs and prints the loss after each step, then the seconds; beside those of
 * TensorFlow unless `tensorflow` is NULL. */
bool demo_listing_train(at_listing *listing, int steps, int epochs, const char *tensorflow, at_error *error);
/* What the decoder writes, symbol by symbol, each fed back as its next input; `first` is the input before them. */
bool demo_listing_decode(at_listing *listing, const at_listing_task *task, const int32_t *source, int32_t first,
                         int32_t *output, float *weights, at_error *error);

/* Pairs of lines to train on: text[i][0] -> text[i][1]. */
enum { DEMO_LINE = 64 };
typedef struct demo_pairs {
    int64_t count;
    char (*text)[2][DEMO_LINE]; /* [count] */
} demo_pairs;
bool demo_pairs_make(demo_pairs *pairs, int64_t count, at_error *error);
void demo_pairs_free(demo_pairs *pairs);

/* A model trained on them with the settings that suit it unless others were given, in a folder that is gone afterwards.
 * The loss is printed while it learns. */
typedef struct demo_trained {
    at_translator *translator;
    at_tensors *parameters; /* what the model file holds */
} demo_trained;
bool demo_train(const cli_demo *demo, const demo_options *options, const demo_pairs *pairs, const char *settings,
                demo_trained *trained, at_error *error);
/* The same on lines [count] of each side. */
bool demo_train_lines(const cli_demo *demo, const demo_options *options, const at_line *sources, const at_line *targets,
                      int64_t count, const char *settings, demo_trained *trained, at_error *error);
/* A folder for files of a demo; what is in it is removed with it. */
enum { DEMO_FOLDER = 300 };
bool demo_folder_make(char folder[DEMO_FOLDER], at_error *error);
void demo_folder_remove(const char *folder);
void demo_trained_free(demo_trained *trained);

/* What dividing the score by √d does as d grows (scaling.c): means, and some rows of weights. */
bool demo_scaling_table(const cli_common *options, at_error *error);
bool demo_scaling_maps(const cli_common *options, at_error *error);

#endif
