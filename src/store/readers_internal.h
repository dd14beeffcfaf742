/* Readers of model files: the seam for formats of other programs. A reader is one file of this folder with its record,
 * and the record's name in the table of readers.c. */
#ifndef AT_READERS_INTERNAL_H
#define AT_READERS_INTERNAL_H

#include "store/translator.h"

typedef struct at_reader {
    const char *name;    /* "attend" */
    const char *formats; /* for the error message: what it reads */
    /* Whether the file, which exists, is this reader's: by its first bytes, not by its name. It need not be intact:
     * load reports what is wrong with it. Fails if the file cannot be read. */
    bool (*knows)(const char *path, at_error *error);
    /* Fills in the translator, which is zeroed. On failure the caller frees what was filled in. */
    bool (*load)(at_translator *translator, const char *path, at_error *error);
    bool of_folders; /* `knows` and `load` take folders, too */
} at_reader;

#endif
