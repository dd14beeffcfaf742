/* Counting units and finding them again. */
#include "text/vocabulary_internal.h"

#include "base/files.h"
#include "base/grow.h"
#include "base/settings.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Finding a unit ------------------------------------------------------------------------------------------- */

/* The next code point of a unit as clean UTF-8; returns how many bytes of `clean` it takes. Units are looked up by
 * their clean text, which is read without allocating memory. */
static size_t next_clean(at_unit *unit, char clean[4])
{
    int32_t point;
    bool broken;
    size_t length = at_point_read(unit->text, unit->size, &point, &broken);
    unit->text += length;
    unit->size -= length;
    return at_point_write(point, clean);
}

static uint64_t hash_unit(at_unit unit)
{
    uint64_t hash = AT_HASH_START;
    if (unit.broken == 0)
        return at_hash_bytes(hash, unit.text, unit.size);
    char clean[4];
    while (unit.size > 0) {
        size_t length = next_clean(&unit, clean);
        hash = at_hash_bytes(hash, clean, length);
    }
    return hash;
}

static bool has_text(const char *text, size_t size, at_unit unit)
{
    if (unit.broken == 0)
        return size == unit.size && memcmp(text, unit.text, size) == 0;
    char clean[4];
    while (unit.size > 0) {
        size_t length = next_clean(&unit, clean);
        if (length > size || memcmp(text, clean, length) != 0)
            return false;
        text += length;
        size -= length;
    }
    return size == 0;
}

static bool is_unit(const void *items, int32_t index, const void *key)
{
    const at_vocabulary *vocabulary = items;
    const at_word *word = &vocabulary->word[index];
    return has_text(vocabulary->text.bytes + word->start, word->size, *(const at_unit *)key);
}

static at_table_slot *find_slot(const at_vocabulary *vocabulary, at_unit unit, uint64_t hash)
{
    return at_table_find(&vocabulary->table, hash, is_unit, vocabulary, &unit);
}

int32_t at_vocabulary_find(const at_vocabulary *vocabulary, at_unit unit)
{
    return vocabulary->fixed ? find_slot(vocabulary, unit, hash_unit(unit))->index : -1;
}

/* ---- Counting ------------------------------------------------------------------------------------------------- */

bool at_vocabulary_no_memory(at_error *error)
{
    return at_no_memory(error, "a vocabulary");
}

static bool reserve_word(at_vocabulary *vocabulary, at_error *error)
{
    const size_t need = (size_t)vocabulary->count + 1;
    if (need > INT32_MAX / 4)
        return at_fail(error, AT_UNSUPPORTED, "a vocabulary holds at most %d different units", INT32_MAX / 4);
    return (AT_GROW(vocabulary->word, vocabulary->room, need) && at_table_reserve(&vocabulary->table, need)) ||
           at_vocabulary_no_memory(error);
}

bool at_vocabulary_add(at_vocabulary *vocabulary, at_unit unit, int64_t times, at_error *error)
{
    if (!reserve_word(vocabulary, error))
        return false;
    uint64_t hash = hash_unit(unit);
    at_table_slot *slot = find_slot(vocabulary, unit, hash);
    if (slot->index >= 0) {
        vocabulary->word[slot->index].count += times;
        return true;
    }
    at_word *new_word = &vocabulary->word[vocabulary->count];
    *new_word = (at_word){.start = vocabulary->text.size, .hash = hash, .count = times, .seen = vocabulary->count};
    while (unit.size > 0) {
        char clean[4];
        size_t length = next_clean(&unit, clean);
        at_buffer_add(&vocabulary->text, clean, length);
    }
    new_word->size = vocabulary->text.size - new_word->start;
    at_buffer_add(&vocabulary->text, "", 1);
    if (vocabulary->text.failed)
        return at_vocabulary_no_memory(error);
    at_table_put(&vocabulary->table, slot, hash, vocabulary->count++);
    return true;
}

/* The number after a colon. */
static bool read_size(const char *kind, const char *digits, char **end, int64_t *size, at_error *error)
{
    char shown[AT_SHOWN];
    long long limit = strtoll(digits, end, 10);
    *size = limit;
    bool ends = **end == '\0' || (**end == ':' && kind[0] == 's'); /* spm:8000:bpe */
    return (ends && *digits >= '0' && *digits <= '9' && limit >= 1 && limit <= INT32_MAX / 4) ||
           at_fail(error, AT_USAGE, "the size of vocabulary '%s' is a whole number, 1 or more, as in '%.*s:8000'",
                   at_shown(kind, shown, sizeof shown), (int)strcspn(kind, ":"), kind);
}

static bool not_a_kind(const char *kind, at_error *error)
{
    static const char *const names[] = {"char", "word", "spm"};
    char shown[AT_SHOWN], near[100] = "", name[8];
    bool known = false;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(kind, ":"), kind);
    for (int i = 0; i < 3; i++)
        known = known || strcmp(name, names[i]) == 0;
    if (!known)
        at_suggest(name, names, 3, near, sizeof near);
    return at_fail(
        error, AT_USAGE, "no vocabulary '%s'%s", at_shown(kind, shown, sizeof shown),
        near[0] ? near
                : "; there are 'char', 'word', 'word:8000', 'spm:8000', 'spm:8000:bpe', files that end in .spm or "
                  ".model, and files of units such as ./words or words.txt");
}

static bool ends_in(const char *text, const char *ending)
{
    size_t length = strlen(text), size = strlen(ending);
    return length > size && strcmp(text + length - size, ending) == 0;
}

static bool is_subword_file(const char *kind)
{
    return ends_in(kind, ".spm") || ends_in(kind, ".model");
}

/* No kind has a dot or a slash. */
static bool is_file(const char *kind)
{
    return strpbrk(kind, "./");
}

/* "spm:8000" or "spm:8000:bpe" */
static bool read_subwords(at_vocabulary *vocabulary, const char *kind, at_error *error)
{
    char *end;
    int64_t size;
    if (strncmp(kind, "spm:", 4) != 0)
        return at_fail(error, AT_USAGE, "vocabulary 'spm' needs its size, as in 'spm:8000'");
    if (!read_size(kind, kind + 4, &end, &size, error))
        return false;
    bool bpe = strcmp(end, ":bpe") == 0;
    if (!bpe && *end != '\0' && strcmp(end, ":unigram") != 0)
        return not_a_kind(kind, error);
    vocabulary->subwords = at_subwords_new(size, bpe, error);
    return vocabulary->subwords;
}

/* "model.spm" */
static bool read_subwords_file(at_vocabulary *vocabulary, const char *path, at_error *error)
{
    size_t size;
    unsigned char *bytes = at_file_read(path, &size, error);
    vocabulary->subwords = bytes ? at_subwords_new(0, false, error) : NULL;
    if (!vocabulary->subwords) {
        free(bytes);
        return false;
    }
    return at_subwords_take(vocabulary->subwords, bytes, size, path, error) &&
           at_vocabulary_take_pieces(vocabulary, error);
}

/* "word:8000" */
static bool read_kind(at_vocabulary *vocabulary, const char *kind, at_error *error)
{
    size_t length = strcspn(kind, ":");
    char *end;
    vocabulary->words = length == 4 && strncmp(kind, "word", 4) == 0;
    if (length == 3 && strncmp(kind, "spm", 3) == 0)
        return read_subwords(vocabulary, kind, error);
    if (is_subword_file(kind))
        return read_subwords_file(vocabulary, kind, error);
    if (is_file(kind))
        return at_vocabulary_read_units(vocabulary, kind, error);
    if (!vocabulary->words && !(length == 4 && strncmp(kind, "char", 4) == 0))
        return not_a_kind(kind, error);
    if (kind[length] == '\0')
        return true;
    return read_size(kind, kind + length + 1, &end, &vocabulary->limit, error);
}

at_vocabulary *at_vocabulary_new(const char *kind, at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    at_vocabulary *vocabulary = calloc(1, sizeof *vocabulary);
    if (!vocabulary)
        at_vocabulary_no_memory(error);
    else if (read_kind(vocabulary, kind, error))
        return vocabulary;
    at_vocabulary_free(vocabulary);
    return NULL;
}

bool at_vocabulary_kind_known(const char *kind, at_error *error)
{
    at_vocabulary *vocabulary = is_file(kind) ? NULL : at_vocabulary_new(kind, error);
    at_vocabulary_free(vocabulary);
    return error->code == AT_OK;
}

at_vocabulary *at_vocabulary_share(at_vocabulary *vocabulary)
{
    if (vocabulary)
        __atomic_add_fetch(&vocabulary->shares, 1, __ATOMIC_RELAXED);
    return vocabulary;
}

void at_vocabulary_free(at_vocabulary *vocabulary)
{
    if (!vocabulary || __atomic_fetch_sub(&vocabulary->shares, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    at_buffer_free(&vocabulary->text);
    free(vocabulary->word);
    at_table_free(&vocabulary->table);
    at_subwords_free(vocabulary->subwords);
    free(vocabulary);
}

void at_vocabulary_normalise(at_vocabulary *vocabulary, at_cleaning cleaning)
{
    vocabulary->cleaning = cleaning;
    if (!vocabulary->words)
        vocabulary->cleaning.tokens = AT_TOKENS_NONE;
}

bool at_vocabulary_take_pieces(at_vocabulary *vocabulary, at_error *error)
{
    const at_spm_info *info = &vocabulary->subwords->info;
    for (int32_t i = 0; i < info->count; i++)
        if (!at_vocabulary_add(vocabulary, (at_unit){info->piece[i].text, info->piece[i].size, 0}, 0, error))
            return false;
    vocabulary->fixed = true;
    return true;
}

static bool count_units(at_vocabulary *vocabulary, const char *line, size_t size, at_error *error)
{
    at_units units = {line, line + size, vocabulary->words};
    at_unit unit;
    while (at_units_next(&units, &unit))
        if (!at_vocabulary_add(vocabulary, unit, 1, error))
            return false;
    return true;
}

bool at_vocabulary_count(at_vocabulary *vocabulary, const char *line, size_t size, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    if (vocabulary->given || (vocabulary->subwords && vocabulary->subwords->spm))
        return true; /* the units of a file are not counted */
    if (vocabulary->fixed)
        return at_fail(error, AT_USAGE, "a fixed vocabulary cannot count more lines");
    if (!at_vocabulary_cleans(vocabulary))
        return count_units(vocabulary, line, size, error);
    at_clean clean = {0};
    bool good = at_clean_line(&clean, vocabulary->cleaning, line, size) || at_vocabulary_no_memory(error);
    if (good && vocabulary->subwords)
        good = at_subwords_count(vocabulary->subwords, clean.text.bytes, clean.text.size, error);
    else if (good)
        good = count_units(vocabulary, clean.text.bytes, clean.text.size, error);
    at_clean_free(&clean);
    return good;
}

/* More frequent first; of equally frequent ones the first seen. No two compare equal, so every sort results in this
 * order. */
static int by_frequency(const void *left, const void *right)
{
    const at_word *a = left, *b = right;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return a->seen < b->seen ? -1 : 1;
}

/* Every unit by its new index. */
static bool fill_table(at_vocabulary *vocabulary)
{
    at_table *table = &vocabulary->table;
    at_table_clear(table);
    if (!at_table_reserve(table, (size_t)vocabulary->count))
        return false;
    for (int32_t i = 0; i < vocabulary->count; i++) {
        const at_word *word = &vocabulary->word[i];
        const at_unit unit = {vocabulary->text.bytes + word->start, word->size, 0};
        at_table_put(table, find_slot(vocabulary, unit, word->hash), word->hash, i);
    }
    return true;
}

bool at_vocabulary_fix(at_vocabulary *vocabulary, at_error *error)
{
    if (error->code != AT_OK || vocabulary->fixed)
        return error->code == AT_OK;
    if (vocabulary->subwords)
        return at_subwords_train(vocabulary->subwords, error) && at_vocabulary_take_pieces(vocabulary, error);
    if (vocabulary->count == 0)
        return at_fail(error, AT_FORMAT, "the text has no %s to build a vocabulary from",
                       vocabulary->words ? "word" : "character");
    qsort(vocabulary->word, (size_t)vocabulary->count, sizeof *vocabulary->word, by_frequency);
    if (vocabulary->limit > 0 && vocabulary->limit < vocabulary->count)
        vocabulary->count = (int32_t)vocabulary->limit;
    at_buffer text = {0}; /* without the units that were dropped */
    for (int32_t i = 0; i < vocabulary->count; i++) {
        at_word *kept = &vocabulary->word[i];
        size_t start = text.size;
        at_buffer_add(&text, vocabulary->text.bytes + kept->start, kept->size + 1);
        kept->start = start;
    }
    at_buffer_free(&vocabulary->text);
    vocabulary->text = text;
    if (text.failed)
        return at_vocabulary_no_memory(error);
    if (!fill_table(vocabulary))
        return at_vocabulary_no_memory(error);
    vocabulary->fixed = true;
    return true;
}
