/* The few element loops, vectorised: out may be the same memory as x. */
#ifndef AT_ROWS_H
#define AT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/real.h"

void at_rows_exp(at_real *out, const at_real *x, int64_t count);
void at_rows_tanh(at_real *out, const at_real *x, int64_t count);
void at_rows_sigmoid(at_real *out, const at_real *x, int64_t count);

/* Every machine has the set of kernels "plain"; some have a faster one, and some of these a second one with wider matrix
 * products and the same bits. */
#if defined(__x86_64__)
#define AT_FAST_KERNELS "avx2"
#define AT_WIDE_KERNELS "avx512"
#elif defined(__aarch64__)
#define AT_FAST_KERNELS "neon"
#define AT_WIDE_KERNELS AT_FAST_KERNELS
#else
#define AT_FAST_KERNELS "plain"
#define AT_WIDE_KERNELS AT_FAST_KERNELS
#endif

/* The set whose bits the one in use computes: "avx2" for "avx512", else its own name. */
const char *at_kernels_numbers(void);

/* Chooses a set, for tests; false if this machine does not have it. NULL: the first choice again. */
bool at_kernels_choose(const char *name);

#endif
