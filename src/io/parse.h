/* The parsers: they read a block of memory, so that no test or fuzzer needs a file. `name` is the name of the file for
 * error messages. */
#ifndef AT_PARSE_H
#define AT_PARSE_H

#include "attend.h"

at_array *at_npy_parse(const unsigned char *bytes, size_t size, const char *name, at_error *error);
at_tensors *at_tensors_parse(const unsigned char *bytes, size_t size, const char *name, at_error *error);

#endif
