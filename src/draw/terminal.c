/* The heat map as text: a table of numbers on their shades. */
#include "base/buffer.h"
#include "base/error.h"
#include "draw/label_internal.h"
#include "draw/picture_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMN = 12, MOST_ROW = 20, FIGURE = 32 };

/* The output of two passes: the first measures, the second draws. */
typedef struct form {
    at_buffer text;
    bool colour;
    int row_width;    /* columns for the row names */
    int figure_width; /* of the longest number */
    int *width;       /* [columns] */
    size_t line;      /* offset of the current line in the text */
} form;

/* 0.97, 11.00, nan; very large numbers with an exponent, so that they stay short. */
static int figure(float value, char out[FIGURE])
{
    if (isnan(value))
        return snprintf(out, FIGURE, "nan"); /* without its sign */
    if (fabsf(value) < 0.005f)
        return snprintf(out, FIGURE, "0.00"); /* nor with that of a zero */
    return snprintf(out, FIGURE, isfinite(value) && fabsf(value) >= 99999.5f ? "%.1e" : "%.2f", (double)value);
}

static void blanks(form *f, int count)
{
    if (count > 0)
        at_buffer_print(&f->text, "%*s", count, "");
}

static void end_line(form *f)
{
    while (f->text.size > f->line && f->text.bytes[f->text.size - 1] == ' ')
        f->text.bytes[--f->text.size] = '\0';
    at_buffer_add(&f->text, "\n", 1);
    f->line = f->text.size;
}

static void measure_column(void *context, int64_t column, const char *name)
{
    form *f = context;
    f->width[column] = at_label_width(name, MOST_COLUMN);
}

static void measure_row(void *context, int64_t row, const char *name)
{
    (void)row;
    form *f = context;
    int width = at_label_width(name, MOST_ROW);
    if (width > f->row_width)
        f->row_width = width;
}

static void measure_cell(void *context, int64_t row, int64_t column, float value, float shade)
{
    (void)row, (void)column, (void)shade;
    form *f = context;
    char out[FIGURE];
    int width = figure(value, out);
    if (width > f->figure_width)
        f->figure_width = width;
}

/* Names are centred in their column, like the numbers. */
static void draw_column(void *context, int64_t column, const char *name)
{
    form *f = context;
    if (column == 0)
        blanks(f, f->row_width + 1);
    int before = (f->width[column] - at_label_width(name, MOST_COLUMN) + 1) / 2;
    blanks(f, before);
    int used = at_label_add(&f->text, name, MOST_COLUMN);
    blanks(f, f->width[column] - before - used);
}

static void draw_row(void *context, int64_t row, const char *name)
{
    form *f = context;
    if (row == 0)
        end_line(f);
    blanks(f, f->row_width - at_label_width(name, MOST_ROW));
    at_label_add(&f->text, name, MOST_ROW);
    blanks(f, 1);
}

/* A colour map from dark blue over green to yellow. Its brightness rises monotonically, so that the map can be read
 * without seeing colours too. */
static void colour_of(float shade, int rgb[3])
{
    static const unsigned char ramp[][3] = {{26, 24, 48},   {52, 52, 116},  {44, 98, 146},
                                            {36, 148, 142}, {122, 196, 96}, {250, 226, 80}};
    enum { STEPS = sizeof ramp / sizeof *ramp - 1 };
    float position = shade * STEPS;
    int step = position >= STEPS ? STEPS - 1 : (int)position;
    float part = position - (float)step;
    for (int c = 0; c < 3; c++)
        rgb[c] = (int)lrintf((1 - part) * ramp[step][c] + part * ramp[step + 1][c]);
}

static void paint(form *f, float shade)
{
    int rgb[3] = {96, 96, 96}; /* a NaN is grey */
    if (!isnan(shade))
        colour_of(shade, rgb);
    /* Luma (ITU-R BT.601): black text on the brighter half. */
    bool bright = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] > 128;
    at_buffer_print(&f->text, "\x1b[48;2;%d;%d;%dm\x1b[38;2;%sm", rgb[0], rgb[1], rgb[2],
                    bright ? "0;0;0" : "240;240;240");
}

static const char *block_of(float shade)
{
    static const char *const blocks[] = {" ", "░", "▒", "▓", "█"};
    if (isnan(shade))
        return "?";
    return blocks[lrintf(shade * 4)];
}

static void draw_cell(void *context, int64_t row, int64_t column, float value, float shade)
{
    (void)row;
    form *f = context;
    char out[FIGURE];
    figure(value, out);
    int content = f->figure_width + (f->colour ? 0 : 3);
    int before = (f->width[column] - content + 1) / 2;
    if (f->colour)
        paint(f, shade);
    blanks(f, before);
    if (!f->colour)
        at_buffer_print(&f->text, "%s%s ", block_of(shade), block_of(shade));
    at_buffer_print(&f->text, "%*s", f->figure_width, out);
    blanks(f, f->width[column] - before - content);
}

static void end_row(void *context, int64_t row)
{
    (void)row;
    form *f = context;
    if (f->colour)
        at_buffer_print(&f->text, "\x1b[0m");
    end_line(f);
}

char *at_heatmap_text(const at_heatmap *map, at_error *error)
{
    if (!at_picture_check(map, error))
        return NULL;
    static const at_pen measuring = {measure_column, measure_row, measure_cell, NULL};
    static const at_pen drawing = {draw_column, draw_row, draw_cell, end_row};
    form f = {.colour = map->colour, .width = calloc((size_t)map->columns + 1, sizeof *f.width)};
    if (f.width) {
        at_picture_walk(map, &measuring, &f);
        for (int64_t j = 0; j < map->columns; j++) { /* the wider of name and cell, with a blank on either side */
            int cell = f.figure_width + (f.colour ? 0 : 3);
            f.width[j] = (f.width[j] > cell ? f.width[j] : cell) + 2;
        }
        at_picture_walk(map, &drawing, &f);
        if (map->rows == 0)
            end_line(&f);
    }
    if (!f.width || f.text.failed) {
        at_no_memory(error, "a heat map of %lld rows and %lld columns", (long long)map->rows, (long long)map->columns);
        at_buffer_free(&f.text);
    }
    free(f.width);
    return f.text.bytes;
}

void at_text_free(char *text)
{
    free(text);
}
