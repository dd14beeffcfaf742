/* The steps of a run of attend compare: each is one command, with a record once it is done. */
#ifndef COMPARE_STEP_H
#define COMPARE_STEP_H

#include <jansson.h>

#include "compare/compare.h"

enum { TRAIN_STEP, TEST_STEP, BEYOND_STEP, ALIGN_STEP, STEPS };
extern const char *const step_names[STEPS];

enum { NUMBER = 32 };

/* How a child process is started. */
typedef struct step {
    const char *word[MOST_LINE_WORDS];
    bool aside[MOST_LINE_WORDS]; /* a path or a number of threads, which does not change the result */
    int count;
    char output[PATH];             /* the file for stdout; "": none */
    char said[PATH], record[PATH]; /* the file for stderr; the record of the finished step */
    char model[PATH];
    char number[3][NUMBER];
    uint64_t mark; /* hash of the data it reads */
} step;

/* The command that trains a run, without its output (the directory is named by its hash); then any step of a run with a
 * directory; false if it has no such step. */
void step_train_words(const compare_table *table, const compare_run *run, step *s);
bool step_make(const compare_table *table, const compare_run *run, int which, step *s);

/* The command as a shell command; release with free. */
char *step_typed(const step *s);
/* A hash of everything that decides the result of a step. Returns `text`. */
const char *step_identity(const step *s, char text[NUMBER]);

/* Records that a step is done, with its seconds and its peak memory in KB; `none` is the error message of a model that
 * cannot do it. The steps after it become not done. */
bool step_record(const compare_run *run, int which, const step *s, double seconds, long peak, const char *none,
                 at_error *error);
/* The record of a step; NULL if there is none, or if it is damaged: the step is not done. Fails only if out of memory. */
json_t *step_read(const char *path, at_error *error);
/* The first step that is not done; STEPS if all are, or with the error set. */
int step_next(const compare_table *table, const compare_run *run, step *s, at_error *error);

#endif
