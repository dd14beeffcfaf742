/* attend compare, in the order of its work: a SPEC is read into a grid of settings, its data made ready, every cell of
 * the grid trained and tried once for each seed by child processes of this very program, and what they left measured
 * and shown. A cell is a line of settings of attend train and nothing more, so any of them can be run by hand. */
#ifndef COMPARE_H
#define COMPARE_H

#include "commands.h"
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
    MOST_FOLDER = 800, /* letters of the folder that holds the runs, */
    PATH = 1000,       /* and room for a path in it */
};

/* ---- The SPEC ------------------------------------------------------------------------------------------------- */

/* The sets that a model is tried on: one like the training's lines and, if there is one, a set beyond them. */
enum { TEST, BEYOND, SETS };
extern const char *const compare_set_names[SETS];

/* Pairs of lines, from two files or one, and what is known about their links. */
typedef struct compare_files {
    const char *source, *target, *tsv, *alignment;
} compare_files;

/* An option of attend train with the values that it takes in turn. */
typedef struct compare_key {
    const cli_option *option;
    const char *dashed; /* "--heads" */
    const char *value[MOST_VALUES];
    int count;
} compare_key;

/* A named line of options: `row = NAME : --option value ...`. Its options stand for the keys of the same names. */
typedef struct compare_row {
    const char *name;
    char *word[MOST_ROW_WORDS];
    int count;
} compare_row;

/* One of what is multiplied: the rows, or a key with several values. */
typedef struct compare_axis {
    const compare_key *key; /* NULL: the rows */
    int count;
} compare_axis;

typedef struct compare_spec {
    /* Filled in by the table of keys in compare_spec.c. */
    const char *title, *task, *lengths, *beyond, *metrics, *tokenise, *seeds;
    int64_t symbols, train_lines, valid_lines, test_lines, beam;
    double length_penalty;
    compare_files set[SETS];

    const cli_task *maker; /* of the data; NULL: it is named */
    task_size size[SETS];  /* the words in a line; most 0: there is no such set */
    const char *path;      /* the file, or the preset, for sentences */
    const char *folder;    /* what its paths start from; NULL: where we are */
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
    char **kept; /* [kept_count] the texts that all of it points into */
    int kept_count;
} compare_spec;

/* Reads the text of a SPEC (changed by it), then the lines `key=value` of --set over it. False with a sentence that
 * names the place; released with compare_spec_free either way. */
bool compare_spec_read(compare_spec *spec, const char *path, const char *folder, const char *text,
                       const cli_texts *sets, at_error *error);
void compare_spec_free(compare_spec *spec);

/* Whether a row has its own value of an option. */
bool compare_row_has(const compare_row *row, const char *name);
/* What a cell has on an axis, as the SPEC writes it. */
const char *compare_value(const compare_spec *spec, int cell, int axis);
/* The first value of a key of attend train; NULL if the SPEC does not have it. */
const char *compare_setting(const compare_spec *spec, const char *name);
/* How scores are counted: with the words of `tokenise`, and without regard to capitals where no model writes any. */
at_score_settings compare_scoring(const compare_spec *spec);
/* The options of a cell, without data, seed and output; gives their count. They belong to the SPEC. */
int compare_options(const compare_spec *spec, int cell, const char *words[MOST_LINE_WORDS]);

/* Whether an option of attend train takes a file; and whether a value is one, which a subword model's file is that
 * stands for a vocabulary. */
bool compare_takes_file(const cli_option *option);
bool compare_is_file(const cli_option *option, const char *value);
/* The option of attend train that a word such as "--heads" is; NULL if it is none. */
const cli_option *compare_word_option(const char *word);

/* A text that lives as long as the SPEC: the print of a format. NULL with a sentence if memory ran out. */
char *compare_keep(compare_spec *spec, at_error *error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The SPECs that come along, compiled in from examples/compare; NULL past the last. */
typedef struct compare_preset {
    const char *name, *text;
} compare_preset;
const compare_preset *compare_preset_at(int index);
/* Its title, the value of the line `title = `, into `out`. */
void compare_preset_title(const compare_preset *preset, char *out, size_t size);

/* ---- The data ------------------------------------------------------------------------------------------------- */

/* A file that some of the runs are trained with and others are not, and a mark of its bytes. */
typedef struct compare_own {
    const char *path;
    uint64_t mark;
} compare_own;

/* Files that are there: what the SPEC names, or what was made for it in `folder`/data. */
typedef struct compare_data {
    compare_files train, valid, set[SETS]; /* of the sets never a tsv; source NULL: there is no such set */
    uint64_t mark, set_mark[SETS];         /* of the bytes of what all are trained with, and of each set */
    compare_own *own;                      /* [own_count] of the rows, and subword models among several values */
    int own_count;
    at_line_list *source[SETS], *target[SETS], *links[SETS];
    bool letters; /* lengths are counted in letters, not in words */
} compare_data;

bool compare_data_ready(compare_spec *spec, const char *folder, uint64_t seed, compare_data *data, at_error *error);
void compare_data_free(compare_data *data);

/* ---- What is measured ----------------------------------------------------------------------------------------- */

enum { MOST_MEASURES = SETS * MOST_METRICS + MOST_BUCKETS + 8 };

typedef struct compare_measure {
    char name[60];  /* of a JSON field: "accuracy", "beyond_accuracy", "accuracy_3_5" */
    char title[60]; /* of a column: "accuracy", "beyond", "3-5" */
    int decimals;
    int better;   /* 1: more is, -1: less is, 0: neither */
    bool quality; /* a percentage that may have a bar */
    /* What is scored: a metric (NULL: a cost of the run) on a set, or on the part with these lengths of its sources. */
    const char *metric;
    int set;
    bool part;
    int64_t least, most;
} compare_measure;

typedef enum compare_state { RUN_WAITING, RUN_DONE, RUN_FAILED, RUN_REFUSED } compare_state;

/* One cell with one seed. */
typedef struct compare_run {
    int cell;
    int64_t seed;
    compare_state state;
    char *folder, *line; /* where its files are; what trains it, as one would type it */
    char why[500];       /* the sentence of a run that failed or was refused */
    double seconds;      /* of training */
    double value[MOST_MEASURES];
} compare_run;

typedef struct compare_table {
    compare_spec *spec;
    compare_data *data;
    compare_measure measure[MOST_MEASURES];
    int measure_count, first_cost; /* parameters, ms/update, MB and words/s come last */
    compare_run *run;              /* [seed_count, cell_count] */
    int run_count;
    int64_t threads, jobs;
} compare_table;

/* Decides what is measured, from the SPEC and its data. */
bool compare_measures(compare_table *table, at_error *error);
/* Fills in the values of a run from the files it left; false with a sentence if they cannot be judged. */
bool compare_measure_run(compare_table *table, compare_run *run, at_error *error);
/* Mean and spread (standard deviation, n - 1 below) of a measure over a cell's runs that are done; gives their count.
 * The spread of one is NAN, and so is the mean of none. */
int compare_mean(const compare_table *table, int cell, int measure, double *mean, double *spread);
/* What became of a cell: done if all its runs are, or the first run that is not. */
const compare_run *compare_cell_run(const compare_table *table, int cell);
/* Whether no cell is better by a measure, and some are worse: where all are alike, none stands out. */
bool compare_is_best(const compare_table *table, int cell, int measure);

/* ---- Running -------------------------------------------------------------------------------------------------- */

typedef struct compare_orders {
    const char *folder;
    int64_t jobs, threads;
    bool quiet, verbose;
} compare_orders;

/* One comparison at a time in a folder. The children hold the lock as well, so that a call right after a parent that
 * was killed waits until they have saved. Gives the lock, to be closed, or -1. */
int compare_lock(const char *folder, at_error *error);

/* Runs what is missing, and measures. False with a sentence if nothing could be run; a run that fails is only marked.
 * *interrupted: a signal came, and the runs were saved. */
bool compare_run_all(compare_table *table, const compare_orders *orders, bool *interrupted, at_error *error);
void compare_runs_free(compare_table *table);

/* ---- Showing -------------------------------------------------------------------------------------------------- */

/* "99.3 ± 0.4", or a dash if there is nothing to show. */
enum { CELL_TEXT = 60 };
char *compare_cell_text(const compare_table *table, int cell, int measure, char out[CELL_TEXT]);
/* What stands below a table: what ± is, which seeds, how the runs shared the machine, and what they learnt from. */
void compare_notes(const compare_table *table, char *out, size_t size);

void compare_print(const compare_table *table);
/* Writers of cli_output; `context` is a table. */
bool compare_write_json(FILE *stream, const void *context);
bool compare_write_html(FILE *stream, const void *context);

#endif
