/* What may not follow a hypothesis: a unit that would complete an N-gram it already has (`no_repeat`), and a unit that would
 * complete a term that the glossary forbids.
 *
 * A forbidden term is found in the names of the units one after the other, so it does not matter into which subwords a
 * hypothesis cuts it: a unit is barred if the names then end in the term, or have it and a character behind it that is no
 * part of the word. The decision falls at the unit that completes the term, while the word can still become another one.
 * And a term that the output must have is a whole word: no unit that would lengthen it follows its last one. */
#include <string.h>

#include "base/grow.h"
#include "search/search_beam_internal.h"
#include "text/glossary.h"

#define BLANK "\xe2\x96\x81" /* U+2581, before the name of a word */

enum { MOST_NAME = 2 * AT_TERM_BYTES }; /* bytes of a unit's name that are looked at */

struct at_bars {
    const at_vocabulary *target;
    int64_t first, count;    /* those of the row in at_nodes' `repeats` */
    const int32_t *repeated; /* [count] units that would repeat an N-gram */
    const at_terms *terms;
    bool ends_word; /* a term was just completed, and its word must not go on */
    char *tail;     /* [tail_size] how the names of the hypothesis end */
    size_t tail_size;
};

/* ---- Names ------------------------------------------------------------------------------------------------------ */

size_t at_terms_name(const at_vocabulary *vocabulary, int32_t id, char *out, size_t room)
{
    const char *name = at_vocabulary_unit(vocabulary, id);
    const size_t blank = at_vocabulary_has_words(vocabulary) ? strlen(BLANK) : 0, size = name ? strlen(name) : 0;
    const size_t whole = blank + size;
    for (size_t i = 0; i < whole && i < room; i++)
        out[i] = i < blank ? BLANK[i] : name[i - blank];
    return whole;
}

/* ---- Setting ---------------------------------------------------------------------------------------------------- */

bool at_bars_start(at_beam_batch *batch)
{
    at_search_work *work = batch->work;
    size_t longest = 0;
    for (int64_t n = 0; n < batch->beam_count; n++) {
        const at_terms *terms = batch->beams[n].sentence->terms;
        for (int64_t i = 0; terms && i < terms->barred_count; i++)
            longest = terms->barred[i].size > longest ? terms->barred[i].size : longest;
        longest = terms && longest == 0 ? 1 : longest;
    }
    if (longest == 0 && work->settings->no_repeat == 0)
        return true;
    const int64_t rows = batch->beam_count * batch->width;
    batch->tail_room = longest > 0 ? longest + 4 : 0; /* and the character before it */
    batch->bars = at_search_alloc(work, work->batch, rows, sizeof *batch->bars);
    char *tails = at_search_alloc(work, work->batch, rows * (int64_t)batch->tail_room, 1);
    for (int64_t row = 0; batch->bars && tails && row < rows; row++)
        batch->bars[row] =
            (at_bars){.target = work->translator->target, .tail = tails + row * (int64_t)batch->tail_room};
    return batch->bars && tails;
}

/* The units of a hypothesis, the last first. */
static bool read_path(at_search_work *work, int32_t node, int64_t count)
{
    struct at_nodes *nodes = work->nodes;
    if (!AT_GROW(nodes->path, nodes->path_room, (size_t)count + 1) ||
        !AT_GROW(nodes->repeats, nodes->repeats_room, (size_t)(nodes->repeat_count + count) + 1))
        return at_search_no_memory(work);
    for (int64_t t = 0; t < count; t++, node = nodes->node[node].parent)
        nodes->path[t] = nodes->node[node].id;
    return true;
}

/* The last units of the N-grams that begin as the path y_t, y_{t-1}, ... ends:
 * y_j for which y_{j-1} ... y_{j-N+1} = y_t ... y_{t-N+2}. */
static void find_repeats(struct at_nodes *nodes, int64_t count, int64_t n, at_bars *bars)
{
    const int32_t *y = nodes->path;
    bars->first = nodes->repeat_count;
    for (int64_t j = 0; j + n <= count; j++)
        if (memcmp(y + j + 1, y, (size_t)(n - 1) * sizeof *y) == 0)
            nodes->repeats[nodes->repeat_count++] = y[j];
    bars->count = nodes->repeat_count - bars->first;
}

/* The names of the last units, up to as many bytes as there is room. */
static void set_tail(const int32_t *path, int64_t count, size_t room, at_bars *bars)
{
    char name[MOST_NAME];
    size_t begin = room;
    for (int64_t t = 0; t < count && begin > 0; t++) {
        size_t size = at_terms_name(bars->target, path[t], name, sizeof name);
        size = size < sizeof name ? size : sizeof name;
        const size_t taken = size < begin ? size : begin;
        memcpy(bars->tail + begin - taken, name + size - taken, taken);
        begin -= taken;
    }
    bars->tail_size = room - begin;
    memmove(bars->tail, bars->tail + begin, bars->tail_size);
}

bool at_bars_set(at_beam_batch *batch)
{
    at_search_work *work = batch->work;
    struct at_nodes *nodes = work->nodes;
    const int64_t n = work->settings->no_repeat, count = batch->step;
    nodes->repeat_count = 0;
    for (int64_t i = 0; batch->bars && i < batch->beam_count; i++) {
        const at_beam *b = &batch->beams[i];
        const at_terms *terms = b->sentence->terms;
        for (int64_t k = 0; k < b->live_count; k++) {
            at_bars *bars = &batch->bars[b->first + k];
            if (!read_path(work, b->live[k].node, count))
                return false;
            bars->first = bars->count = 0;
            bars->terms = terms;
            bars->ends_word = b->live[k].completed;
            if (n > 0)
                find_repeats(nodes, count, n, bars);
            if (terms)
                set_tail(nodes->path, count, batch->tail_room, bars);
            batch->tasks[b->first + k].bars = bars->count > 0 || terms ? bars : NULL;
        }
    }
    for (int64_t row = 0; batch->bars && row < batch->rows; row++) /* the array does not move any more */
        batch->bars[row].repeated = nodes->repeats + batch->bars[row].first;
    return true;
}

/* ---- Asking ----------------------------------------------------------------------------------------------------- */

/* Whether a name behind the tail, `text` being both, completes a forbidden term. */
static bool completes(at_line text, size_t tail, at_line term)
{
    const bool begins_word = term.size >= strlen(BLANK) && memcmp(term.text, BLANK, strlen(BLANK)) == 0;
    for (size_t end = (tail > term.size ? tail : term.size - 1) + 1; end <= text.size; end++) {
        const size_t begin = end - term.size;
        if (memcmp(text.text + begin, term.text, term.size) == 0 && !at_glossary_inside(text, end) &&
            (begins_word || !at_glossary_inside(text, begin)))
            return true;
    }
    return false;
}

bool at_bars_allow(const at_bars *bars, int32_t id)
{
    char bytes[AT_TERM_UNITS_BYTES + 4 + MOST_NAME];
    for (int64_t i = 0; i < bars->count; i++)
        if (bars->repeated[i] == id)
            return false;
    if (!bars->terms || id == AT_END)
        return true;
    memcpy(bytes, bars->tail, bars->tail_size);
    size_t size = at_terms_name(bars->target, id, bytes + bars->tail_size, MOST_NAME);
    const at_line text = {bytes, bars->tail_size + (size < MOST_NAME ? size : MOST_NAME)};
    if (bars->ends_word && at_glossary_inside(text, bars->tail_size))
        return false;
    for (int64_t i = 0; i < bars->terms->barred_count; i++)
        if (completes(text, bars->tail_size, bars->terms->barred[i]))
            return false;
    return true;
}
