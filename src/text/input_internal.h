/* The bytes of a file or of the standard input, decompressed if they are compressed. */
#ifndef AT_INPUT_INTERNAL_H
#define AT_INPUT_INTERNAL_H

#include <sys/types.h>

#include "base/error.h"

typedef struct at_input at_input;
at_input *at_input_open(const char *path, at_error *error); /* "-": the standard input */
void at_input_free(at_input *input);
/* How error messages name it. */
const char *at_input_name(const at_input *input);
/* Up to `size` (at least 1) bytes; 0 at the end, -1 with the error set. */
ssize_t at_input_read(at_input *input, void *bytes, size_t size, at_error *error);
/* Whether a read would return without waiting for the writer of the input. */
bool at_input_ready(const at_input *input);
/* A file's size, as a guess of how much there is to read; 0 if it is not known. */
size_t at_input_size(const at_input *input);

#endif
