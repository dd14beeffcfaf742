/* The heat map as text: a table of numbers on their shades. In a terminal that is too narrow for it the column names are
 * cut to the numbers, then the numbers are left out and the names are written downwards, then the columns are shown in
 * several parts. */
#include "base/error.h"
#include "draw/label_internal.h"
#include "draw/picture_internal.h"
#include "draw/shade_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMN = 12, MOST_ROW = 20, SHADE = 2 };

/* The output of two passes: the first measures, the second draws. */
typedef struct form {
    const at_heatmap *map;
    at_buffer text;
    at_scale scale;
    at_ink ink;
    int most_row;     /* columns for the row names: at most, and */
    int row_width;    /* as many as they need */
    int figure_width; /* of the longest number */
    bool figures;     /* false: shades only, under names that are written downwards */
    int margin;       /* blanks of a cell */
    int *width;       /* [columns] */
    size_t line;      /* offset of the current line in the text */
} form;

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

/* ---- Measuring ------------------------------------------------------------------------------------------------ */

static void measure_column(void *context, int64_t column, const char *name)
{
    form *f = context;
    f->width[column] = at_label_width(name, MOST_COLUMN);
}

static void measure_row(void *context, int64_t row, const char *name)
{
    (void)row;
    form *f = context;
    int width = at_label_width(name, f->most_row);
    if (width > f->row_width)
        f->row_width = width;
}

static void measure_cell(void *context, int64_t row, int64_t column, float value, float shade)
{
    (void)row, (void)column, (void)shade;
    form *f = context;
    char out[AT_FIGURE];
    int width = at_picture_figure(value, out);
    if (width > f->figure_width)
        f->figure_width = width;
}

/* The width of a cell without its margin. */
static int content_width(const form *f)
{
    return !f->figures ? SHADE : f->figure_width + (f->ink == AT_INK_NONE ? SHADE + 1 : 0);
}

/* How many columns from `from` on fit beside the row names, one at least. */
static int64_t fitting(const form *f, int64_t from)
{
    int64_t used = f->row_width + 1, to = from;
    for (; to < f->map->columns; to++) {
        used += f->width[to];
        if (to > from && f->map->width > 0 && used > f->map->width)
            break;
    }
    return to - from;
}

static bool fits(const form *f)
{
    int64_t used = f->row_width + 1;
    for (int64_t j = 0; j < f->map->columns; j++)
        used += f->width[j];
    return f->map->width <= 0 || used <= f->map->width;
}

static void set_widths(form *f, bool figures, int margin)
{
    f->figures = figures;
    f->margin = margin;
    for (int64_t j = 0; j < f->map->columns; j++)
        f->width[j] = content_width(f) + margin;
}

static void lay_out(form *f)
{
    static const at_pen measuring = {measure_column, measure_row, measure_cell, NULL};
    const int share = f->map->width / 3; /* of the line for the row names */
    f->most_row = f->map->width > 0 && share < MOST_ROW ? (share > 1 ? share : 1) : MOST_ROW;
    f->figures = true;
    f->margin = 2;
    at_picture_walk(f->map, f->scale, 0, f->map->columns, &measuring, f);
    for (int64_t j = 0; j < f->map->columns; j++) /* the wider of name and cell, with a blank on either side */
        f->width[j] = (f->width[j] > content_width(f) ? f->width[j] : content_width(f)) + f->margin;
    if (!fits(f))
        set_widths(f, true, 1);
    if (!fits(f))
        set_widths(f, false, 0);
}

/* ---- Drawing -------------------------------------------------------------------------------------------------- */

/* Names are centred in their column, like the numbers. */
static void draw_name(form *f, int64_t column, const char *name)
{
    const int most = f->width[column] - f->margin < MOST_COLUMN ? f->width[column] - f->margin : MOST_COLUMN;
    int before = (f->width[column] - at_label_width(name, most) + 1) / 2;
    blanks(f, before);
    int used = at_label_add(&f->text, name, most);
    blanks(f, f->width[column] - before - used);
}

/* The names of the columns [from, to), in a line or downwards. */
static void draw_header(form *f, int64_t from, int64_t to)
{
    char number[AT_NUMBER];
    int height = 1;
    for (int64_t j = from; !f->figures && j < to; j++) {
        const int letters = at_label_letters(at_picture_name(f->map->column_names, j, number), MOST_COLUMN);
        height = letters > height ? letters : height;
    }
    for (int line = 0; line < height; line++) {
        blanks(f, f->row_width + 1);
        for (int64_t j = from; j < to; j++) {
            const char *name = at_picture_name(f->map->column_names, j, number);
            if (f->figures) {
                draw_name(f, j, name);
                continue;
            }
            const int letter = line - (height - at_label_letters(name, MOST_COLUMN)); /* they end at the map */
            blanks(f, SHADE - (letter < 0 ? 0 : at_label_add_letter(&f->text, name, letter, MOST_COLUMN)));
        }
        end_line(f);
    }
}

static void draw_row(void *context, int64_t row, const char *name)
{
    (void)row;
    form *f = context;
    blanks(f, f->row_width - at_label_width(name, f->most_row));
    at_label_add(&f->text, name, f->most_row);
    blanks(f, 1);
}

static void draw_cell(void *context, int64_t row, int64_t column, float value, float shade)
{
    (void)row;
    form *f = context;
    char out[AT_FIGURE];
    at_picture_figure(value, out);
    int before = (f->width[column] - content_width(f) + 1) / 2;
    if (f->ink != AT_INK_NONE)
        at_shade_behind(&f->text, f->ink, shade);
    blanks(f, before);
    if (f->ink == AT_INK_NONE)
        at_buffer_print(&f->text, "%s%s%s", at_shade_block(shade), at_shade_block(shade), f->figures ? " " : "");
    if (f->figures)
        at_buffer_print(&f->text, "%*s", f->figure_width, out);
    else if (f->ink != AT_INK_NONE)
        blanks(f, SHADE);
    blanks(f, f->width[column] - before - content_width(f));
}

static void end_row(void *context, int64_t row)
{
    (void)row;
    form *f = context;
    at_shade_end(&f->text, f->ink);
    end_line(f);
}

char *at_heatmap_text(const at_heatmap *map, at_error *error)
{
    if (!at_picture_check(map, error))
        return NULL;
    static const at_pen drawing = {NULL, draw_row, draw_cell, end_row};
    form f = {.map = map,
              .scale = at_picture_scale(map),
              .ink = at_ink_of(map),
              .width = calloc((size_t)map->columns + 1, sizeof *f.width)};
    if (f.width) {
        lay_out(&f);
        int64_t from = 0, to;
        do {
            to = from + fitting(&f, from);
            if (from > 0)
                end_line(&f);
            draw_header(&f, from, to);
            at_picture_walk(map, f.scale, from, to, &drawing, &f);
            from = to;
        } while (from < map->columns);
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
