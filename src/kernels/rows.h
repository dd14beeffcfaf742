/* The few element loops, vectorised: out may be the same memory as x. */
#ifndef AT_ROWS_H
#define AT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/real.h"

void at_rows_exp(at_real *out, const at_real *x, int64_t count);
void at_rows_tanh(at_real *out, const at_real *x, int64_t count);
void at_rows_sigmoid(at_real *out, const at_real *x, int64_t count);

/* Every machine has the set of kernels "plain"; some have a faster one. */
#if defined(__x86_64__)
#define AT_FAST_KERNELS "avx2"
#elif defined(__aarch64__)
#define AT_FAST_KERNELS "neon"
#else
#define AT_FAST_KERNELS "plain"
#endif

/* Chooses a set, for tests; false if this machine does not have it. NULL: the first choice again. */
bool at_kernels_choose(const char *name);

#endif
