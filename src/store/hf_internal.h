/* The layers of a MarianMT model of Hugging Face. */
#ifndef AT_HF_INTERNAL_H
#define AT_HF_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

/* Our array SIDE.1.PART and theirs, model.SIDE.layers.0.PART. */
typedef struct at_hf_array {
    const char *ours, *theirs;
    int block, blocks; /* our rows are `blocks` of theirs, one after another */
    bool in_columns;   /* the numbers of the residual stream are columns: this reads the stream */
    bool in_rows;      /* they are rows: this adds to it */
} at_hf_array;
/* Calls `each` with the arrays of the layers of a side, "encoder" or "decoder", until it returns false. */
typedef bool at_hf_each_array(void *context, const at_hf_array *array);
bool at_hf_each(const char *side, int64_t layers, at_hf_each_array *each, void *context);

#endif
