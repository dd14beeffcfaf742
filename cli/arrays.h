/* Arrays as the command's options name them. */
#ifndef ARRAYS_H
#define ARRAYS_H

#include "console.h"

/* The array of an option as float32: "q.npy", "model.safetensors:NAME", a matrix as text in "q.txt", "q.csv" or "q.tsv",
 * "-" for text or .npy on the standard input, or a matrix that is typed, "1 3 2; 1 1 3". An error message begins with
 * the option; release with at_array_free. */
at_array *array_read(const char *option, const char *argument, at_error *error);

/* Whether the argument is a matrix as text. A single row of such a matrix may stand for a vector. */
bool array_is_text(const char *argument);

/* The separator of a file of text by its name: .txt, .csv, .tsv, or - for the standard output; 0 for other files. */
char text_separator(const char *path);

/* "[2,5,12]"; returns `out`. */
enum { SHAPE_TEXT = 200 };
char *array_shape(const at_array *array, char out[SHAPE_TEXT]);

#endif
