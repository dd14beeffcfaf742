/* Our own side of an attention case: at_attend on the caller's arrays, in memory that is set aside once. */
#ifndef BENCH_OURS_H
#define BENCH_OURS_H

#include "attend.h"
#include "data.h"
#include "worker.h"

/* What is asked for beside the output. */
typedef enum visible { NOTHING, SUMMARIES, SOME_WEIGHTS } visible;

typedef struct ours {
    at_settings settings;
    at_call call;
    at_parameter parameter[3];
    char position[32];
    int64_t *rows;
    numbers owned[24];
    int owned_count;
    int threads;
    double each; /* seconds of a call, as last seen */
} ours;

/* False, with the message on stderr, if the operator refuses. With `own_memory` the call gets memory of the size it
 * needs; without, it asks the system each time, as the figures of memory need. */
bool ours_make(ours *o, const attention_case *what, visible extra, bool own_memory);
void ours_free(ours *o);
double ours_turn(void *context, int64_t repeats);

/* The checksum of what the last call returned, and the root of the sum of its squares. */
void ours_checksum(const ours *o, double *checksum, double *size);

#endif
