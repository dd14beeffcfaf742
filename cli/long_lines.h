/* Lines that are longer than what a model was trained on, or than --max-source: notes about them, at once. */
#ifndef LONG_LINES_H
#define LONG_LINES_H

#include "console.h"

typedef struct long_lines {
    bool quiet;
    bool continues;     /* a language model, which reads the end of a line */
    int64_t whole, cut; /* how many there were: read whole, or cut */
} long_lines;

/* For on_long: says of the first few lines at once what is done with them. `line` counts from 0. */
void long_lines_note(long_lines *lines, int64_t line, int64_t units, int64_t read);
/* At the end: how many more there were. */
void long_lines_sum(const long_lines *lines);

#endif
