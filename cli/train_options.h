/* The options of attend train: the library's settings under its headings, for all models or for one. */
#ifndef TRAIN_OPTIONS_H
#define TRAIN_OPTIONS_H

#include "options.h"

enum { MOST_SETTINGS = 128 };

typedef struct train_options {
    cli_common common;
    const char *value[MOST_SETTINGS]; /* by the index of at_training_setting; NULL: not given */
    bool flag[MOST_SETTINGS];
} train_options;

/* All of them; help names the defaults of each model. */
const at_setting *train_options_all(void);

/* Those of one model, with its defaults. */
extern const cli_variants train_variants;

#endif
