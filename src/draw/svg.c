/* Heat maps as SVG: one large map with names and numbers, or several small ones in a grid. Lengths are whole pixels, so
 * that the bytes are the same everywhere. */
#include "attend_unstable.h"
#include "base/error.h"
#include "draw/label_internal.h"
#include "draw/picture_internal.h"
#include "draw/svg_internal.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MARGIN = 14,
    FONT = 13,       /* of names, at most */
    SMALL_FONT = 11, /* of numbers and of the legend */
    WIDE = 1000,     /* about how wide a drawing becomes */
    MOST_NAME = 28,  /* columns of a name */
    MOST_TITLE = 120,
    MOST_FIGURES = 24, /* rows or columns of a map with numbers */
    FIGURE_WIDTH = 40,
    FIGURE_HEIGHT = 26,
    WIDEST_CELL = 84,
    GAP = 22,     /* between maps */
    HEADING = 20, /* the height of a title */
    BAR = 44,     /* the length of the longest bar of sums */
    SCALE = 160,  /* the length of the legend's scale */
    SCALE_PARTS = 20
};

/* How column names are written. */
typedef enum turn { LEVEL, SLANTED, UPRIGHT } turn;

typedef struct form {
    const at_drawing *drawing;
    const at_heatmap *map; /* the one that is drawn */
    at_buffer text;
    at_scale scale;
    int across, down;            /* maps */
    int cell_width, cell_height; /* in pixels, like all that follows */
    bool figures, names;
    turn turned;
    int font, every; /* of names: every how many rows and columns one is written */
    int left, top;   /* of the first map */
    int map_width, map_height;
    int step_x, step_y; /* from map to map */
    int beyond;         /* to the right of the maps: sums, and names that lean over */
    int x, y;           /* of the map that is drawn */
    int64_t run;        /* column where the cells of the current shade begin */
    int run_level;      /* their shade; -1: none */
    float most_sum[2];  /* of rows and of columns */
} form;

/* ---- Measuring ------------------------------------------------------------------------------------------------ */

/* The pixels that a name takes at most, with the usual fonts. */
static int name_pixels(const char *name, int font)
{
    return (at_label_width(name, MOST_NAME) * font * 62 + 99) / 100;
}

static int widest(const char *const *names, int64_t count, int font)
{
    char number[AT_NUMBER];
    int most = 0;
    for (int64_t i = 0; i < count; i++) {
        const int width = name_pixels(at_picture_name(names, i, number), font);
        most = width > most ? width : most;
    }
    return most;
}

static int least(int64_t a, int64_t b)
{
    return (int)(a < b ? a : b);
}

static int most_of(int64_t a, int64_t b)
{
    return (int)(a > b ? a : b);
}

/* The width of a cell that holds its number. */
static int figure_width(const at_heatmap *map)
{
    char number[AT_FIGURE];
    int letters = 4;
    for (int64_t i = 0; i < map->rows * map->columns; i++)
        letters = most_of(at_picture_figure(map->values[i], number), letters);
    return FIGURE_WIDTH + (letters - 4) * 7;
}

/* The size of the cells of a single map, and whether they have numbers. */
static void size_cells(form *f)
{
    const at_heatmap *map = f->map;
    f->figures = map->rows <= MOST_FIGURES && map->columns <= MOST_FIGURES;
    if (f->figures) {
        const int name = widest(map->column_names, map->columns, FONT) + 10;
        f->cell_width = figure_width(map);
        f->cell_height = FIGURE_HEIGHT;
        if (name <= WIDEST_CELL && name * map->columns <= WIDE)
            f->cell_width = most_of(name, f->cell_width);
        f->turned = name <= f->cell_width ? LEVEL : SLANTED;
        return;
    }
    const int64_t longer = map->rows > map->columns ? map->rows : map->columns;
    f->cell_width = f->cell_height = most_of(least(WIDE / longer, 18), 2);
    f->turned = f->cell_width >= 16 ? SLANTED : UPRIGHT;
}

/* The size of the cells of several maps, and how many stand beside each other. */
static void size_small_cells(form *f)
{
    const at_drawing *d = f->drawing;
    const int64_t columns = most_of(f->map->columns, 1);
    f->across = d->across > 0 ? d->across : most_of(least(d->count, WIDE / (10 * columns + GAP)), 1);
    f->across = least(f->across, d->count);
    const int64_t width = (WIDE - (int64_t)f->across * GAP) / f->across;
    f->cell_width = f->cell_height = most_of(least(width / columns, 14), 2);
    f->turned = UPRIGHT;
}

static void lay_out(form *f)
{
    const at_drawing *d = f->drawing;
    const at_heatmap *map = f->map;
    f->across = 1;
    if (d->count > 1)
        size_small_cells(f);
    else
        size_cells(f);
    f->down = (d->count + f->across - 1) / f->across;
    f->names = d->count == 1 || f->cell_height >= 8;
    f->font = most_of(least(FONT, f->cell_height), 7);
    f->every = (f->font + f->cell_height - 1) / f->cell_height;
    f->map_width = (int)map->columns * f->cell_width;
    f->map_height = (int)map->rows * f->cell_height;
    const int row = f->names ? widest(map->row_names, map->rows, f->font) + 8 : 0;
    const int column = f->names ? widest(map->column_names, map->columns, f->font) : 0;
    const int slant = (column * 71 + 99) / 100; /* sin 45° */
    f->left = MARGIN + row;
    f->top = MARGIN + (d->title ? HEADING + 6 : 0) + (d->titles ? HEADING : 0);
    f->top += !f->names              ? 0
              : f->turned == LEVEL   ? f->font + 8
              : f->turned == SLANTED ? slant + f->font + 4
                                     : column + 8;
    f->step_x = f->map_width + GAP;
    f->step_y = f->map_height + GAP + (d->titles ? HEADING : 0);
    f->beyond = d->sums && d->count == 1 ? BAR + 48 : 0;
    for (int64_t j = 0; f->names && f->turned == SLANTED && j < map->columns; j++) {
        char number[AT_NUMBER];
        const int over = name_pixels(at_picture_name(map->column_names, j, number), f->font) * 71 / 100 + f->font / 2 -
                         (int)(map->columns - j) * f->cell_width + f->cell_width / 2;
        f->beyond = over > f->beyond ? over : f->beyond;
    }
}

/* The whole drawing must have a size that a viewer can count. */
static bool check_size(const at_drawing *d, at_error *error)
{
    const at_heatmap *map = d->maps;
    const double cells =
        (double)(d->count > 1 ? d->count : 1) * (double)most_of(map->rows, 1) * (double)most_of(map->columns, 1);
    if (map->rows > 10000 || map->columns > 10000 || cells > 4e6)
        return at_fail(error, AT_UNSUPPORTED,
                       "a drawing of %d map%s of %lld rows and %lld columns is too large: 4 million cells and 10000 "
                       "rows or columns are the limit",
                       d->count, d->count == 1 ? "" : "s", (long long)map->rows, (long long)map->columns);
    return true;
}

/* ---- Parts ---------------------------------------------------------------------------------------------------- */

static void put_text(form *f, const char *class, int x, int y, const char *anchor, int font, const char *name, int most)
{
    at_buffer_print(&f->text, "<text%s%s%s x=\"%d\" y=\"%d\"", *class ? " class=\"" : "", class, *class ? "\"" : "", x,
                    y);
    if (*anchor)
        at_buffer_print(&f->text, " text-anchor=\"%s\"", anchor);
    at_buffer_print(&f->text, " font-size=\"%d\">", font);
    at_label_add_markup(&f->text, name, most);
    at_buffer_print(&f->text, "</text>\n");
}

static void put_turned(form *f, int x, int y, int degrees, const char *name)
{
    at_buffer_print(&f->text, "<text transform=\"translate(%d %d) rotate(%d)\" font-size=\"%d\">", x, y, -degrees,
                    f->font);
    at_label_add_markup(&f->text, name, MOST_NAME);
    at_buffer_print(&f->text, "</text>\n");
}

static void put_rect(form *f, const char *class, int x, int y, int width, int height)
{
    at_buffer_print(&f->text, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", class, x, y, width,
                    height);
}

static void draw_column(void *context, int64_t column, const char *name)
{
    form *f = context;
    if (!f->names || f->y != f->top || column % f->every)
        return;
    const int left = f->x + (int)column * f->cell_width, middle = left + f->cell_width / 2;
    const int y = f->y - (f->drawing->titles ? HEADING : 0);
    if (f->turned == LEVEL)
        put_text(f, "", middle, y - 7, "middle", f->font, name, MOST_NAME);
    else if (f->turned == SLANTED)
        put_turned(f, middle + 2, y - 5, 45, name);
    else
        put_turned(f, middle + f->font * 36 / 100, y - 5, 90, name);
}

static void draw_row(void *context, int64_t row, const char *name)
{
    form *f = context;
    f->run_level = -1;
    if (!f->names || f->x != f->left || row % f->every)
        return;
    const int middle = f->y + (int)row * f->cell_height + f->cell_height / 2;
    put_text(f, "", f->x - 7, middle + f->font * 36 / 100, "end", f->font, name, MOST_NAME);
}

/* Cells that are large enough have a line between them. */
static int line_width(const form *f)
{
    return f->cell_width >= 12;
}

/* Cells of one shade beside each other are one rectangle; those of the lowest are the ground of the map. */
static void end_run(form *f, int64_t row, int64_t column)
{
    char class[8] = "nan";
    if (f->run_level > 0 && f->run_level <= AT_SVG_LEVELS)
        snprintf(class, sizeof class, "s%d", f->run_level);
    if (f->run_level > 0)
        put_rect(f, class, f->x + (int)f->run * f->cell_width, f->y + (int)row * f->cell_height,
                 (int)(column - f->run) * f->cell_width - line_width(f), f->cell_height - line_width(f));
}

static int level_of(float shade)
{
    return isnan(shade) ? AT_SVG_LEVELS + 1 : (int)lrintf(shade * AT_SVG_LEVELS);
}

static bool is_share(const form *f)
{
    return f->scale.low >= 0 && f->scale.high <= 1;
}

static void draw_cell(void *context, int64_t row, int64_t column, float value, float shade)
{
    form *f = context;
    const int level = level_of(shade);
    if (level != f->run_level || line_width(f)) {
        end_run(f, row, column);
        f->run = column;
        f->run_level = level;
    }
    char number[AT_FIGURE];
    if (!f->figures || (is_share(f) && value < 0.005f))
        return;
    end_run(f, row, column + 1);
    f->run_level = -1;
    at_picture_figure(value, number);
    put_text(f,
             isnan(shade)    ? "lo"
             : shade > 0.62f ? "hi"
                             : "lo",
             f->x + (int)column * f->cell_width + (f->cell_width - 1) / 2,
             f->y + (int)row * f->cell_height + f->cell_height / 2 + 4, "middle", SMALL_FONT, number, AT_FIGURE);
}

static void end_row(void *context, int64_t row)
{
    form *f = context;
    end_run(f, row, f->map->columns);
}

/* Lines of the ground's colour between the cells. */
static void draw_lines(form *f)
{
    if (!line_width(f))
        return;
    at_buffer_print(&f->text, "<path class=\"lines\" transform=\"translate(.5 .5)\" d=\"");
    for (int64_t j = 1; j < f->map->columns; j++)
        at_buffer_print(&f->text, "M%d %dv%d", f->x + (int)j * f->cell_width - 1, f->y, f->map_height - 1);
    for (int64_t i = 1; i < f->map->rows; i++)
        at_buffer_print(&f->text, "M%d %dh%d", f->x, f->y + (int)i * f->cell_height - 1, f->map_width - 1);
    at_buffer_print(&f->text, "\"/>\n");
}

static void draw_map(form *f, int index)
{
    static const at_pen pen = {draw_column, draw_row, draw_cell, end_row};
    const at_drawing *d = f->drawing;
    f->x = f->left + index % f->across * f->step_x;
    f->y = f->top + index / f->across * f->step_y;
    f->map = &d->maps[index];
    if (d->titles)
        put_text(f, "muted", f->x, f->y - 6, "", SMALL_FONT + 1, d->titles[index], MOST_NAME);
    put_rect(f, "s0", f->x, f->y, f->map_width - line_width(f), f->map_height - line_width(f));
    draw_lines(f);
    at_heatmap named = *f->map;
    named.row_names = d->maps->row_names;
    named.column_names = d->maps->column_names;
    at_picture_walk(&named, f->scale, 0, named.columns, &pen, f);
    for (int64_t i = 0; i < d->link_count; i++)
        at_buffer_print(&f->text, "<rect class=\"gold\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"%s/>\n",
                        f->x + (int)d->links[i].column * f->cell_width, f->y + (int)d->links[i].row * f->cell_height,
                        f->cell_width - line_width(f), f->cell_height - line_width(f),
                        d->links[i].possible ? " stroke-dasharray=\"4 3\"" : "");
}

/* ---- Sums ----------------------------------------------------------------------------------------------------- */

static float sum_of(const at_heatmap *map, bool of_row, int64_t index)
{
    double sum = 0;
    for (int64_t i = 0; i < (of_row ? map->columns : map->rows); i++)
        sum += (double)map->values[of_row ? index * map->columns + i : i * map->columns + index];
    return (float)sum;
}

static void draw_sums(form *f, bool of_rows)
{
    const at_heatmap *map = f->drawing->maps;
    const int64_t count = of_rows ? map->rows : map->columns;
    const int step = of_rows ? f->cell_height : f->cell_width, thick = step > 4 ? step * 6 / 10 : most_of(step - 1, 1);
    const int x = f->left + f->map_width + 8, y = f->top + f->map_height + 8;
    float most = 0;
    for (int64_t i = 0; i < count; i++)
        most = fmaxf(most, fabsf(sum_of(map, of_rows, i)));
    for (int64_t i = 0; i < count; i++) {
        const float sum = sum_of(map, of_rows, i);
        const int length = most > 0 && isfinite(most) && isfinite(sum) ? (int)lrintf(fabsf(sum) / most * BAR) : 0;
        const int at = (of_rows ? f->top : f->left) + (int)i * step + (step - thick) / 2;
        char number[AT_FIGURE];
        if (length > 0)
            put_rect(f, "bar", of_rows ? x : at, of_rows ? at : y, of_rows ? length : thick, of_rows ? thick : length);
        if (!f->figures)
            continue;
        at_picture_figure(sum, number);
        put_text(f, "muted", of_rows ? x + length + 5 : at + thick / 2, of_rows ? at + thick / 2 + 4 : y + length + 13,
                 of_rows ? "" : "middle", SMALL_FONT, number, AT_FIGURE);
    }
}

/* ---- The whole ------------------------------------------------------------------------------------------------ */

/* The scale, what rows and columns are, and what an outline means. Returns where it ends. */
static int draw_legend(form *f, int y)
{
    const at_drawing *d = f->drawing;
    char number[48];
    int x = MARGIN;
    for (int i = 0; i < SCALE_PARTS; i++) {
        char class[8];
        snprintf(class, sizeof class, "s%d", (2 * i + 1) * AT_SVG_LEVELS / (2 * SCALE_PARTS));
        put_rect(f, class, x + i * SCALE / SCALE_PARTS, y, SCALE / SCALE_PARTS, 10);
    }
    at_buffer_print(&f->text, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"10\"/>\n", x, y, SCALE);
    snprintf(number, sizeof number, "%.4g", f->scale.low);
    put_text(f, "muted", x, y + 24, "", SMALL_FONT, number, 40);
    snprintf(number, sizeof number, "%.4g", f->scale.high);
    put_text(f, "muted", x + SCALE, y + 24, "end", SMALL_FONT, number, 40);
    int end = x + SCALE;
    x += SCALE + 18;
    if (d->row_title && d->column_title) {
        char what[200];
        snprintf(what, sizeof what, "rows: %s · columns: %s", d->row_title, d->column_title);
        put_text(f, "muted", x, y + 9, "", SMALL_FONT, what, MOST_TITLE);
        end = x + name_pixels(what, SMALL_FONT) + at_label_width(what, MOST_TITLE) * 3;
    }
    if (d->link_count > 0) {
        at_buffer_print(&f->text, "<rect class=\"gold\" x=\"%d\" y=\"%d\" width=\"14\" height=\"10\"/>\n", x, y + 15);
        put_text(f, "muted", x + 20, y + 24, "", SMALL_FONT, "gold links", MOST_TITLE);
        end = most_of(end, x + 90);
    }
    return end;
}

static void draw(form *f)
{
    const at_drawing *d = f->drawing;
    const bool sums = d->sums && d->count == 1;
    const int bottom = f->top + (f->down - 1) * f->step_y + f->map_height + (sums ? BAR + 26 : 0) + 18;
    int width = f->left + (f->across - 1) * f->step_x + f->map_width + f->beyond + MARGIN;
    form legend = *f;
    legend.text = (at_buffer){0};
    const int end = draw_legend(&legend, bottom) + MARGIN;
    width = most_of(width, end);
    if (d->title)
        width = most_of(width, (at_label_width(d->title, MOST_TITLE) * (FONT + 1) * 62) / 100 + 2 * MARGIN);
    at_svg_begin(&f->text, width, bottom + 26 + MARGIN, d->title ? d->title : "attention weights", d->theme);
    if (d->title)
        put_text(f, "title", MARGIN, MARGIN + FONT, "", FONT + 1, d->title, MOST_TITLE);
    for (int i = 0; i < d->count; i++)
        draw_map(f, i);
    if (sums && f->map->rows > 0 && f->map->columns > 0) {
        draw_sums(f, true);
        draw_sums(f, false);
    }
    if (legend.text.failed)
        f->text.failed = true;
    else
        at_buffer_add(&f->text, legend.text.bytes, legend.text.size);
    at_buffer_free(&legend.text);
    at_buffer_print(&f->text, "</svg>\n");
}

static bool check(const at_drawing *d, at_error *error)
{
    if (d->count < 1)
        return at_fail(error, AT_USAGE, "a drawing needs a map");
    for (int i = 0; i < d->count; i++) {
        if (!at_picture_check(&d->maps[i], error))
            return false;
        if (d->maps[i].rows != d->maps->rows || d->maps[i].columns != d->maps->columns)
            return at_fail(error, AT_SHAPE, "the maps of a drawing must be of one size");
    }
    for (int64_t i = 0; i < d->link_count; i++) {
        const at_drawing_link *link = &d->links[i];
        if (link->row < 0 || link->column < 0 || link->row >= d->maps->rows || link->column >= d->maps->columns)
            return at_fail(
                error, AT_SHAPE,
                "there is no row %lld and column %lld for a link: the map has %lld rows and %lld columns, from 0",
                (long long)link->row, (long long)link->column, (long long)d->maps->rows, (long long)d->maps->columns);
    }
    return check_size(d, error);
}

char *at_drawing_svg(const at_drawing *drawing, at_error *error)
{
    if (error->code != AT_OK || !check(drawing, error))
        return NULL;
    form f = {
        .drawing = drawing, .map = drawing->maps, .scale = at_picture_scale_of_all(drawing->maps, drawing->count)};
    if (drawing->picture && !at_frames_svg(drawing, &f.text, error))
        return NULL;
    if (!drawing->picture) {
        lay_out(&f);
        draw(&f);
    }
    if (f.text.failed) {
        at_no_memory(error, "a drawing of %d map%s", drawing->count, drawing->count == 1 ? "" : "s");
        at_buffer_free(&f.text);
    }
    return f.text.bytes;
}
