/* What attend train tells on stderr while it runs. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include "console.h"

typedef struct cli_progress {
    bool quiet, bar, drawn; /* drawn: a bar stands in the terminal's last line */
    double last;            /* when it was drawn */
} cli_progress;

/* The listener of a training; `context` is a cli_progress. */
void progress_listen(void *context, const at_train_news *news);
/* Removes the bar, if there is one. */
void progress_clear(cli_progress *progress);

/* 64000 as 64,000; returns `text`. */
const char *grouped(int64_t number, char text[32]);

#endif
