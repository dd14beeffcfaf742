/* Files read whole and written atomically. */
#ifndef AT_FILES_H
#define AT_FILES_H

#include "attend_unstable.h"

/* The whole file in memory (release with free); *size its length. NULL if it cannot be read. */
unsigned char *at_file_read(const char *path, size_t *size, at_error *error);

const char *at_writer_path(const at_writer *writer);
/* Removes the temporary files of processes that were killed while writing `path`. at_writer_open does it, too. */
void at_writer_tidy(const char *path);

/* product = a * b and sum = a + b of untrusted sizes; false if they overflow. */
bool at_size_mul(size_t a, size_t b, size_t *product);
bool at_size_add(size_t a, size_t b, size_t *sum);

#endif
