#include "show.h"

#include <stdlib.h>
#include <string.h>

#include "drawing.h"
#include "text_file.h"

/* ---- The terminal --------------------------------------------------------------------------------------------- */

/* The names of one side, to be released with free; a blank as a name would not be seen. */
static const char **shown_names(const char *const *names, int64_t count, at_error *error)
{
    const char **shown = malloc((size_t)(count + 1) * sizeof *shown);
    if (!shown)
        fail(error, AT_MEMORY, "out of memory for the picture");
    for (int64_t i = 0; shown && i < count; i++)
        shown[i] = strcmp(names[i], " ") == 0 ? "␣" : names[i];
    return shown;
}

static bool print_text(char *text)
{
    if (text)
        printf("\n%s", text);
    at_text_free(text);
    return text;
}

static bool print_one(const show *s, const char **rows, const char **columns)
{
    const at_map *map = s->maps.map[0];
    float *weights = choice_weights(&s->maps, &s->choice, s->error);
    at_heatmap picture = {
        .rows = map->rows, .columns = map->columns, .values = weights, .row_names = rows, .column_names = columns};
    fit_terminal(&picture, 0);
    const bool good = weights && print_text(at_heatmap_text(&picture, s->error));
    free(weights);
    return good;
}

/* Words over the cells of a picture: for each word a small map as the cells lie, relative to its largest weight. Without
 * colours a cell is two characters wide, about as wide as high. */
static bool print_grids(const show *s, const char **words)
{
    const at_map *map = s->maps.map[0];
    const int64_t cells = map->columns, wide = colour_wanted() ? 1 : 2;
    float *weights = choice_weights(&s->maps, &s->choice, s->error);
    float *shades = malloc((size_t)(map->rows * cells * wide + 1) * sizeof *shades);
    at_heatmap *grid = calloc((size_t)map->rows + 1, sizeof *grid);
    bool good = weights && shades && grid;
    if (weights && !good)
        fail(s->error, AT_MEMORY, "out of memory for the pictures");
    for (int64_t i = 0; good && i < map->rows; i++) {
        const float *row = weights + i * cells;
        float *to = shades + i * cells * wide, largest = 0;
        for (int64_t j = 0; j < cells; j++)
            largest = row[j] > largest ? row[j] : largest;
        for (int64_t j = 0; j < cells * wide; j++)
            to[j] = largest > 0 ? row[j / wide] / largest : 0;
        grid[i] = (at_heatmap){.rows = s->grid_rows, .columns = s->grid_columns * wide, .values = to};
        fit_terminal(&grid[i], 0);
    }
    good = good && print_text(at_heatmaps_text(grid, words, (int)map->rows, s->error));
    if (good)
        printf("\nThe cells of the picture, each relative to the word's largest weight.\n");
    free(grid);
    free(shades);
    free(weights);
    return good;
}

static bool print_names(const char *what, const char *const *names, int64_t count, at_error *error)
{
    text_file text;
    const int width = terminal_width();
    if (!text_open(&text, error))
        return false;
    for (int64_t i = 0; i < count; i++)
        fprintf(text.stream, "%s%s", i ? " " : "", names[i]);
    char *taken = text_take(&text, error);
    if (!taken)
        return false;
    printf("%-8s ", what);
    print_wrapped(stdout, taken, 9, width > 0 ? width : 100, 9);
    free(taken);
    return true;
}

/* Every head, layer after layer, as maps without names and their titles, "2.1". */
typedef struct all_heads {
    at_heatmap *map; /* [count] */
    char (*number)[24];
    const char **title;
    int count;
} all_heads;

static void free_heads(all_heads *all)
{
    free(all->title);
    free(all->number);
    free(all->map);
}

static bool list_heads(const show *s, all_heads *all)
{
    const int heads = s->maps.map[0]->heads;
    const size_t count = (size_t)(s->maps.layers * heads);
    *all = (all_heads){calloc(count, sizeof *all->map), calloc(count, sizeof *all->number),
                       calloc(count, sizeof *all->title), (int)count};
    if (!all->map || !all->number || !all->title)
        return fail(s->error, AT_MEMORY, "out of memory for the pictures");
    for (int i = 0; i < all->count; i++) {
        const at_map *map = s->maps.map[i / heads];
        all->map[i] = (at_heatmap){
            .rows = map->rows, .columns = map->columns, .values = map->weights + i % heads * map->rows * map->columns};
        snprintf(all->number[i], sizeof all->number[i], "%d.%d", map->layer, i % heads + 1);
        all->title[i] = all->number[i];
    }
    return true;
}

static bool print_all(const show *s, const char **rows, const char **columns)
{
    const int heads = s->maps.map[0]->heads;
    all_heads all;
    putchar('\n');
    bool good = list_heads(s, &all) && print_names("rows", rows, s->maps.map[0]->rows, s->error) &&
                print_names("columns", columns, s->maps.map[0]->columns, s->error);
    for (int i = 0; good && i < all.count; i++)
        fit_terminal(&all.map[i], 0);
    for (int l = 0; good && l < s->maps.layers; l++)
        good = print_text(at_heatmaps_text(all.map + l * heads, all.title + l * heads, heads, s->error));
    free_heads(&all);
    return good;
}

/* ---- Files ---------------------------------------------------------------------------------------------------- */

/* "cross attention, head 2.1", "weights". */
static void write_title(const show *s, char *title, size_t size)
{
    const int layers = s->maps.layers, heads = s->maps.map[0]->heads;
    const char *what = kind_title(&s->maps);
    if (s->choice.all || layers * heads == 1)
        snprintf(title, size, "%s", what);
    else if (s->choice.layer)
        snprintf(title, size, "%s, head %d.%d", what, s->choice.layer, s->choice.head);
    else
        snprintf(title, size, "%s, mean of %d heads", what, layers * heads);
}

static bool save(const show *s, at_drawing *drawing, const char *path)
{
    char title[100];
    write_title(s, title, sizeof title);
    drawing->title = title;
    drawing->row_title = s->row_title;
    drawing->column_title = s->column_title;
    drawing->sums = s->sums;
    drawing->theme = s->theme;
    drawing->links = s->links;
    drawing->link_count = s->link_count;
    drawing->picture = drawing->count == 1 ? s->picture : NULL;
    drawing->grid_rows = s->grid_rows;
    drawing->grid_columns = s->grid_columns;
    char *svg = at_drawing_svg(drawing, s->error);
    const bool good = svg && drawing_save(svg, path, s->error);
    at_text_free(svg);
    return good;
}

static bool save_one(const show *s, const char **rows, const char **columns, const char *path)
{
    const at_map *map = s->maps.map[0];
    float *weights = choice_weights(&s->maps, &s->choice, s->error);
    const at_heatmap picture = {
        .rows = map->rows, .columns = map->columns, .values = weights, .row_names = rows, .column_names = columns};
    const bool good = weights && save(s, &(at_drawing){.maps = &picture, .count = 1}, path);
    free(weights);
    return good;
}

static bool save_all(const show *s, const char **rows, const char **columns, const char *path)
{
    all_heads all;
    bool good = list_heads(s, &all);
    if (good) {
        all.map[0].row_names = rows;
        all.map[0].column_names = columns;
        good = save(s,
                    &(at_drawing){.maps = all.map,
                                  .titles = all.title,
                                  .count = all.count,
                                  .across = s->maps.layers > 1 ? s->maps.map[0]->heads : 0},
                    path);
    }
    free_heads(&all);
    return good;
}

/* In the terminal, or in the file `path`. */
static bool draw(const show *s, const char *path)
{
    const at_map *map = s->maps.map[0];
    const char **rows = shown_names(map->row_names, map->rows, s->error);
    const char **columns = shown_names(map->column_names, map->columns, s->error);
    bool good = rows && columns;
    if (good && path)
        good = (s->choice.all ? save_all : save_one)(s, rows, columns, path);
    else if (good)
        good = s->choice.all ? print_all(s, rows, columns)
               : s->picture  ? print_grids(s, rows)
                             : print_one(s, rows, columns);
    free(rows);
    free(columns);
    return good;
}

bool show_print(const show *s)
{
    return draw(s, NULL);
}

bool show_save(const show *s, const char *path)
{
    return draw(s, path);
}
