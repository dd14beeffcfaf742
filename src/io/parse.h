/* The parsers: they read a block of memory, so that no test or fuzzer needs a file. `name` is the name of the file for
 * error messages. */
#ifndef AT_PARSE_H
#define AT_PARSE_H

#include "attend.h"

/* What the header of a .npy file says; the values begin at byte `start`, in C order, and take the rest of the file. */
typedef struct at_npy_header {
    at_dtype dtype;
    int rank;
    int64_t dim[AT_MAX_RANK];
    size_t start;
} at_npy_header;
enum { AT_NPY_HEADER = 65536 + 12 }; /* the most bytes before the values */

/* From the first `size` bytes of a file that has `total`: all of them, or at least AT_NPY_HEADER. */
bool at_npy_header_parse(const unsigned char *bytes, size_t size, size_t total, const char *name, at_npy_header *out,
                         at_error *error);
at_array *at_npy_parse(const unsigned char *bytes, size_t size, const char *name, at_error *error);
at_tensors *at_tensors_parse(const unsigned char *bytes, size_t size, const char *name, at_error *error);

#endif
