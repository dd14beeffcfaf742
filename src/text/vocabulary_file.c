/* Vocabularies as text files: a unit in each line and, after a tab, how often it occurs. Their order is that of the ids.
 * If every unit is one character, the units are characters, otherwise words. And lines as units for people. */
#include "text/vocabulary_internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

#define BLANK "\xe2\x96\x81" /* U+2581 stands for a blank */

/* ---- Reading -------------------------------------------------------------------------------------------------- */

/* A line cut into its unit and its count; a line without a count has 0. */
static at_unit unit_of(at_line line, int64_t *count)
{
    const char *tab = line.size > 0 ? memrchr(line.text, '\t', line.size) : NULL, *end = line.text + line.size;
    bool digits = tab && tab > line.text && tab + 1 < end && end - tab <= 18;
    for (const char *at = tab; digits && ++at < end;)
        digits = isdigit((unsigned char)*at);
    *count = digits ? strtoll(tab + 1, NULL, 10) : 0;
    return (at_unit){.text = line.text, .size = digits ? (size_t)(tab - line.text) : line.size};
}

/* Whether the bytes are one unit and nothing else. */
static bool is_one(at_unit unit, bool words)
{
    at_units units = {unit.text, unit.text + unit.size, words};
    at_unit found;
    return at_units_next(&units, &found) && found.size == unit.size && found.broken == 0;
}

static bool add_line(at_vocabulary *vocabulary, const at_line_list *lines, int64_t index, const char *path,
                     at_error *error)
{
    int64_t count;
    char shown[AT_SHOWN];
    const at_unit unit = unit_of(lines->line[index], &count);
    const int32_t before = vocabulary->count;
    if (!is_one(unit, vocabulary->words))
        return at_fail(error, AT_FORMAT,
                       "line %lld of '%s' is not one %s; a vocabulary has a unit in each line and, after a tab, its "
                       "count",
                       (long long)index + 1, path, vocabulary->words ? "word" : "character");
    if (!at_vocabulary_add(vocabulary, unit, count, error))
        return false;
    if (vocabulary->count > before)
        return true;
    char *copy = strndup(unit.text, unit.size);
    at_fail(error, AT_FORMAT, "line %lld of '%s' has '%s' for the second time", (long long)index + 1, path,
            at_shown(copy ? copy : "", shown, sizeof shown));
    free(copy);
    return false;
}

bool at_vocabulary_read_units(at_vocabulary *vocabulary, const char *path, at_error *error)
{
    at_line_list *lines = at_line_list_read(path, error);
    int64_t count;
    if (!lines)
        return false;
    vocabulary->words = vocabulary->given = true;
    bool characters = lines->count > 0;
    for (int64_t i = 0; i < lines->count && characters; i++)
        characters = is_one(unit_of(lines->line[i], &count), false);
    vocabulary->words = !characters;
    bool good =
        lines->count > 0 || at_fail(error, AT_FORMAT, "'%s' is empty: a vocabulary has a unit in each line", path);
    for (int64_t i = 0; good && i < lines->count; i++)
        good = add_line(vocabulary, lines, i, path, error);
    at_line_list_free(lines);
    vocabulary->fixed = good; /* in the order of the file */
    return good;
}

/* ---- Writing -------------------------------------------------------------------------------------------------- */

bool at_vocabulary_has_subwords(const at_vocabulary *vocabulary)
{
    return vocabulary->subwords;
}

bool at_vocabulary_save(const at_vocabulary *vocabulary, const char *path, at_error *error)
{
    size_t size;
    const unsigned char *bytes = at_vocabulary_subwords(vocabulary, &size);
    if (error->code != AT_OK)
        return false;
    if (bytes)
        return at_file_write(path, bytes, size, error);
    at_buffer text = {0};
    for (int32_t i = 0; i < vocabulary->count; i++) {
        const at_word *word = &vocabulary->word[i];
        at_buffer_add(&text, vocabulary->text.bytes + word->start, word->size);
        at_buffer_print(&text, "\t%lld\n", (long long)word->count);
    }
    const bool done = text.failed ? at_vocabulary_no_memory(error) : at_file_write(path, text.bytes, text.size, error);
    at_buffer_free(&text);
    return done;
}

/* ---- Lines as units ------------------------------------------------------------------------------------------- */

static void add_unit(at_buffer *text, const char *unit, size_t size, bool characters)
{
    if (text->size > 0)
        at_buffer_add(text, " ", 1);
    if (characters && size == 1 && *unit == ' ')
        at_buffer_add(text, BLANK, 3);
    else
        at_buffer_add(text, unit, size);
}

/* The ids of a line and where its units lie in it. */
typedef struct encoded {
    int32_t *ids, *offsets;
} encoded;

static bool reserve(void *context, int64_t count, int32_t **ids, int32_t **offsets)
{
    encoded *e = context;
    free(e->ids);
    *ids = e->ids = malloc(3 * ((size_t)count + 1) * sizeof **ids);
    *offsets = e->offsets = e->ids ? e->ids + count : NULL;
    return e->ids;
}

/* The pieces; an unknown one as it stands in the line. */
static bool segment_subwords(const at_vocabulary *vocabulary, at_line line, at_buffer *text)
{
    encoded e = {0};
    int64_t replaced;
    const int64_t count = at_vocabulary_encode_line(vocabulary, line, reserve, &e, &replaced);
    for (int64_t i = 0; i < count; i++) {
        const char *unit = at_vocabulary_unit(vocabulary, e.ids[i]);
        const int32_t *offset = e.offsets + 2 * i;
        if (e.ids[i] == AT_UNKNOWN)
            add_unit(text, line.text + offset[0], (size_t)(offset[1] - offset[0]), false);
        else
            add_unit(text, unit, strlen(unit), false);
    }
    free(e.ids);
    return count >= 0;
}

char *at_vocabulary_segment(const at_vocabulary *vocabulary, at_line line, at_error *error)
{
    at_buffer text = {0};
    at_clean clean = {0};
    at_buffer_add(&text, "", 0);
    bool good;
    if (vocabulary->subwords) {
        good = segment_subwords(vocabulary, line, &text);
    } else {
        good = at_clean_line(&clean, vocabulary->cleaning, line.text, line.size);
        at_units units = {clean.text.bytes, clean.text.bytes + clean.text.size, vocabulary->words};
        at_unit unit;
        while (good && at_units_next(&units, &unit))
            add_unit(&text, unit.text, unit.size, !vocabulary->words);
    }
    at_clean_free(&clean);
    if (good && !text.failed && error->code == AT_OK)
        return text.bytes;
    at_buffer_free(&text);
    at_no_memory(error, "the units of a line");
    return NULL;
}

/* Characters and pieces have no blanks but those of their signs. */
static void join_pieces(at_buffer *text, at_line line)
{
    for (size_t i = 0; i < line.size;) {
        const bool is_blank = line.size - i >= 3 && memcmp(line.text + i, BLANK, 3) == 0;
        if (is_blank)
            at_buffer_add(text, " ", 1);
        else if (line.text[i] != ' ')
            at_buffer_add(text, line.text + i, 1);
        i += is_blank ? 3 : 1;
    }
}

char *at_vocabulary_join(const at_vocabulary *vocabulary, at_line line, at_error *error)
{
    at_buffer text = {0};
    at_buffer_add(&text, "", 0);
    if (vocabulary->words)
        at_buffer_add(&text, line.text, line.size);
    else
        join_pieces(&text, line);
    if (vocabulary->cleaning.tokens != AT_TOKENS_NONE)
        at_tokens_join(&text, 0);
    if (vocabulary->subwords && text.size > 0 && text.bytes[0] == ' ') /* that of the first word */
        memmove(text.bytes, text.bytes + 1, text.size--);
    if (!text.failed && error->code == AT_OK)
        return text.bytes;
    at_buffer_free(&text);
    at_no_memory(error, "a line of units");
    return NULL;
}
