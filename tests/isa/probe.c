/* What only the inner loops call, within reach of a test: compiled once for each instruction set, as they are. */
#include "kernels/vec_internal.h"

void AT_ISA_NAME(probe_exp2_below)(at_real *out, const at_real *x, int64_t count);

/* count: a multiple of LANES */
void AT_ISA_NAME(probe_exp2_below)(at_real *out, const at_real *x, int64_t count)
{
    for (int64_t i = 0; i < count; i += LANES)
        v_store(out + i, v_exp2_below(v_load(x + i)));
}
