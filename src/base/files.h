/* Files read whole and written atomically. */
#ifndef AT_FILES_H
#define AT_FILES_H

#include "attend_unstable.h"

/* The whole file in memory (release with free); *size its length. NULL if it cannot be read. */
unsigned char *at_file_read(const char *path, size_t *size, at_error *error);

/* Up to `size` bytes from the beginning of a file; returns how many, fewer if it is shorter, 0 with the error set. */
size_t at_file_begin(const char *path, void *bytes, size_t size, at_error *error);

/* Opens a regular file for reading, never waiting for a pipe; *size its length. -1 if it cannot be opened or is a directory,
 * a pipe or a device. */
int at_file_open_regular(const char *path, size_t *size, at_error *error);

/* Reads `size` bytes from `offset` on of an open file; `path` is its name for error messages. */
bool at_file_read_at(int file, size_t offset, void *bytes, size_t size, const char *path, at_error *error);

const char *at_writer_path(const at_writer *writer);
/* Removes the temporary files of processes that were killed while writing `path`. at_writer_open does it, too. */
void at_writer_tidy(const char *path);

/* product = a * b and sum = a + b of untrusted sizes; false if they overflow. */
bool at_size_mul(size_t a, size_t b, size_t *product);
bool at_size_add(size_t a, size_t b, size_t *sum);

#endif
