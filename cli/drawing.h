/* Drawings in files. */
#ifndef DRAWING_H
#define DRAWING_H

#include "console.h"

/* Whether the name ends as that of a drawing: .svg, .png or .pdf. */
bool is_drawing(const char *path);

/* Writes the SVG text as what the path ends in. */
bool drawing_save(const char *svg, const char *path, at_error *error);

#endif
