/* The files that a command writes: all of them or none. */
#ifndef OUTPUTS_H
#define OUTPUTS_H

#include "text_file.h"

/* One file to write: what `write` prints, or if it is NULL the array as .npy. */
typedef struct cli_output {
    const char *option; /* "--out": named in error messages */
    char *path;         /* as it was given, for error messages */
    char *name;         /* the same as an absolute path, to compare files */
    const at_array *array;
    bool (*write)(FILE *stream, const void *context);
    const void *context;
    at_writer *writer; /* while all are written */
} cli_output;

enum { MOST_OUTPUTS = 64 };

typedef struct cli_outputs {
    cli_output file[MOST_OUTPUTS];
    int count;
    const char *folder, *folder_option; /* a directory to create if it does not exist, or NULL */
    bool folder_made;
} cli_outputs;

/* The file `path`, or `folder/path`.npy; set its array or writer before outputs_write. NULL with an error message if it
 * cannot be written there. */
cli_output *outputs_add(cli_outputs *outputs, const char *option, const char *path, at_error *error);
cli_output *outputs_add_in_folder(cli_outputs *outputs, const char *name, at_error *error);
bool outputs_folder(cli_outputs *outputs, const char *option, const char *folder, at_error *error);

/* Writes every file under its temporary name, then renames them all; after a failure none is left. */
bool outputs_write(cli_outputs *outputs, at_error *error);
void outputs_free(cli_outputs *outputs);

#endif
