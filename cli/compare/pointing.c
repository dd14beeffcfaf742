/* Pointing of a run (pointing.h), from the weights that it wrote beside its outputs, and the links of the test set: on
 * the cells that are linked with a word, when the word is said. Only outputs that are right count, whose words are those
 * of the links. */
#include "pointing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"
#include "scenes.h"

/* The weights after the text of an output, "0.9,0.1 0.2,0.8": a row for each word. Returns the count of words, 0 if they do
 * not fit a grid of so many cells. */
static int64_t read_weights(const char *text, float *weights, int64_t cells, int64_t most)
{
    int64_t words = 0;
    for (; *text; words++) {
        if (words == most)
            return 0;
        for (int64_t i = 0; i < cells; i++) {
            char *end;
            weights[words * cells + i] = strtof(text, &end);
            if (end == text || (i + 1 < cells && *end != ','))
                return 0;
            text = end + (*end == ',');
        }
        if (*text && *text != ' ')
            return 0;
        text += *text == ' ';
    }
    return words;
}

/* Marks the cells that are linked with a word; false if there are none. */
static bool read_links(const char *text, int64_t word, bool *marked, int64_t cells)
{
    bool any = false;
    memset(marked, 0, (size_t)cells * sizeof *marked);
    for (long long cell, other; sscanf(text, "%lld-%lld", &cell, &other) == 2; text += strspn(text, " ")) {
        if (other == word && cell >= 0 && cell < cells)
            any = marked[cell] = true;
        text += strcspn(text, " ");
    }
    return any;
}

/* Room for one output. */
typedef struct room {
    float weights[MOST_WORDS * SCENE_CELLS];
    bool marked[SCENE_CELLS];
} room;

/* Adds one output; false if its weights are not those of such cells and words. */
static bool add_line(pointing *p, const char *said, at_line target, const char *links, room *r)
{
    static const char mark[] = " ||| ";
    const char *end = strstr(said, mark);
    if (!end || (size_t)(end - said) != target.size || memcmp(said, target.text, target.size) != 0)
        return true;
    const int64_t words = read_weights(end + strlen(mark), r->weights, SCENE_CELLS, MOST_WORDS);
    for (int64_t w = 0; w < words; w++)
        if (read_links(links, w, r->marked, SCENE_CELLS))
            pointing_add(p, r->weights + w * SCENE_CELLS, r->marked, SCENE_CELLS);
    return words == at_word_numbers(target, NULL, 0, NULL);
}

bool compare_pointing(const compare_table *table, const at_line_list *said, double *value, at_error *error)
{
    const at_line_list *target = table->data->target[TEST], *links = table->data->links[TEST];
    room *r = malloc(sizeof *r);
    pointing p = {0};
    bool good = r, fits = true;
    for (int64_t i = 0; i < said->count && good && fits; i++) {
        char *line = strndup(said->line[i].text, said->line[i].size);
        char *linked = strndup(links->line[i].text, links->line[i].size);
        good = line && linked;
        fits = !good || add_line(&p, line, target->line[i], linked, r);
        free(line);
        free(linked);
    }
    *value = fits ? pointing_times(&p) : NAN;
    free(r);
    return good || fail(error, AT_MEMORY, "out of memory for the weights of a run");
}
