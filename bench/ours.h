/* Our own side of an attention case: at_attend on the caller's arrays, in memory that is allocated once. */
#ifndef BENCH_OURS_H
#define BENCH_OURS_H

#include "attend.h"
#include "data.h"
#include "worker.h"

/* What is requested besides the output. */
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
    double each; /* seconds per call, last measured */
} ours;

/* False, with the message on stderr, if the operator refuses. With `own_memory` the call gets memory of the size it
 * needs; without, it allocates in each call, as the memory figures require. */
bool ours_make(ours *o, const attention_case *what, visible extra, bool own_memory);
void ours_free(ours *o);
double ours_turn(void *context, int64_t repeats);

/* The checksum of what the last call returned, and the root of the sum of its squares. */
void ours_checksum(const ours *o, double *checksum, double *size);

#endif
