/* Attention over a picture: the picture itself, then for each row of the map a frame in which the cells are as clear as
 * their weights. */
#include "base/error.h"
#include "draw/label_internal.h"
#include "draw/picture_internal.h"
#include "draw/png_internal.h"
#include "draw/svg_internal.h"

#include <math.h>
#include <stdio.h>

enum {
    MARGIN = 14,
    SIDE = 150, /* of a frame, the longer one */
    GAP = 16,
    BELOW = 42, /* the word and its number */
    ACROSS = 6,
    MOST_WORD = 18,
    VEIL = 82 /* percent of grey, which hides dark and bright pictures alike, over a cell without weight */
};

typedef struct frames {
    const at_drawing *drawing;
    at_buffer text;
    int width, height; /* of a frame */
    int top;
    int x, y; /* of the frame that is drawn */
    int count;
    float most; /* the largest weight of the row */
} frames;

static void put_text(frames *f, const char *class, int x, int y, int font, const char *text, int most)
{
    at_buffer_print(&f->text, "<text class=\"%s\" x=\"%d\" y=\"%d\" font-size=\"%d\">", class, x, y, font);
    at_label_add_markup(&f->text, text, most);
    at_buffer_print(&f->text, "</text>\n");
}

/* The frame `index`, with its word and a number. */
static void begin_frame(frames *f, int64_t index, const char *word, const char *number)
{
    f->x = MARGIN + (int)(index % ACROSS) * (SIDE + GAP);
    f->y = f->top + (int)(index / ACROSS) * (f->height + BELOW);
    at_buffer_print(&f->text, "<use href=\"#picture\" x=\"%d\" y=\"%d\"/>\n", f->x, f->y);
    put_text(f, "word", f->x, f->y + f->height + 16, 13, word, MOST_WORD);
    put_text(f, "muted", f->x, f->y + f->height + 31, 11, number, AT_FIGURE);
}

static void draw_row(void *context, int64_t row, const char *name)
{
    frames *f = context;
    const at_heatmap *map = f->drawing->maps;
    char number[AT_FIGURE];
    f->most = 0;
    for (int64_t j = 0; j < map->columns; j++)
        f->most = fmaxf(f->most, map->values[row * map->columns + j]);
    at_picture_figure(f->most, number);
    begin_frame(f, row + 1, name, number);
}

static void draw_cell(void *context, int64_t row, int64_t column, float value, float shade)
{
    (void)row, (void)shade;
    frames *f = context;
    const at_drawing *d = f->drawing;
    const int64_t down = column / d->grid_columns, across = column % d->grid_columns;
    const int left = (int)(across * f->width / d->grid_columns),
              right = (int)((across + 1) * f->width / d->grid_columns);
    const int top = (int)(down * f->height / d->grid_rows), bottom = (int)((down + 1) * f->height / d->grid_rows);
    const float share = f->most > 0 && value > 0 ? value / f->most : 0;
    const int veil = (int)lrintf(VEIL * (1 - share));
    if (veil > 0)
        at_buffer_print(
            &f->text, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#7f858c\" fill-opacity=\".%02d\"/>\n",
            f->x + left, f->y + top, right - left, bottom - top, veil);
}

static bool check(const at_drawing *d, at_error *error)
{
    const at_array *p = d->picture;
    if (p->dtype != AT_U8 || p->rank != 3 || p->dim[0] < 1 || p->dim[1] < 1 || (p->dim[2] != 1 && p->dim[2] != 3))
        return at_fail(error, AT_SHAPE, "a picture to draw on must be uint8 [height,width,1] or [height,width,3]");
    if (d->count != 1 || d->grid_rows < 1 || d->grid_columns < 1 || d->grid_rows * d->grid_columns != d->maps->columns)
        return at_fail(error, AT_SHAPE, "a map of %lld columns is not one of %lld rows of %lld cells of a picture",
                       (long long)d->maps->columns, (long long)d->grid_rows, (long long)d->grid_columns);
    return true;
}

bool at_frames_svg(const at_drawing *d, at_buffer *text, at_error *error)
{
    static const at_pen pen = {NULL, draw_row, draw_cell, NULL};
    if (!check(d, error))
        return false;
    const int64_t tall = d->picture->dim[0], wide = d->picture->dim[1], longer = tall > wide ? tall : wide;
    frames f = {.drawing = d, .top = MARGIN + (d->title ? 26 : 0), .count = (int)d->maps->rows + 1};
    f.width = (int)(wide * SIDE / longer > 0 ? wide * SIDE / longer : 1);
    f.height = (int)(tall * SIDE / longer > 0 ? tall * SIDE / longer : 1);
    const int columns = f.count < ACROSS ? f.count : ACROSS, rows = (f.count + ACROSS - 1) / ACROSS;
    const int bottom = f.top + rows * (f.height + BELOW);
    int width = 2 * MARGIN + columns * (SIDE + GAP) - GAP;
    width = width < 480 ? 480 : width; /* for the line below */
    at_svg_begin(&f.text, width, bottom + 18 + MARGIN, d->title ? d->title : "attention over a picture", d->theme);
    at_buffer_print(&f.text,
                    "<defs><image id=\"picture\" width=\"%d\" height=\"%d\" preserveAspectRatio=\"none\"%s href=\"",
                    f.width, f.height, longer < SIDE ? " style=\"image-rendering:pixelated\"" : "");
    at_png_address(&f.text, d->picture->data, tall, wide, (int)d->picture->dim[2]);
    at_buffer_print(&f.text, "\"/></defs>\n");
    if (d->title)
        put_text(&f, "title", MARGIN, MARGIN + 13, 14, d->title, 120);
    begin_frame(&f, 0, "the picture", "");
    at_picture_walk(d->maps, (at_scale){0, 1}, 0, d->maps->columns, &pen, &f);
    put_text(&f, "muted", MARGIN, bottom + 12, 11,
             "clear: the weight of a cell, relative to the word's largest, which stands below the word", 200);
    at_buffer_print(&f.text, "</svg>\n");
    *text = f.text;
    return true;
}
