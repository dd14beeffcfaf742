/* The explorer of one line: its maps between units, and those between words where words are more than units. */
#include <string.h>

#include "attend_unstable.h"
#include "base/error.h"

enum { MOST_MAPS = 3 * 64 }; /* three kinds of attention, each with up to 64 layers */

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

char *at_explorer_line(const at_explorer *frame, const at_maps *maps, const at_maps *other_maps,
                       const at_maps *relevance_maps, at_error *error)
{
    const at_map *units[MOST_MAPS], *words[MOST_MAPS], *other[MOST_MAPS], *other_words[MOST_MAPS];
    const at_map *relevance[MOST_MAPS], *word_relevance[MOST_MAPS];
    const int64_t *row_words[MOST_MAPS], *column_words[MOST_MAPS];
    at_map_vectors vectors[MOST_MAPS];
    at_explorer page = *frame;
    page.target = at_maps_target(maps);
    page.maps = units;
    page.count = list_maps(maps, units);
    page.vectors = vectors;
    page.row_words = row_words;
    page.column_words = column_words;
    for (int i = 0; i < page.count; i++) {
        at_maps_vectors(maps, i, &vectors[i]);
        row_words[i] = at_maps_word_numbers(maps, i, false);
        column_words[i] = at_maps_word_numbers(maps, i, true);
    }
    at_maps *by_word = page.picture ? NULL : at_maps_words(maps, error); /* cells are no words */
    at_maps *other_by_word = other_maps && error->code == AT_OK ? at_maps_words(other_maps, error) : NULL;
    if (by_word && words_differ(units, words, list_maps(by_word, words))) {
        page.word_maps = words;
        page.word_count = page.count;
    }
    if (other_by_word) {
        page.other_maps = other;
        page.other_count = list_maps(other_maps, other);
        page.other_word_maps = other_words;
        page.other_word_count = list_maps(other_by_word, other_words);
    }
    at_maps *relevance_by_word = relevance_maps && error->code == AT_OK ? at_maps_words(relevance_maps, error) : NULL;
    if (relevance_by_word) {
        page.relevance = relevance;
        page.relevance_count = list_maps(relevance_maps, relevance);
        page.word_relevance = word_relevance;
        page.word_relevance_count = list_maps(relevance_by_word, word_relevance);
    }
    char *html = error->code == AT_OK ? at_explorer_html(&page, error) : NULL;
    at_maps_free(relevance_by_word);
    at_maps_free(other_by_word);
    at_maps_free(by_word);
    return html;
}
