/* Files read whole and written atomically. */
#ifndef AT_FILES_H
#define AT_FILES_H

#include "attend_unstable.h"

/* The whole file in memory (release with free); *size its length. NULL if it cannot be read. */
unsigned char *at_file_read(const char *path, size_t *size, at_error *error);

/* An atomic write: the pieces go to a temporary file beside `path`, which is synced and renamed over it by _commit,
 * then the directory is synced. A failed write leaves what was there. */
typedef struct at_writer at_writer;
at_writer *at_writer_open(const char *path, at_error *error);
bool at_writer_add(at_writer *writer, const void *bytes, size_t size, at_error *error);
bool at_writer_commit(at_writer *writer, at_error *error); /* releases the writer either way */
void at_writer_cancel(at_writer *writer);
/* Removes the temporary files of processes that were killed while writing `path`. No other process may be writing it. */
void at_writer_tidy(const char *path);

/* product = a * b and sum = a + b of untrusted sizes; false if they overflow. */
bool at_size_mul(size_t a, size_t b, size_t *product);
bool at_size_add(size_t a, size_t b, size_t *sum);

#endif
