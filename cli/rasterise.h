/* SVG drawings as PNG and PDF files, by librsvg and cairo. */
#ifndef RASTERISE_H
#define RASTERISE_H

#include "console.h"

/* Writes the drawing to a file that ends in .png or .pdf, completely or not at all. The libraries are loaded when they are
 * first needed, in a process of their own: they end the process that runs out of memory in them. */
bool rasterise(const char *svg, size_t size, const char *path, at_error *error);

#endif
