/* The curves in a log of attend train (doc/formats.md). */
#ifndef TRAIN_LOG_H
#define TRAIN_LOG_H

#include "console.h"
#include "svg_plot.h"

/* One number over the updates: "cost", the training loss, or a metric of the validations. */
typedef struct log_series {
    char name[40];
    svg_point *point; /* [count] x is the update */
    int count;
    size_t room;
} log_series;

enum { MOST_SERIES = 20 };
typedef struct train_log {
    log_series series[MOST_SERIES]; /* in the order in which the log has them */
    int count;
} train_log;

/* Lines that are not whole, as the last one of a run that was killed, are left out; a file without a line of a log fails.
 * Release it either way. */
bool train_log_read(const char *path, train_log *log, at_error *error);
void train_log_free(train_log *log);

/* NULL: the log has none of this name. */
const log_series *train_log_find(const train_log *log, const char *name);

/* Every second point, and the last, until there are few enough to draw; returns their count. */
int thin_out(svg_point *point, int count);

#endif
