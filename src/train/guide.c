/* Links between words become links between units when the file is read. */
#include "train/guide_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/hash.h"
#include "score/links.h"

typedef struct unit_link {
    int32_t source, target;
} unit_link;

struct at_guide {
    unit_link *link; /* sorted by line, then by target */
    size_t used, room;
    size_t *start; /* [lines + 1] */
    int64_t lines;
};

/* One side of the pair that is being read. */
typedef struct side {
    int32_t *ids, *offsets; /* offsets: two per unit, where it begins and ends in the line */
    int64_t *words;         /* the word of each unit */
    int64_t units, word_count;
    size_t room, offset_room, word_room;
} side;

static bool no_memory(at_error *error)
{
    return at_no_memory(error, "alignments");
}

static bool reserve(void *context, int64_t count, int32_t **ids, int32_t **offsets)
{
    side *s = context;
    if (!AT_GROW(s->ids, s->room, (size_t)count) || !AT_GROW(s->offsets, s->offset_room, 2 * (size_t)count))
        return false;
    *ids = s->ids;
    *offsets = s->offsets;
    return true;
}

static bool read_side(side *s, const at_vocabulary *vocabulary, at_line line, at_error *error)
{
    int64_t replaced;
    s->units = at_vocabulary_encode_line(vocabulary, line, reserve, s, &replaced);
    if (s->units < 0 || !AT_GROW(s->words, s->word_room, (size_t)s->units))
        return no_memory(error);
    s->word_count = at_word_numbers(line, s->offsets, s->units, s->words);
    return true;
}

static bool add_link(at_guide *guide, unit_link link, at_error *error)
{
    if (!AT_GROW(guide->link, guide->room, guide->used + 1))
        return no_memory(error);
    guide->link[guide->used++] = link;
    return true;
}

/* Links every unit of the source word with every unit of the target word. */
static bool add_word_link(at_guide *guide, const side pair[2], uint64_t link, at_error *error)
{
    const int64_t words[2] = {(int64_t)(link >> 32), (int64_t)(link & UINT32_MAX)};
    for (int64_t t = 0; t < pair[1].units; t++)
        for (int64_t s = 0; pair[1].words[t] == words[1] && s < pair[0].units; s++)
            if (pair[0].words[s] == words[0] && !add_link(guide, (unit_link){(int32_t)s, (int32_t)t}, error))
                return false;
    return true;
}

static int by_target(const void *left, const void *right)
{
    const unit_link *a = left, *b = right;
    if (a->target != b->target)
        return a->target < b->target ? -1 : 1;
    return a->source < b->source ? -1 : a->source > b->source;
}

/* Sorts the links of a line and removes duplicates. */
static void sort_links(at_guide *guide, size_t first)
{
    unit_link *link = guide->link + first;
    size_t count = guide->used - first, unique = 0;
    if (count > 0)
        qsort(link, count, sizeof *link, by_target);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || by_target(&link[i], &link[unique - 1]) != 0)
            link[unique++] = link[i];
    guide->used = first + unique;
}

static bool read_line(at_guide *guide, const char *path, int64_t number, at_line line, const side pair[2],
                      at_error *error)
{
    at_units words_left = {line.text, line.text + line.size, true};
    at_unit unit;
    const size_t first = guide->used;
    while (at_units_next(&words_left, &unit)) {
        uint64_t link;
        bool sure;
        char shown[AT_SHOWN];
        if (!at_link_read(unit, &link, &sure))
            return at_fail(
                error, AT_FORMAT,
                "line %lld of '%s' is not an alignment: '%s' should be a link such as 0-0, source and target",
                (long long)number, path, at_link_shown(unit, shown));
        const int64_t words[2] = {(int64_t)(link >> 32), (int64_t)(link & UINT32_MAX)};
        for (int s = 0; s < 2; s++)
            if (words[s] >= pair[s].word_count)
                return at_fail(error, AT_FORMAT,
                               "line %lld of '%s' links %s word %lld, and the words of that line go from 0 to %lld",
                               (long long)number, path, s ? "target" : "source", (long long)words[s],
                               (long long)pair[s].word_count - 1);
        if (!add_word_link(guide, pair, link, error))
            return false;
    }
    sort_links(guide, first);
    guide->start[number] = guide->used;
    return true;
}

static bool read_all(at_guide *guide, const char *path, const at_line_list *list, const at_lines *lines,
                     const at_vocabulary *const vocabulary[2], at_error *error)
{
    side pair[2] = {0};
    guide->lines = lines->count;
    guide->start = calloc((size_t)guide->lines + 1, sizeof *guide->start);
    if (!guide->start || !AT_GROW(guide->link, guide->room, 1)) /* there is memory even if no line has a link */
        no_memory(error);
    else if (list->count != guide->lines)
        at_fail(error, AT_FORMAT, "'%s' has %lld lines and the training data %lld; each pair needs its own", path,
                (long long)list->count, (long long)guide->lines);
    for (int64_t i = 0; i < guide->lines && error->code == AT_OK; i++) {
        for (int s = 0; s < 2 && error->code == AT_OK; s++)
            read_side(&pair[s], vocabulary[s], lines->side[s][i], error);
        if (error->code == AT_OK)
            read_line(guide, path, i + 1, list->line[i], pair, error);
    }
    for (int s = 0; s < 2; s++) {
        free(pair[s].ids);
        free(pair[s].offsets);
        free(pair[s].words);
    }
    return error->code == AT_OK;
}

at_guide *at_guide_new(const char *path, const at_lines *lines, const at_vocabulary *source,
                       const at_vocabulary *target, at_error *error)
{
    at_guide *guide = error->code == AT_OK ? calloc(1, sizeof *guide) : NULL;
    at_line_list *list = guide ? at_line_list_read(path, error) : NULL;
    if (!guide)
        no_memory(error);
    bool done = list && read_all(guide, path, list, lines, (const at_vocabulary *const[]){source, target}, error);
    at_line_list_free(list);
    if (done)
        return guide;
    at_guide_free(guide);
    return NULL;
}

void at_guide_free(at_guide *guide)
{
    if (!guide)
        return;
    free(guide->link);
    free(guide->start);
    free(guide);
}

uint64_t at_guide_hash(const at_guide *guide)
{
    uint64_t hash = AT_HASH_START;
    for (int64_t line = 0; line < guide->lines; line++)
        for (size_t i = guide->start[line]; i < guide->start[line + 1]; i++) {
            const uint64_t numbers[] = {(uint64_t)line, (uint64_t)guide->link[i].source,
                                        (uint64_t)guide->link[i].target};
            for (int n = 0; n < 3; n++)
                hash = at_hash_step(hash, numbers[n]);
        }
    return hash;
}

void at_guide_fill(const at_guide *guide, const at_batch *batch, at_real *shares)
{
    const int64_t T = batch->target_length, S = batch->source_length;
    memset(shares, 0, (size_t)(batch->rows * T * S) * sizeof *shares);
    for (int64_t row = 0; row < batch->rows; row++) {
        const unit_link *link = guide->link + guide->start[batch->lines[row] - 1];
        const unit_link *end = guide->link + guide->start[batch->lines[row]], *next;
        /* Links of units that were cut off are ignored. */
        for (; link < end && link->target < batch->target_lengths[row] - 1; link = next) {
            int64_t count = 0;
            for (next = link; next < end && next->target == link->target; next++)
                count += next->source < batch->source_lengths[row];
            for (const unit_link *one = link; one < next; one++)
                if (one->source < batch->source_lengths[row])
                    shares[(row * T + one->target) * S + one->source] = 1 / (at_real)count;
        }
    }
}
