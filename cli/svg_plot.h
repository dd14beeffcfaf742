/* Line plots as SVG, without scripts, in the colours of the page they stand in. */
#ifndef SVG_PLOT_H
#define SVG_PLOT_H

#include <stdbool.h>
#include <stdio.h>

typedef struct svg_point {
    double x, y;
    double error; /* the half length of an error bar; 0 or NAN: none */
} svg_point;

typedef struct svg_line {
    const char *name; /* in the legend; NULL: not listed, as a second line of the same colour */
    int style;        /* from 0: colour and dashes */
    const svg_point *point;
    int count;
} svg_line;

typedef struct svg_plot {
    const char *x_title, *y_title;
    const char *const *x_names; /* [x_count] x is an index of these names; NULL: x is a number from 0 on */
    int x_count;
    bool percent; /* the y axis includes 0, and no error bar of a value from 0 to 100 leaves that range */
    bool dots;    /* every point is marked */
    const svg_line *line;
    int lines;
    bool is_part; /* of a larger drawing: a group that begins at `top`, instead of an element of its own */
    int top;
} svg_plot;

/* The colours, light and dark, as CSS: once in the page, or in a <style> of the file. */
extern const char svg_style[];
/* The plot as an element <svg>, as wide as its place. */
void svg_plot_write(FILE *stream, const svg_plot *plot);
/* Its size in the units of the drawing. */
enum { SVG_PLOT_WIDTH = 836 };
int svg_plot_height(const svg_plot *plot);

/* A file of its own: before its plots, which are parts of it and take `height` together, and after them. */
void svg_file_begin(FILE *stream, int height);
void svg_file_end(FILE *stream);

/* Text in which the characters of markup are escaped, and control characters and bytes that are not UTF-8 replaced. */
void markup_text(FILE *stream, const char *text);

#endif
