/* Dense layers, and the initial values of parameters. */
#include "layers/layers.h"
#include "base/hash.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- dense: y = act(x W^T + b) ---- */

at_dense at_dense_declare(at_params *params, const char *name, int64_t in, int64_t out, bool bias, at_error *error)
{
    char full[120];
    at_dense layer = {.b = -1};
    snprintf(full, sizeof full, "%s.W", name);
    layer.w = at_params_add_matrix(params, full, AT_SHAPE(out, in), error);
    snprintf(full, sizeof full, "%s.b", name);
    if (bias)
        layer.b = at_params_add(params, full, AT_SHAPE(out), error);
    return layer;
}

at_tensor *at_dense_apply(at_tape *tape, at_params *params, const at_dense *layer, at_tensor *x, at_act act)
{
    at_tensor *b = layer->b < 0 ? NULL : at_param(tape, params, layer->b);
    return at_linear(x, at_weights(tape, params, layer->w), b, act);
}

/* ---- Initial values ---- */

/* A stream of its own for every name: FNV-1a of it, spread over the seed. */
static at_rng stream_of(const at_params *params, int index, uint64_t seed)
{
    return (at_rng){.seed = seed * 0x9e3779b97f4a7c15u ^ at_hash_text(at_params_name(params, index))};
}

void at_init_uniform(at_params *params, int index, double scale, uint64_t seed)
{
    at_rng rng = stream_of(params, index, seed);
    at_real *value = at_params_value(params, index);
    for (int64_t i = 0; i < at_shape_count(at_params_shape(params, index)); i++)
        value[i] = (at_real)(scale * (2 * at_rng_uniform(&rng) - 1));
    at_params_changed(params);
}

void at_init_normal(at_params *params, int index, double deviation, uint64_t seed)
{
    at_rng rng = stream_of(params, index, seed);
    at_real *value = at_params_value(params, index);
    for (int64_t i = 0; i < at_shape_count(at_params_shape(params, index)); i++)
        value[i] = (at_real)(deviation * at_rng_normal(&rng));
    at_params_changed(params);
}

/* The sum of x_j y_j in double, over eight lanes so that the compiler vectorises the loop. */
static double inner(const at_real *x, const at_real *y, int64_t size)
{
    enum { LANES = 8 };
    double lane[LANES] = {0}, sum = 0;
    int64_t j = 0;
    for (; j + LANES <= size; j += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += (double)x[j + l] * (double)y[j + l];
    for (; j < size; j++)
        sum += (double)x[j] * (double)y[j];
    for (int l = 0; l < LANES; l++)
        sum += lane[l];
    return sum;
}

/* row -= (row . other) other for each of `count` others */
static void orthogonalise(at_real *row, const at_real *others, int64_t count, int64_t size)
{
    for (int64_t k = 0; k < count; k++) {
        const at_real *other = others + k * size, part = (at_real)inner(row, other, size);
        for (int64_t j = 0; j < size; j++)
            row[j] -= part * other[j];
    }
}

/* Gram-Schmidt on normal rows, twice for each, so that they are orthogonal to rounding. */
void at_init_orthogonal(at_params *params, int index, uint64_t seed)
{
    at_init_normal(params, index, 1, seed);
    at_shape shape = at_params_shape(params, index);
    int64_t size = shape.dim[shape.rank - 1], rows = at_shape_count(shape) / size;
    at_real *value = at_params_value(params, index);
    for (int64_t i = 0; i < rows; i++) {
        at_real *row = value + i * size, *block = value + i / size * size * size;
        orthogonalise(row, block, i % size, size);
        orthogonalise(row, block, i % size, size);
        const at_real length = (at_real)sqrt(inner(row, row, size));
        for (int64_t j = 0; j < size; j++)
            row[j] /= length;
    }
    at_params_changed(params);
}

/* The biases of NAME.b: zeros. The second of four gates, as NAME.U [4H,H] shows, is the lstm's forget gate, whose
 * bias is 1. */
static void init_bias(at_params *params, int index)
{
    char name[120];
    int64_t size = at_params_shape(params, index).dim[0];
    at_real *value = at_params_value(params, index);
    memset(value, 0, (size_t)size * sizeof *value);
    snprintf(name, sizeof name, "%s", at_params_name(params, index));
    name[strlen(name) - 1] = 'U';
    int u = at_params_find(params, name);
    if (u < 0 || at_params_shape(params, u).dim[0] != size || at_params_shape(params, u).dim[1] * 4 != size)
        return;
    for (int64_t i = size / 4; i < size / 2; i++)
        value[i] = 1;
}

/* The gains of NAME.g: ones. */
static void init_gain(at_params *params, int index)
{
    at_real *value = at_params_value(params, index);
    for (int64_t i = 0; i < at_shape_count(at_params_shape(params, index)); i++)
        value[i] = 1;
}

void at_init_all(at_params *params, uint64_t seed)
{
    for (int i = 0; i < at_params_number(params); i++) {
        const char *dot = strrchr(at_params_name(params, i), '.'), *last = dot ? dot + 1 : "";
        at_shape shape = at_params_shape(params, i);
        int64_t size = shape.dim[shape.rank - 1];
        if (strcmp(last, "U") == 0)
            at_init_orthogonal(params, i, seed);
        else if (strcmp(last, "b") == 0)
            init_bias(params, i);
        else if (strcmp(last, "g") == 0)
            init_gain(params, i);
        else if (strcmp(last, "E") == 0)
            at_init_normal(params, i, 0.1, seed);
        else
            at_init_uniform(params, i, sqrt((shape.rank == 1 ? 1.0 : 3.0) / (double)size), seed);
    }
    at_params_changed(params);
}
