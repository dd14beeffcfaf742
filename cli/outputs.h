/* The files a command leaves behind: all of them or none. */
#ifndef OUTPUTS_H
#define OUTPUTS_H

#include "console.h"

/* One file to come. Either an array, written as .npy, or whatever `write` prints. */
typedef struct cli_output {
    const char *option; /* "--out": whom to name when it fails */
    char *path;         /* as it was given, for sentences */
    char *name;         /* the same from the root on, to tell two files apart */
    char *target;       /* what is replaced: the path, or the file that a link at the path leads to */
    char *part;         /* where it lies until all are written */
    const at_array *array;
    bool (*write)(FILE *stream, const void *context);
    const void *context;
    bool staged;
} cli_output;

enum { MOST_OUTPUTS = 64 };

typedef struct cli_outputs {
    cli_output file[MOST_OUTPUTS];
    int count;
    const char *folder, *folder_option; /* a folder to make if it is not there, or NULL */
    bool folder_made;
} cli_outputs;

/* The file `path`, or `folder/path`.npy; give it its array or writer before outputs_write. NULL with a sentence if it
 * could not be written there, judging by what is there now. */
cli_output *outputs_add(cli_outputs *outputs, const char *option, const char *path, at_error *error);
cli_output *outputs_add_in_folder(cli_outputs *outputs, const char *name, at_error *error);
bool outputs_folder(cli_outputs *outputs, const char *option, const char *folder, at_error *error);

/* Writes every file beside its place, then moves them all there; after a failure none is left. */
bool outputs_write(cli_outputs *outputs, at_error *error);
void outputs_free(cli_outputs *outputs);

#endif
