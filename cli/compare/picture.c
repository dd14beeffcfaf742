/* What each row of attend compare attends to in one sentence of the test set, as a small heat map in SVG. */
#include <stdlib.h>

#include "compare/compare.h"

enum { WORDS = 8, LETTERS = 20 }; /* a length that makes a small map, and one with something to see */

/* The first of the test lines whose length is nearest to that. */
static int64_t chosen_line(const compare_data *data)
{
    const at_line_list *source = data->source[TEST];
    int64_t best = 0, least = INT64_MAX;
    for (int64_t i = 0; i < source->count; i++) {
        const int64_t length = compare_length(source->line[i], data->letters);
        const int64_t off = length - (data->letters ? LETTERS : WORDS), distance = off < 0 ? -off : off;
        if (length > 0 && distance < least) {
            least = distance;
            best = i;
        }
    }
    return best;
}

/* The maps of the first finished run of a cell. A model without attention has none, which is no error. */
static bool make_picture(const compare_table *table, int cell, compare_picture *picture, at_error *error)
{
    const compare_data *data = table->data;
    const compare_run *run = NULL;
    for (int i = cell; i < table->run_count && !run; i += table->spec->cell_count)
        run = table->run[i].state == RUN_DONE ? &table->run[i] : NULL;
    char path[PATH];
    if (!run)
        return true;
    snprintf(path, sizeof path, "%s/model", run->folder);
    at_translator *model = at_translator_load(path, error);
    at_error none = {0};
    at_line_list *found = NULL; /* pictures, from the folder of the lines */
    if (model && at_translator_has_pictures(model))
        found = at_translator_sources(model, data->set[TEST].source, error);
    const at_line *source = &(found ? found : data->source[TEST])->line[table->pictured];
    const at_search_settings search = {.beam = table->spec->beam, .length_penalty = table->spec->length_penalty};
    const bool by_word = model && !data->letters && !found;
    at_maps *maps = model && error->code == AT_OK ? at_maps_new(model, &search, source, NULL, &none) : NULL;
    at_translator_free(model);
    at_line_list_free(found);
    if (none.code != AT_OK && none.code != AT_UNSUPPORTED)
        return fail(error, (at_code)none.code, "%s", none.text);
    picture->maps = maps && by_word ? at_maps_words(maps, error) : maps;
    if (picture->maps != maps)
        at_maps_free(maps);
    if (!picture->maps)
        return error->code == AT_OK;
    picture->cross = maps_of_kind(picture->maps, AT_CROSS_ATTENTION);
    if (picture->cross.layers)
        picture->weights = choice_weights(&picture->cross, &(cli_choice){0}, error);
    return error->code == AT_OK;
}

bool compare_pictures(compare_table *table, at_error *error)
{
    table->picture = calloc((size_t)table->spec->cell_count, sizeof *table->picture);
    if (!table->picture)
        return fail(error, AT_MEMORY, "out of memory for the pictures of attention");
    table->pictured = chosen_line(table->data);
    for (int cell = 0; cell < table->spec->cell_count; cell++)
        if (!make_picture(table, cell, &table->picture[cell], error))
            return false;
    return true;
}

void compare_pictures_free(compare_table *table)
{
    for (int cell = 0; table->picture && cell < table->spec->cell_count; cell++) {
        at_maps_free(table->picture[cell].maps);
        free(table->picture[cell].weights);
    }
    free(table->picture);
}

/* ---- Drawing -------------------------------------------------------------------------------------------------- */

static void write_cells(FILE *f, const at_map *map, const float *weights, int size, int left, int top)
{
    for (int64_t i = 0; i < map->rows; i++)
        for (int64_t j = 0; j < map->columns; j++) {
            const double weight = (double)weights[i * map->columns + j];
            if (weight >= 0.005)
                fprintf(f, "<rect x=\"%lld\" y=\"%lld\" width=\"%d\" height=\"%d\" fill-opacity=\"%.2f\"/>",
                        (long long)(left + j * size), (long long)(top + i * size), size, size, weight < 1 ? weight : 1);
        }
}

static int widest(const char *const *names, int64_t count)
{
    int width = 0;
    for (int64_t i = 0; i < count; i++)
        width = text_width(names[i]) > width ? text_width(names[i]) : width;
    return width < 16 ? width : 16;
}

/* Names of rows at the left, those of columns above: upwards, unless they are as short as letters. */
static void write_names(FILE *f, const at_map *map, int size, int left, int top)
{
    const bool upright = widest(map->column_names, map->columns) <= 2;
    for (int64_t i = 0; i < map->rows; i++) {
        fprintf(f, "<text x=\"%d\" y=\"%lld\" text-anchor=\"end\">", left - 4, (long long)(top + i * size + size - 4));
        markup_text(f, map->row_names[i]);
        fputs("</text>", f);
    }
    for (int64_t j = 0; j < map->columns; j++) {
        const long long x = left + j * size;
        if (upright)
            fprintf(f, "<text x=\"%lld\" y=\"%d\" text-anchor=\"middle\">", x + size / 2, top - 4);
        else
            fprintf(f, "<text transform=\"translate(%lld %d) rotate(-90)\">", x + size - 4, top - 4);
        markup_text(f, map->column_names[j]);
        fputs("</text>", f);
    }
}

void compare_picture_write(FILE *f, const compare_picture *picture, bool named)
{
    const at_map *map = picture->cross.map[0];
    const int size = named ? 15 : 5;
    const int left = named ? 8 + 7 * widest(map->row_names, map->rows) : 0;
    const int top = named ? 10 + 7 * widest(map->column_names, map->columns) : 0;
    const long long wide = left + size * map->columns, tall = top + size * map->rows;
    fprintf(f, "<svg class=\"map\" width=\"%lld\" height=\"%lld\" viewBox=\"0 0 %lld %lld\" role=\"img\"><title>", wide,
            tall, wide, tall);
    markup_text(f, at_maps_target(picture->maps));
    fprintf(f, "</title><rect class=\"ground\" x=\"%d\" y=\"%d\" width=\"%lld\" height=\"%lld\"/>", left, top,
            wide - left, tall - top);
    write_cells(f, map, picture->weights, size, left, top);
    if (named)
        write_names(f, map, size, left, top);
    fputs("</svg>", f);
}
