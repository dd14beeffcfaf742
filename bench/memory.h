/* The process's resident memory, in MB. */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

double memory_begin(void); /* resets the peak and returns what is resident now */
double memory_peak(void);  /* the highest since then */

#endif
