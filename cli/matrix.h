/* Matrices as text: typed on the command line, in files, and on the standard streams. */
#ifndef MATRIX_H
#define MATRIX_H

#include "console.h"

/* The matrix of lines of text, float32 [rows, columns]. A line is a row, or if it was `typed` several with semicolons or
 * newlines between them. Numbers are separated by blanks, tabs or commas; # begins a comment. Rows without a number are
 * left out. Refused, naming the row and the text: what is not a number, an empty field, rows of different lengths, and a
 * text without a number. */
at_array *matrix_parse(const at_line *lines, int64_t count, bool typed, at_error *error);

/* The array as text, the rows of its last two dimensions as lines, an empty line between matrices. Every number has as
 * many digits as it needs to be read back as the same float. */
void matrix_print(FILE *stream, const at_array *array, char separator);

#endif
