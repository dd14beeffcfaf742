/* Line plots in a terminal. */
#ifndef TEXT_PLOT_H
#define TEXT_PLOT_H

#include "svg_plot.h"

/* Draws the plot in `width` columns and some 14 lines: a line has a mark of its own, and a colour if `colour`. The legend
 * is not part of it. */
bool text_plot_print(FILE *stream, const svg_plot *plot, int width, bool colour);

/* The mark of a style, with its colour. */
void text_plot_mark(FILE *stream, int style, bool colour);

#endif
