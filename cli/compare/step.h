/* The steps of a run of attend compare: each is one command that could be typed, with a record of having been done. */
#ifndef COMPARE_STEP_H
#define COMPARE_STEP_H

#include "compare/compare.h"

enum { TRAIN_STEP, TEST_STEP, BEYOND_STEP, ALIGN_STEP, STEPS };
extern const char *const step_names[STEPS];

enum { NUMBER = 32 };

/* What a child is started with. */
typedef struct step {
    const char *word[MOST_LINE_WORDS];
    bool aside[MOST_LINE_WORDS]; /* says where a file is, or how many threads: nothing that changes a result */
    int count;
    char input[PATH], output[PATH]; /* of stdin and stdout; "": none */
    char said[PATH], record[PATH];  /* what stderr goes to; what tells that the step is done */
    char model[PATH];
    char number[3][NUMBER];
    uint64_t mark; /* of the data it reads */
} step;

/* The command that trains a run but for its output, which decides its folder; then any of its steps once it has one,
 * false if it has no such step. */
void step_train_words(const compare_table *table, const compare_run *run, step *s);
bool step_make(const compare_table *table, const compare_run *run, int which, step *s);

/* The command as one would type it, to release with free. */
char *step_typed(const step *s);
/* A mark of all that decides what comes of a step. Gives `text`. */
const char *step_identity(const step *s, char text[NUMBER]);

/* Notes that a step was done, in so many seconds and with a peak of so many KB; `none` is the sentence of a model that
 * cannot do it at all. What comes after it is then to be done anew. */
bool step_record(const compare_run *run, int which, const step *s, double seconds, long peak, const char *none,
                 at_error *error);
/* The first step that is still to be done; STEPS if none is. */
int step_next(const compare_table *table, const compare_run *run, step *s);

#endif
