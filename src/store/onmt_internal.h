/* A checkpoint of OpenNMT-py while it is read (reader_onmt.c). */
#ifndef AT_ONMT_INTERNAL_H
#define AT_ONMT_INTERNAL_H

#include "store/imported_internal.h"
#include "store/torch_internal.h"

typedef struct at_onmt {
    at_import in;
    const at_pickled *root;
    at_row_ids source, target;
} at_onmt;

/* onmt_transformer.c: settings, and then parameters. */
bool at_onmt_transformer_set(at_onmt *m, const char *target_E);
bool at_onmt_transformer_put(at_onmt *m, const char *source_E, const char *target_E);

#endif
