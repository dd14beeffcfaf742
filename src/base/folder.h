/* Folders written completely or not at all. */
#ifndef AT_FOLDER_H
#define AT_FOLDER_H

#include "attend.h"

/* A folder that is being written: its files go into a new folder beside `path`, which _commit syncs and renames to it. A
 * folder with anything in it is never replaced: it is refused. What fails or is killed leaves nothing of the name; the
 * next writer of the same path removes what a killed one left. */
typedef struct at_folder at_folder;
at_folder *at_folder_open(const char *path, at_error *error);
/* The path of a file in it while it is being written; release with free. */
char *at_folder_path(const at_folder *folder, const char *name, at_error *error);
bool at_folder_add(at_folder *folder, const char *name, const void *bytes, size_t size, at_error *error);
bool at_folder_commit(at_folder *folder, at_error *error); /* releases the folder either way */
void at_folder_cancel(at_folder *folder);

#endif
