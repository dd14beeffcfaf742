/* Results of a search as bytes, which one process writes and another one delivers. */
#ifndef AT_RECORDS_INTERNAL_H
#define AT_RECORDS_INTERNAL_H

#include "base/arena.h"
#include "base/buffer.h"
#include "search/search.h"

/* Where results are written to, the context of the functions below. */
typedef struct at_records {
    at_buffer bytes;
    bool has_targets; /* of forced decoding */
    at_error *error;
} at_records;

/* The callbacks of a job that write what they get. */
at_on_result at_records_result;
at_on_long at_records_long;
at_on_term at_records_term;

/* Passes all of it on to the callbacks of a job, in the same order. `arena` is for memory until the call ends. */
bool at_records_deliver(const char *bytes, size_t size, const at_search_job *job, at_arena *arena, at_error *error);

#endif
