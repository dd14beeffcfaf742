/* Arrays as the command's options name them. */
#ifndef ARRAYS_H
#define ARRAYS_H

#include "console.h"

/* The array of an option as float32: "q.npy", or "model.safetensors:NAME". An error message begins with the option;
 * release with at_array_free. */
at_array *array_read(const char *option, const char *argument, at_error *error);

/* "[2,5,12]"; returns `out`. */
enum { SHAPE_TEXT = 200 };
char *array_shape(const at_array *array, char out[SHAPE_TEXT]);

#endif
