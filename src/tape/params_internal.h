/* The parameters' record, shared by params.c and params_narrow.c. */
#ifndef AT_PARAMS_INTERNAL_H
#define AT_PARAMS_INTERNAL_H

#include <pthread.h>

#include "tape/params.h"

/* A matrix packed for products. */
typedef struct at_packing {
    at_real *numbers;
    uint64_t version; /* the values it was packed from */
} at_packing;

typedef struct at_param_entry {
    char *name;
    at_shape shape;
    int64_t offset; /* of its first number in the block */
    at_packing packed[2];
    bool frozen, is_matrix;
    at_number_type type; /* if not AT_NUMBERS_REAL, its numbers are not in the block but here: */
    void *narrow;        /* panels, as in kernels/narrow.h */
    at_real *scale;
} at_param_entry;

struct at_params {
    at_arena *names;
    at_arena *arena; /* the two blocks, packed weights */
    at_param_entry *entries;
    int number;
    size_t room;
    int64_t count;
    at_real *values, *grads; /* [count]; NULL until fixed, grads also if nothing is to be trained */
    uint64_t version;        /* counts at_params_changed, from 1 */
    pthread_mutex_t packing; /* several threads may read the parameters; the first that needs a packing makes it */
};

/* A zeroed block of `count` numbers, if there is none yet. */
bool at_block_make(at_arena *arena, int64_t count, at_real **block);
/* The entry's panels, if it has fewer bits; else its place in the block, which *count counts. */
bool at_param_entry_make(at_param_entry *entry, at_arena *arena, int64_t *count);

#endif
