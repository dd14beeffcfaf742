/* attend attention --show: scores, weights and output in the terminal. */
#ifndef ATTENTION_SHOW_H
#define ATTENTION_SHOW_H

#include "console.h"

/* The arrays of one call, each NULL if it is not to be shown. */
typedef struct attention_pictures {
    int64_t batch, heads;
    const at_array *scores, *weights; /* [B,H,Q,K], or without the B */
    const at_array *out;              /* [B,Q,H·Dv], or without the B */
} attention_pictures;

bool attention_show(const attention_pictures *pictures, at_error *error);

#endif
