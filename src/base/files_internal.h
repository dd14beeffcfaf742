/* What writers of files and of folders share: names of temporary entries, and directories. */
#ifndef AT_FILES_INTERNAL_H
#define AT_FILES_INTERNAL_H

#include <stddef.h>

#include "attend.h"

/* path[0 .. length) is the directory of the name with its slash. */
size_t at_directory_length(const char *path);

/* The names of the temporary entries of a target begin with ".attend-HASH-": the name of the target itself may already
 * have the longest length. They end in ".tmp". */
enum { AT_TEMPORARY = 32 };
void at_temporary_prefix(const char *target, char prefix[AT_TEMPORARY]);
bool at_temporary_named(const char *name, const char prefix[AT_TEMPORARY]);
/* "DIRECTORY/.attend-HASH-PID-SERIAL.tmp", another one at each call, in `room` bytes. */
void at_temporary_next(const char *target, const char prefix[AT_TEMPORARY], char *name, size_t room);
enum { AT_TEMPORARY_ROOM = AT_TEMPORARY + 40 }; /* and the directory */

/* Syncs the directory of the target. Some file systems cannot sync a directory, and a directory may be writable but not
 * readable; what was written is complete either way. `path` is for the error message. */
bool at_directory_sync(const char *target, const char *path, at_error *error);

#endif
