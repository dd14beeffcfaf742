/* attend compare, in the order of its work: a SPEC is parsed into a grid of settings, its data is prepared, every cell of
 * the grid is trained and tested once for each seed by child processes of this program, and their output is measured and
 * printed. A cell is a list of options of attend train and nothing more, so any of them can be run by hand. */
#ifndef COMPARE_H
#define COMPARE_H

#include "commands.h"
#include "maps.h"
#include "svg_plot.h"
#include "tasks.h"

enum {
    MOST_KEYS = 128,
    MOST_VALUES = 64,
    MOST_ROWS = 256,
    MOST_ROW_WORDS = 64,
    MOST_CELLS = 10000,
    MOST_SEEDS = 100,
    MOST_METRICS = 8,
    MOST_BUCKETS = 4,
    MOST_LINE_WORDS = 2 * MOST_KEYS + MOST_ROW_WORDS + 20,
    MOST_FOLDER = 800, /* characters of the path of the directory of the runs, */
    PATH = 1000,       /* and the size of a path in it */
};

/* ---- The SPEC ------------------------------------------------------------------------------------------------- */

/* The sets that a model is tested on: one like the training data and, if there is one, a set beyond its lengths. */
enum { TEST, BEYOND, SETS };
extern const char *const compare_set_names[SETS];

/* Pairs of lines, from two files or one, and their alignments if they are known. */
typedef struct compare_files {
    const char *source, *target, *tsv, *alignment;
    const char *pictures; /* the array that generated source lines name items of */
} compare_files;

/* An option of attend train with its values. */
typedef struct compare_key {
    const at_setting *option;
    const char *dashed; /* "--heads" */
    const char *value[MOST_VALUES];
    int count;
} compare_key;

/* A named list of options: `row = NAME : --option value ...`. Its options override the keys of the same names. */
typedef struct compare_row {
    const char *name;
    char *word[MOST_ROW_WORDS];
    int count;
} compare_row;

/* An axis of the grid: the rows, or a key with several values. */
typedef struct compare_axis {
    const compare_key *key; /* NULL: the rows */
    int count;
} compare_axis;

typedef struct compare_spec {
    /* Filled in by the table of keys in spec.c. */
    const char *title, *task, *lengths, *beyond, *metrics, *tokenise, *seeds;
    int64_t symbols, train_lines, valid_lines, test_lines, beam;
    double length_penalty;
    compare_files set[SETS];

    bool given[MOST_KEYS]; /* which keys of that table the SPEC or --set has */
    const cli_task *maker; /* generates the data; NULL: the SPEC names files */
    task_size size[SETS];  /* the words in a line; most 0: there is no such set */
    const char *path;      /* the file, or the preset, for error messages */
    const char *folder;    /* what its paths are relative to; NULL: the working directory */
    compare_key *key;      /* [key_count] */
    int key_count;
    compare_row *row; /* [row_count] */
    int row_count;
    compare_axis axis[MOST_KEYS + 1];
    int axis_count, cell_count;
    int64_t seed[MOST_SEEDS];
    int seed_count;
    const char *metric[MOST_METRICS];
    int metric_count;
    char **kept; /* [kept_count] the strings that all of it points into */
    int kept_count;
} compare_spec;

/* Parses the text of a SPEC, then the `key=value` of --set, which override it. An error names the line. Release it with
 * compare_spec_free either way. */
bool compare_spec_read(compare_spec *spec, const char *path, const char *folder, const char *text, const at_texts *sets,
                       at_error *error);
void compare_spec_free(compare_spec *spec);

/* Whether a row has its own value of an option. */
bool compare_row_has(const compare_row *row, const char *name);
/* The value of a cell on an axis, as written in the SPEC. */
const char *compare_value(const compare_spec *spec, int cell, int axis);
/* The first value of a key of attend train; NULL if the SPEC does not have it. */
const char *compare_setting(const compare_spec *spec, const char *name);
/* The keys that were given but have no effect, with the reason, for people; "" if there are none. */
void compare_unused(const compare_spec *spec, char *out, size_t size);
/* How to score: with the tokeniser of `tokenise`, and lower-cased if the models write lower case only. */
at_score_settings compare_scoring(const compare_spec *spec);
/* The options of a cell, without data, seed and output; returns their count. The SPEC owns them. */
int compare_options(const compare_spec *spec, int cell, const char *words[MOST_LINE_WORDS]);

/* Whether an option of attend train takes a file; and whether a value is one, as the file of a subword model in place of
 * a vocabulary is. */
bool compare_takes_file(const at_setting *option);
bool compare_is_file(const at_setting *option, const char *value);
/* The option of attend train for a word such as "--heads"; NULL if there is none. */
const at_setting *compare_word_option(const char *word);

/* A formatted string that lives as long as the SPEC. NULL if out of memory. */
char *compare_keep(compare_spec *spec, at_error *error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The SPECs of examples/compare, compiled in; NULL past the last. */
typedef struct compare_preset {
    const char *name, *text;
} compare_preset;
const compare_preset *compare_preset_at(int index);
/* Its title, the value of the line `title = `, into `out`. */
void compare_preset_title(const compare_preset *preset, char *out, size_t size);

/* FNV-1a of bytes; the runs of earlier versions are recognised by it. */
#define COMPARE_HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t compare_hash(uint64_t hash, const void *bytes, size_t size);

/* ---- The data ------------------------------------------------------------------------------------------------- */

/* A file that only some of the runs are trained with, and the hash of its bytes. */
typedef struct compare_own {
    const char *path;
    uint64_t mark;
} compare_own;

/* Existing files: those that the SPEC names, or those generated for it in `folder`/data. */
typedef struct compare_data {
    compare_files train, valid, set[SETS]; /* `set` never has a tsv; source NULL: there is no such set */
    uint64_t mark, set_mark[SETS];         /* hashes of the files that all runs are trained with, and of each set */
    compare_own *own;                      /* [own_count] files of rows, and subword models among several values */
    int own_count;
    at_line_list *source[SETS], *target[SETS], *links[SETS];
    bool letters;  /* lengths are counted in characters, not in words */
    bool pointing; /* the links are those of words with cells of a picture: pointing is measured in place of aer */
} compare_data;

bool compare_data_ready(compare_spec *spec, const char *folder, uint64_t seed, compare_data *data, at_error *error);
void compare_data_free(compare_data *data);

/* ---- What is measured ----------------------------------------------------------------------------------------- */

enum { MOST_MEASURES = SETS * MOST_METRICS + MOST_BUCKETS + 8 };

typedef struct compare_measure {
    char name[60];  /* of the JSON field: "accuracy", "beyond_accuracy", "accuracy_3_5" */
    char title[60]; /* of the column: "accuracy", "beyond", "3-5" */
    int decimals;
    int better;   /* 1: larger values are, -1: smaller ones, 0: neither */
    bool quality; /* of the output, not a cost of the run */
    /* What is scored: a metric, a percentage (NULL: none), on a set, or on its lines whose sources have these lengths. */
    const char *metric;
    int set;
    bool part;
    int64_t least, most;
} compare_measure;

typedef enum compare_state { RUN_WAITING, RUN_DONE, RUN_FAILED, RUN_REFUSED } compare_state;
extern const char *const compare_states[]; /* as JSON and CSV name them */

/* One cell with one seed. */
typedef struct compare_run {
    int cell;
    int64_t seed;
    compare_state state;
    char *folder, *line; /* its directory; the command that trains it */
    char why[500];       /* the error message of a run that failed or was refused */
    double seconds;      /* of training */
    double value[MOST_MEASURES];
} compare_run;

/* What a run reported: the loss, and the first metric of its validations, by update. */
typedef struct compare_curve {
    svg_point *loss, *valid;
    int losses, valids;
} compare_curve;

/* What a cell attends to in one sentence. */
typedef struct compare_picture {
    at_maps *maps;
    cli_maps cross;
    float *weights; /* the mean over layers and heads; NULL: it has no attention to the source */
} compare_picture;

typedef struct compare_table {
    compare_spec *spec;
    compare_data *data;
    compare_measure measure[MOST_MEASURES];
    int measure_count, first_cost; /* parameters, ms/update, MB and words/s come last */
    compare_run *run;              /* [seed_count, cell_count] */
    int run_count;
    int64_t threads, jobs;

    /* Gathered for the outputs that show it; else NULL. */
    double *p;                /* [cell_count, measure_count] */
    compare_curve *curve;     /* [run_count] */
    char valid_metric[60];    /* of the curves */
    compare_picture *picture; /* [cell_count] */
    int64_t pictured;         /* the test line of the pictures */
} compare_table;

/* Decides what is measured, from the SPEC and its data. */
bool compare_measures(compare_table *table, at_error *error);
/* Fills in the values of a run from the files it wrote. */
bool compare_measure_run(compare_table *table, compare_run *run, at_error *error);
/* The lines that a run wrote for a set, or its links, "align"; NULL without an error if it recorded that its model has
 * none. */
at_line_list *compare_run_lines(const compare_run *run, const char *name, int64_t count, at_error *error);
/* How many times more of the weight than by chance is on what a word names (pointing.c), from the outputs with their
 * weights; NAN if no output is right, or if the weights are not those of such cells and words. */
bool compare_pointing(const compare_table *table, const at_line_list *said, double *value, at_error *error);
/* The length of a line in characters, or in words separated by white space. */
int64_t compare_length(at_line line, bool letters);
/* Mean and standard deviation (divided by n - 1) of a measure over the finished runs of a cell; returns their count. The
 * deviation of one run is NAN, and so is the mean of none. */
int compare_mean(const compare_table *table, int cell, int measure, double *mean, double *spread);
/* The state of a cell: its first run that is not done, or its first run. */
const compare_run *compare_cell_run(const compare_table *table, int cell);
/* Whether no cell is better by a measure, and some are worse. */
bool compare_is_best(const compare_table *table, int cell, int measure);

/* Whether a row differs from the best one: p of the paired bootstrap against the cell with the best mean (significance.c).
 * NAN: it is the best itself, or there is nothing to compare. */
bool compare_significance(compare_table *table, at_error *error);
double compare_p(const compare_table *table, int cell, int measure);
bool compare_is_worse(const compare_table *table, int cell, int measure);
#define COMPARE_WORSE                                                                                                  \
    "worse than the best row, p < 0.05: paired bootstrap, 1000 samples of the test lines, all seeds together."

/* The learning curves (curves.c), and the attention of one test sentence (picture.c). */
bool compare_curves(compare_table *table, at_error *error);
void compare_curves_free(compare_table *table);
bool compare_pictures(compare_table *table, at_error *error);
void compare_pictures_free(compare_table *table);
/* A heat map as SVG; `named`: larger, with the words. */
void compare_picture_write(FILE *stream, const compare_picture *picture, bool named);

/* ---- Running -------------------------------------------------------------------------------------------------- */

typedef struct compare_orders {
    const char *folder;
    int64_t jobs, threads;
    bool quiet, verbose;
} compare_orders;

/* Allows one comparison at a time in a directory. The children hold the lock as well, so that a new comparison waits until
 * the children of a killed one have saved. Returns the lock, to be closed, or -1. */
int compare_lock(const char *folder, at_error *error);

/* Runs what is missing, and measures. False if nothing could be run; a run that fails is only marked. *interrupted: a
 * signal arrived, and the runs were saved. */
bool compare_run_all(compare_table *table, const compare_orders *orders, bool *interrupted, at_error *error);
void compare_runs_free(compare_table *table);

/* ---- Showing -------------------------------------------------------------------------------------------------- */

/* "99.3 ± 0.4", or a dash if there is nothing to show. */
enum { CELL_TEXT = 60 };
char *compare_cell_text(const compare_table *table, int cell, int measure, char out[CELL_TEXT]);
/* "heads", or "setting" for the rows; what stands for the values of a cell that has none: "not possible"; whether a column
 * shows the spread. */
const char *compare_axis_title(const compare_spec *spec, int axis);
const char *compare_empty_text(const compare_run *run);
bool compare_has_spread(const compare_measure *measure);
/* The notes below a table: the meaning of ±, the seeds, the jobs and threads, and the training data. */
void compare_notes(const compare_table *table, char *out, size_t size);

void compare_print(const compare_table *table);
/* Writers of cli_output; `context` is a table. */
bool compare_write_json(FILE *stream, const void *context);
enum { COMPARE_MOST_LINES = 32 };                             /* of a plot */
bool compare_write_curves(FILE *stream, const void *context); /* an SVG file: loss and validation while training */
bool compare_write_html(FILE *stream, const void *context); /* with p, curves and pictures */
bool compare_write_latex(FILE *stream, const void *context);
bool compare_write_csv(FILE *stream, const void *context);

#endif
