/* The limits of this machine, which percentages refer to. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include "measure.h"

/* GFLOP/s of fused multiply-adds in registers, on all the threads that are measured; takes a few milliseconds. */
double machine_fma_peak(void);

/* Turns for a race. The first two take a buffer that fits the L1 cache, the third a buffer of any size. */
typedef struct numbers {
    float *values;
    int64_t count;
} numbers;
double machine_exp_turn(void *buffer, int64_t repeats);
double machine_tanh_turn(void *buffer, int64_t repeats);
double machine_read_turn(void *buffer, int64_t repeats);

numbers numbers_new(int64_t count); /* aligned, touched; exits the program if out of memory */
void numbers_free(numbers *buffer);
enum { INNERMOST = 4096 }; /* numbers: 16 KB */

/* The rows of the bench "machine". */
void bench_machine(void);

#endif
