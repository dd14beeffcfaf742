/* Replacing a model file or a training state whole, and keeping the one before it as PATH.previous. */
#ifndef AT_REPLACE_FILE_H
#define AT_REPLACE_FILE_H

#include "attend.h"

/* Writes the file with its checksum, atomically; with `keep_previous` the file that was there stays as PATH.previous. */
bool at_file_replace(at_tensors *file, const char *path, bool keep_previous, at_error *error);

/* PATH.previous becomes PATH, and the file that was there becomes PATH.previous. PATH is a whole file at any time. */
bool at_file_restore(const char *path, at_error *error);

/* Removes PATH.previous. */
void at_file_forget(const char *path);

/* After a run that was killed while it replaced PATH: removes its temporary files, and finishes what it had begun. */
void at_file_tidy(const char *path);

#endif
