/* `attend bench`: ours against the rivals and against what the machine can do. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>

typedef struct bench_request {
    const char *name; /* one of bench_name's; NULL: all */
    bool json, quick, rivals;
    int threads;
    int rounds;       /* at most 99; 0: nine, or two if quick */
    const char *only; /* run only cases whose name holds this text; NULL: all */
} bench_request;

/* The benches in order; NULL past the last. */
const char *bench_name(int index);

/* Measures and prints. */
void bench_run(const bench_request *request);

#endif
