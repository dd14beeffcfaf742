/* The activations of a product and their slopes, on a vector. */
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

/* act'(x), written with y = act(x) */
INLINE vec slope(vec y, const at_act act)
{
    switch (act) {
    case AT_ACT_TANH:
        return 1 - y * y;
    case AT_ACT_SIGMOID:
        return y * (1 - y);
    case AT_ACT_RELU:
        return v_pick((veci)(y > 0), v_set(1), v_set(0));
    default:
        return v_set(1);
    }
}

/* g act'(x); where relu is flat that is 0, even if g is not finite */
INLINE vec slope_times(vec g, vec y, const at_act act)
{
    if (act == AT_ACT_RELU)
        return v_pick((veci)(y > 0), g, v_set(0));
    return act == AT_ACT_NONE ? g : g * slope(y, act);
}

#endif
