/* The few element loops, vectorised: out may be the same memory as x. */
#ifndef AT_ROWS_H
#define AT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/real.h"

void at_rows_exp(at_real *out, const at_real *x, int64_t count);
void at_rows_tanh(at_real *out, const at_real *x, int64_t count);
void at_rows_sigmoid(at_real *out, const at_real *x, int64_t count);

/* Which set of kernels the CPU got: "avx2" or "plain". */
const char *at_kernels_name(void);
/* Forces "plain" or "avx2" for tests; false if this CPU has no such set. NULL: back to the best one. */
bool at_kernels_choose(const char *name);

#endif
