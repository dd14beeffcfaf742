#include "explore.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_MAPS = KINDS * MOST_LAYERS };

static int list_maps(const at_maps *maps, const at_map *list[MOST_MAPS])
{
    int count = 0;
    for (const at_map *map; count < MOST_MAPS && (map = at_maps_at(maps, count));)
        list[count++] = map;
    return count;
}

/* Whether a word is more than a unit anywhere. */
static bool words_differ(const at_map *const *units, const at_map *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (units[i]->rows != words[i]->rows || units[i]->columns != words[i]->columns)
            return true;
    return false;
}

static at_explorer page_of(const explore *e)
{
    return (at_explorer){.title = e->title,
                         .source = e->source,
                         .links = e->links,
                         .link_count = e->link_count,
                         .picture = e->picture,
                         .grid_rows = e->grid_rows,
                         .grid_columns = e->grid_columns};
}

static bool save(const at_explorer *page, const char *path, at_error *error)
{
    char *html = at_explorer_html(page, error);
    const bool good = html && at_file_write(path, html, strlen(html), error);
    at_text_free(html);
    return good;
}

/* Links join words of the source and the target that are there. */
static bool check_links(const explore *e, const at_map *const *maps, int count, at_error *error)
{
    for (int i = 0; i < count; i++)
        for (int64_t l = 0; maps[i]->kind == AT_CROSS_ATTENTION && l < e->link_count; l++)
            if (e->links[l].row >= maps[i]->rows || e->links[l].column >= maps[i]->columns)
                return fail(error, AT_SHAPE,
                            "there is no row %lld and column %lld for a link: the map has %lld rows and %lld columns, "
                            "from 0",
                            (long long)e->links[l].row, (long long)e->links[l].column, (long long)maps[i]->rows,
                            (long long)maps[i]->columns);
    return true;
}

bool explore_line(const explore *e, const at_maps *maps, const char *path, at_error *error)
{
    const at_map *units[MOST_MAPS], *words[MOST_MAPS], *other[MOST_MAPS], *other_words[MOST_MAPS];
    at_map_vectors vectors[MOST_MAPS];
    at_explorer page = page_of(e);
    page.target = at_maps_target(maps);
    page.maps = units;
    page.count = list_maps(maps, units);
    page.vectors = vectors;
    for (int i = 0; i < page.count; i++)
        at_maps_vectors(maps, i, &vectors[i]);
    at_maps *by_word = e->picture ? NULL : at_maps_words(maps, error); /* cells are no words */
    at_maps *other_by_word = e->other_maps && error->code == AT_OK ? at_maps_words(e->other_maps, error) : NULL;
    if (by_word && words_differ(units, words, list_maps(by_word, words))) {
        page.word_maps = words;
        page.word_count = page.count;
    }
    if (other_by_word) {
        page.other = e->other;
        page.other_maps = other;
        page.other_count = list_maps(e->other_maps, other);
        page.other_word_maps = other_words;
        page.other_word_count = list_maps(other_by_word, other_words);
    }
    const bool good = error->code == AT_OK && check_links(e, page.word_count ? words : units, page.count, error) &&
                      save(&page, path, error);
    at_maps_free(other_by_word);
    at_maps_free(by_word);
    return good;
}

bool explore_array(const explore *e, const cli_maps *maps, const char *path, at_error *error)
{
    at_explorer page = page_of(e);
    page.maps = maps->map;
    page.count = maps->layers;
    page.of_array = true;
    return check_links(e, maps->map, maps->layers, error) && save(&page, path, error);
}
