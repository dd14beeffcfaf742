/* What record.c writes and replay.c reads: entries, each followed by its paths and the bytes of a write. */
#ifndef POWER_H
#define POWER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    START = 's',       /* what stands before it was there before the command, and is on disk */
    CREATE = 'c',      /* a name for a file, unless it has it already */
    RENAME = 'r',      /* from `path` to `other` */
    REMOVE = 'u',      /* a name of a file, or a folder */
    FOLDER = 'd',      /* a new folder */
    WRITE = 'w',       /* `size` bytes at `offset` */
    TRUNCATE = 't',    /* to `offset` bytes */
    SYNC = 'f',        /* the bytes of a file */
    SYNC_FOLDER = 'F', /* the names in a folder */
};

typedef struct entry {
    uint64_t file; /* its number (inode), which a later file may get again */
    int64_t offset, size;
    uint32_t path_size, other_size;
    char kind;
} entry;

/* Whether the path is that of a file that a writer has not renamed yet. */
static inline bool is_temporary(const char *path)
{
    const char *folder_end = strrchr(path, '/');
    return strncmp(folder_end ? folder_end + 1 : path, ".attend-", 8) == 0;
}

#endif
