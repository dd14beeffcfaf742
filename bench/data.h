/* The input data of all contestants, in this process and in the workers. It comes from a formula, so that nothing has
 * to be sent, and a checksum shows that all computed the same result. */
#ifndef BENCH_DATA_H
#define BENCH_DATA_H

#include "machine.h"

/* Which numbers: the seeds that the workers use too. */
enum { SEED_QUERY = 1, SEED_KEY, SEED_VALUE, SEED_GRAD_OUT, SEED_PARAMETER, SEED_CHECKSUM = 9 };

/* The i-th number of a seed: uniform, variance 1. */
float data_value(uint32_t seed, int64_t i);
numbers data_new(uint32_t seed, int64_t count);
/* sum_i x[i] * data_value(SEED_CHECKSUM, i) */
double data_checksum(const float *x, int64_t count);
/* Whether two checksums of results this large agree within the accuracy of float arithmetic. */
bool data_agrees(double ours, double theirs, double size);

#endif
