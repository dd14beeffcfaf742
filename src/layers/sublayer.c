/* The other sub-layers of a Transformer: norm and feed-forward. */
#include <stdio.h>

#include "layers/layers.h"

/* ---- norm: LN(x), LN(x + dropout(y)) ---- */

at_norm at_norm_declare(at_params *params, const char *name, int64_t size, double eps, at_error *error)
{
    char full[120];
    at_norm norm = {.eps = (at_real)eps};
    snprintf(full, sizeof full, "%s.g", name);
    norm.gain = at_params_add(params, full, AT_SHAPE(size), error);
    snprintf(full, sizeof full, "%s.b", name);
    norm.bias = at_params_add(params, full, AT_SHAPE(size), error);
    return norm;
}

at_tensor *at_norm_apply(at_tape *tape, at_params *params, const at_norm *norm, at_tensor *x)
{
    return at_layer_norm(x, at_param(tape, params, norm->gain), at_param(tape, params, norm->bias), norm->eps);
}

at_tensor *at_norm_residual(at_tape *tape, at_params *params, const at_norm *norm, at_tensor *x, at_tensor *y,
                            at_real keep, at_rng *rng, at_tensor **sum)
{
    return at_residual_norm(x, y, at_param(tape, params, norm->gain), at_param(tape, params, norm->bias), norm->eps,
                            keep, rng, sum);
}

/* ---- feed-forward: W2 dropout(act(W1 x + b1)) + b2 ---- */

at_ffn at_ffn_declare(at_params *params, const char *name, int64_t size, int64_t inner, at_ffn_act act, at_error *error)
{
    char full[120];
    at_ffn ffn = {.act = act};
    snprintf(full, sizeof full, "%s.inner", name);
    ffn.inner = at_dense_declare(params, full, size, inner, true, error);
    snprintf(full, sizeof full, "%s.outer", name);
    ffn.outer = at_dense_declare(params, full, inner, size, true, error);
    return ffn;
}

at_tensor *at_ffn_apply(at_tape *tape, at_params *params, const at_ffn *ffn, at_tensor *x, at_real keep, at_rng *rng)
{
    at_act act = ffn->act == AT_FFN_RELU ? AT_ACT_RELU : AT_ACT_NONE;
    at_tensor *h = at_dense_apply(tape, params, &ffn->inner, x, act); /* [N,inner] */
    if (ffn->act == AT_FFN_GELU)
        h = at_gelu(h);
    else if (ffn->act == AT_FFN_SWISH)
        h = at_swish(h);
    return at_dense_apply(tape, params, &ffn->outer, at_dropout(h, keep, rng), AT_ACT_NONE); /* [N,size] */
}
