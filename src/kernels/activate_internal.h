/* The activations, on a vector. */
#ifndef AT_ACTIVATE_INTERNAL_H
#define AT_ACTIVATE_INTERNAL_H

#include "kernels/gemm.h"
#include "kernels/vec_internal.h"

INLINE vec activate(vec x, at_act act)
{
    switch (act) {
    case AT_ACT_TANH:
        return v_tanh(x);
    case AT_ACT_SIGMOID:
        return v_sigmoid(x);
    case AT_ACT_RELU:
        return v_max(v_set(0), x);
    default:
        return x;
    }
}

#endif
