/* Several heat maps side by side as text: small, without names or numbers, a character for each cell; with colours a
 * character for two cells over each other. */
#include "base/error.h"
#include "draw/label_internal.h"
#include "draw/picture_internal.h"
#include "draw/shade_internal.h"

#include <math.h>
#include <stdlib.h>

enum { GAP = 2, MOST_TITLE = 20 };

/* A map as it is drawn: every cell the largest of `step` x `step` cells of the map. */
typedef struct small {
    const at_heatmap *map;
    at_scale scale;
    int64_t step, rows, columns;
    int most_title; /* columns for the title */
    int width;      /* of the title or the map, the wider */
} small;

static small measure(const at_heatmap *map, const char *title)
{
    small s = {.map = map, .scale = at_picture_scale(map), .step = 1};
    if (map->width > 0 && map->columns > map->width)
        s.step = (map->columns + map->width - 1) / map->width;
    s.rows = (map->rows + s.step - 1) / s.step;
    s.columns = (map->columns + s.step - 1) / s.step;
    s.most_title = map->width > 0 && map->width < MOST_TITLE ? map->width : MOST_TITLE;
    s.width = at_label_width(title, s.most_title);
    s.width = s.columns > s.width ? (int)s.columns : s.width;
    return s;
}

static float shade_at(const small *s, int64_t row, int64_t column)
{
    const at_heatmap *map = s->map;
    float most = -INFINITY;
    for (int64_t i = row * s->step; i < (row + 1) * s->step && i < map->rows; i++)
        for (int64_t j = column * s->step; j < (column + 1) * s->step && j < map->columns; j++) {
            const float shade = at_picture_shade(s->scale, map->values[i * map->columns + j]);
            if (isnan(shade))
                return shade;
            most = shade > most ? shade : most;
        }
    return most;
}

/* Line `line` of a map: one row of it, or two with colours. Returns the columns it took. */
static int64_t draw_line(at_buffer *text, const small *s, int64_t line)
{
    const at_ink ink = at_ink_of(s->map);
    const int64_t row = ink == AT_INK_NONE ? line : 2 * line;
    if (row >= s->rows)
        return 0;
    for (int64_t j = 0; j < s->columns; j++) {
        const float shade = shade_at(s, row, j);
        if (ink == AT_INK_NONE)
            at_buffer_print(text, "%s", at_shade_block(shade));
        else if (row + 1 < s->rows)
            at_shade_pair(text, ink, shade, shade_at(s, row + 1, j));
        else
            at_shade_upper(text, ink, shade);
    }
    at_shade_end(text, ink);
    return s->columns;
}

/* A line of blanks ends where its last character is. */
static void end_line(at_buffer *text, size_t start)
{
    while (text->size > start && text->bytes[text->size - 1] == ' ')
        text->size--;
    at_buffer_add(text, "\n", 1);
}

static int64_t lines_of(const small *s)
{
    return s->map->colour ? (s->rows + 1) / 2 : s->rows;
}

/* The maps [from, to) side by side, under their titles. */
static void draw_side_by_side(at_buffer *text, const small *maps, const char *const *titles, int from, int to)
{
    int64_t height = 0;
    for (int i = from; i < to; i++)
        height = lines_of(&maps[i]) > height ? lines_of(&maps[i]) : height;
    for (int64_t line = -1; line < height; line++) {
        const size_t start = text->size;
        int64_t owed = 0; /* blanks before the next map */
        for (int i = from; i < to; i++) {
            at_buffer_print(text, "%*s", (int)owed, "");
            owed = maps[i].width + GAP -
                   (line < 0 ? at_label_add(text, titles[i], maps[i].most_title) : draw_line(text, &maps[i], line));
        }
        end_line(text, start);
    }
}

/* The first map that does not fit beside those from `from` on. */
static int line_end(const small *maps, int from, int count)
{
    int64_t used = maps[from].width;
    int to = from + 1;
    for (; to < count; to++) {
        used += GAP + maps[to].width;
        if (maps[to].map->width > 0 && used > maps[to].map->width)
            break;
    }
    return to;
}

char *at_heatmaps_text(const at_heatmap *maps, const char *const *titles, int count, at_error *error)
{
    at_buffer text = {0};
    small *sizes = malloc((size_t)(count > 0 ? count : 1) * sizeof *sizes);
    bool good = sizes;
    for (int i = 0; good && i < count; i++)
        if ((good = at_picture_check(&maps[i], error)))
            sizes[i] = measure(&maps[i], titles[i]);
    for (int from = 0, to; good && from < count; from = to) {
        to = line_end(sizes, from, count);
        if (from > 0)
            at_buffer_add(&text, "\n", 1);
        draw_side_by_side(&text, sizes, titles, from, to);
    }
    at_buffer_add(&text, "", 0);
    if (!good || text.failed) {
        at_no_memory(error, "%d heat maps", count);
        at_buffer_free(&text);
    }
    free(sizes);
    return text.bytes;
}
