/* A text that is printed to a stream in memory. Running out of memory is an error of the stream, which it is not with
 * open_memstream of the C library. */
#ifndef TEXT_FILE_H
#define TEXT_FILE_H

#include "console.h"

typedef struct text_file {
    FILE *stream; /* to print to */
    char *bytes;
    size_t size, room;
} text_file;
bool text_open(text_file *text, at_error *error);
/* Ends it and returns the text, `text->size` bytes and a NUL, to release with free; NULL if out of memory. */
char *text_take(text_file *text, at_error *error);
/* Ends it, adds the text to the file unless the writer is NULL or there is an error, and releases it. */
bool text_close(text_file *text, at_writer *writer, at_error *error);

#endif
