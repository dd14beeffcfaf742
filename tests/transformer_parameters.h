/* The parameters of the small Transformers in tests/ref. */
#ifndef TRANSFORMER_PARAMETERS_H
#define TRANSFORMER_PARAMETERS_H

#include <string.h>

#include "tape/params.h"

/* The random numbers of the scripts: from -1/2 to below 1/2 in steps of 2^-15, seeded by the name; gains around 1. */
static inline void fill_random(at_params *params, int index)
{
    const char *name = at_params_name(params, index);
    const size_t length = strlen(name);
    uint32_t state = 1;
    for (const char *c = name; *c; c++)
        state = (state * 31u + (unsigned char)*c) % 0x80000000u;
    at_real *value = at_params_value(params, index);
    for (int64_t i = 0; i < at_shape_count(at_params_shape(params, index)); i++) {
        state = (state * 1103515245u + 12345u) % 0x80000000u;
        value[i] = ((float)(state >> 16) - 16384.0f) / 32768.0f + (strcmp(name + length - 2, ".g") == 0 ? 1.0f : 0.0f);
    }
}

#endif
