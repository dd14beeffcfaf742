#include "vocabulary.h"

#include "units.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One unit: its text lies in the vocabulary's `text` and ends in a NUL. */
typedef struct word {
    size_t start, size;
    uint64_t hash;
    int64_t count;
    int32_t seen; /* how many units were seen before it */
} word;

struct at_vocabulary {
    bool words, fixed;
    int64_t limit; /* units to keep; 0: all */
    at_buffer text;
    word *word; /* in the order of their ids, once fixed */
    int32_t count, room;
    int32_t *slot; /* open addressing: an index into `word`, -1 for a free slot */
    size_t slots;  /* a power of two, at least twice `count` */
};

static const char *const special_names[AT_SPECIALS] = {"<pad>", "<unk>", "<s>", "</s>"};

/* ---- Finding a unit ------------------------------------------------------------------------------------------- */

/* FNV-1a: h = (h xor byte) * prime. */
static uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3;
    return hash;
}

/* The next code point of a unit as clean UTF-8; gives how many bytes of `clean` it takes. Units are looked up by their
 * clean text, and walking them so needs no memory. */
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
    uint64_t hash = 0xcbf29ce484222325;
    if (unit.broken == 0)
        return hash_bytes(hash, unit.text, unit.size);
    char clean[4];
    while (unit.size > 0) {
        size_t length = next_clean(&unit, clean);
        hash = hash_bytes(hash, clean, length);
    }
    return hash;
}

static bool same_unit(const char *text, size_t size, at_unit unit)
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

/* The slot that holds the unit, or the free one where it belongs. */
static size_t find_slot(const at_vocabulary *vocabulary, at_unit unit, uint64_t hash)
{
    size_t slot = hash & (vocabulary->slots - 1);
    while (vocabulary->slot[slot] >= 0) {
        const word *there = &vocabulary->word[vocabulary->slot[slot]];
        if (there->hash == hash && same_unit(vocabulary->text.bytes + there->start, there->size, unit))
            break;
        slot = (slot + 1) & (vocabulary->slots - 1);
    }
    return slot;
}

/* Every unit into its slot anew. */
static void fill_slots(at_vocabulary *vocabulary)
{
    memset(vocabulary->slot, -1, vocabulary->slots * sizeof *vocabulary->slot);
    for (int32_t i = 0; i < vocabulary->count; i++) {
        size_t slot = vocabulary->word[i].hash & (vocabulary->slots - 1);
        while (vocabulary->slot[slot] >= 0)
            slot = (slot + 1) & (vocabulary->slots - 1);
        vocabulary->slot[slot] = i;
    }
}

/* ---- Counting ------------------------------------------------------------------------------------------------- */

static bool no_memory(at_error *error)
{
    return at_fail(error, AT_FAILED, "memory ran out for a vocabulary");
}

static bool make_room(at_vocabulary *vocabulary, at_error *error)
{
    if (vocabulary->count < vocabulary->room)
        return true;
    if (vocabulary->room > INT32_MAX / 4)
        return at_fail(error, AT_FAILED, "a vocabulary holds at most %d different units", vocabulary->room);
    int32_t room = vocabulary->room == 0 ? 256 : vocabulary->room * 2;
    word *words = realloc(vocabulary->word, (size_t)room * sizeof *words);
    if (words == NULL)
        return no_memory(error);
    vocabulary->word = words;
    int32_t *slot = realloc(vocabulary->slot, (size_t)room * 2 * sizeof *slot);
    if (slot == NULL)
        return no_memory(error);
    vocabulary->slot = slot;
    vocabulary->slots = (size_t)room * 2;
    vocabulary->room = room;
    fill_slots(vocabulary);
    return true;
}

/* The unit, seen `times` more. */
static bool add(at_vocabulary *vocabulary, at_unit unit, int64_t times, at_error *error)
{
    if (!make_room(vocabulary, error))
        return false;
    uint64_t hash = hash_unit(unit);
    size_t slot = find_slot(vocabulary, unit, hash);
    if (vocabulary->slot[slot] >= 0) {
        vocabulary->word[vocabulary->slot[slot]].count += times;
        return true;
    }
    word *new_word = &vocabulary->word[vocabulary->count];
    *new_word = (word){.start = vocabulary->text.size, .hash = hash, .count = times, .seen = vocabulary->count};
    while (unit.size > 0) {
        char clean[4];
        size_t length = next_clean(&unit, clean);
        at_buffer_add(&vocabulary->text, clean, length);
    }
    new_word->size = vocabulary->text.size - new_word->start;
    at_buffer_add(&vocabulary->text, "", 1);
    if (vocabulary->text.failed)
        return no_memory(error);
    vocabulary->slot[slot] = vocabulary->count++;
    return true;
}

/* "word:8000" */
static bool read_kind(at_vocabulary *vocabulary, const char *kind, at_error *error)
{
    char shown[AT_SHOWN];
    size_t length = strcspn(kind, ":");
    vocabulary->words = length == 4 && strncmp(kind, "word", 4) == 0;
    if (!vocabulary->words && !(length == 4 && strncmp(kind, "char", 4) == 0))
        return at_fail(error, AT_USAGE, "no vocabulary '%s'; there are 'char' and 'word', and with a size 'word:8000'",
                       at_shown(kind, shown, sizeof shown));
    if (kind[length] == '\0')
        return true;
    const char *digits = kind + length + 1;
    char *end;
    long long limit = strtoll(digits, &end, 10);
    if (*digits < '0' || *digits > '9' || *end != '\0' || limit < 1 || limit > INT32_MAX / 2)
        return at_fail(error, AT_USAGE, "the size of vocabulary '%s' is a whole number, 1 or more, as in '%.4s:8000'",
                       at_shown(kind, shown, sizeof shown), kind);
    vocabulary->limit = limit;
    return true;
}

at_vocabulary *at_vocabulary_new(const char *kind, at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    at_vocabulary *vocabulary = calloc(1, sizeof *vocabulary);
    if (vocabulary == NULL)
        no_memory(error);
    else if (read_kind(vocabulary, kind, error))
        return vocabulary;
    at_vocabulary_free(vocabulary);
    return NULL;
}

void at_vocabulary_free(at_vocabulary *vocabulary)
{
    if (vocabulary == NULL)
        return;
    at_buffer_free(&vocabulary->text);
    free(vocabulary->word);
    free(vocabulary->slot);
    free(vocabulary);
}

bool at_vocabulary_count(at_vocabulary *vocabulary, const char *line, size_t size, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    if (vocabulary->fixed)
        return at_fail(error, AT_FAILED, "a vocabulary that is fixed counts no more lines");
    at_units units = {line, line + size, vocabulary->words};
    at_unit unit;
    while (at_units_next(&units, &unit))
        if (!add(vocabulary, unit, 1, error))
            return false;
    return true;
}

/* More frequent first; as frequent: seen first. No two are equal, so every sort gives this order. */
static int by_frequency(const void *left, const void *right)
{
    const word *a = left, *b = right;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return a->seen < b->seen ? -1 : 1;
}

bool at_vocabulary_fix(at_vocabulary *vocabulary, at_error *error)
{
    if (error->code != AT_OK || vocabulary->fixed)
        return error->code == AT_OK;
    if (vocabulary->count == 0)
        return at_fail(error, AT_FAILED, "a vocabulary of no %s is of no use: the text holds none",
                       vocabulary->words ? "word" : "character");
    qsort(vocabulary->word, (size_t)vocabulary->count, sizeof *vocabulary->word, by_frequency);
    if (vocabulary->limit > 0 && vocabulary->limit < vocabulary->count)
        vocabulary->count = (int32_t)vocabulary->limit;
    at_buffer text = {0}; /* without the units that were dropped */
    for (int32_t i = 0; i < vocabulary->count; i++) {
        word *kept = &vocabulary->word[i];
        size_t start = text.size;
        at_buffer_add(&text, vocabulary->text.bytes + kept->start, kept->size + 1);
        kept->start = start;
    }
    at_buffer_free(&vocabulary->text);
    vocabulary->text = text;
    if (text.failed)
        return no_memory(error);
    fill_slots(vocabulary);
    vocabulary->fixed = true;
    return true;
}

/* ---- Ids ------------------------------------------------------------------------------------------------------ */

int64_t at_vocabulary_size(const at_vocabulary *vocabulary)
{
    return vocabulary->fixed ? AT_SPECIALS + (int64_t)vocabulary->count : AT_SPECIALS;
}

static const word *word_of(const at_vocabulary *vocabulary, int32_t id)
{
    return id < AT_SPECIALS || id >= at_vocabulary_size(vocabulary) ? NULL : &vocabulary->word[id - AT_SPECIALS];
}

const char *at_vocabulary_unit(const at_vocabulary *vocabulary, int32_t id)
{
    if (id >= 0 && id < AT_SPECIALS)
        return special_names[id];
    const word *found = word_of(vocabulary, id);
    return found == NULL ? NULL : vocabulary->text.bytes + found->start;
}

int64_t at_vocabulary_frequency(const at_vocabulary *vocabulary, int32_t id)
{
    const word *found = word_of(vocabulary, id);
    return found == NULL ? 0 : found->count;
}

int64_t at_vocabulary_encode(const at_vocabulary *vocabulary, const char *line, size_t size, int32_t *ids, int64_t room,
                             int64_t *replaced, int32_t *pieces)
{
    at_units units = {line, line + size, vocabulary->words};
    at_unit unit;
    int64_t count = 0;
    *replaced = 0;
    for (; at_units_next(&units, &unit); count++) {
        *replaced += unit.broken;
        if (count >= room)
            continue;
        int32_t found = vocabulary->fixed ? vocabulary->slot[find_slot(vocabulary, unit, hash_unit(unit))] : -1;
        ids[count] = found < 0 ? AT_UNKNOWN : AT_SPECIALS + found;
        if (pieces != NULL) {
            pieces[2 * count] = (int32_t)(unit.text - line);
            pieces[2 * count + 1] = (int32_t)(unit.text - line + (ptrdiff_t)unit.size);
        }
    }
    return count;
}

bool at_vocabulary_decode(const at_vocabulary *vocabulary, const int32_t *ids, int64_t count, at_buffer *text)
{
    bool first = true;
    for (int64_t i = 0; i < count && ids[i] != AT_END; i++) {
        const word *found = word_of(vocabulary, ids[i]);
        if (found == NULL && ids[i] != AT_UNKNOWN)
            continue;
        if (vocabulary->words && !first)
            at_buffer_add(text, " ", 1);
        if (found != NULL)
            at_buffer_add(text, vocabulary->text.bytes + found->start, found->size);
        else
            at_buffer_print(text, "%s", special_names[AT_UNKNOWN]);
        first = false;
    }
    at_buffer_add(text, "", 0); /* no id at all still gives a text that ends in a NUL */
    return !text->failed;
}

/* ---- In a model file ------------------------------------------------------------------------------------------ */

char *at_vocabulary_to_json(const at_vocabulary *vocabulary, at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    json_t *root = json_object(), *units = json_array(), *counts = json_array();
    bool good = root != NULL && units != NULL && counts != NULL;
    for (int32_t i = 0; good && vocabulary->fixed && i < vocabulary->count; i++) {
        const word *one = &vocabulary->word[i];
        good = json_array_append_new(units, json_stringn(vocabulary->text.bytes + one->start, one->size)) == 0 &&
               json_array_append_new(counts, json_integer(one->count)) == 0;
    }
    good = good && json_object_set_new(root, "kind", json_string(vocabulary->words ? "word" : "char")) == 0;
    good = good && json_object_set(root, "units", units) == 0 && json_object_set(root, "counts", counts) == 0;
    char *text = good ? json_dumps(root, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(units);
    json_decref(counts);
    json_decref(root);
    if (text == NULL)
        no_memory(error);
    return text;
}

/* One unit of a file: it must be what its kind of vocabulary finds in a line, or it could never be told apart again. */
static bool add_from_json(at_vocabulary *vocabulary, json_t *text, json_t *count, at_error *error)
{
    size_t index = (size_t)vocabulary->count;
    if (!json_is_string(text) || !json_is_integer(count) || json_integer_value(count) < 0)
        return at_fail(error, AT_FAILED, "unit %zu of a stored vocabulary is no text with its count", index);
    const char *bytes = json_string_value(text);
    size_t size = json_string_length(text);
    at_units units = {bytes, bytes + size, vocabulary->words};
    at_unit unit;
    if (!at_units_next(&units, &unit) || unit.size != size || unit.broken != 0)
        return at_fail(error, AT_FAILED, "unit %zu of a stored vocabulary is not one %s", index,
                       vocabulary->words ? "word" : "character");
    if (!add(vocabulary, unit, json_integer_value(count), error))
        return false;
    if ((size_t)vocabulary->count == index) {
        char shown[AT_SHOWN];
        return at_fail(error, AT_FAILED, "a stored vocabulary has '%s' twice", at_shown(bytes, shown, sizeof shown));
    }
    return true;
}

at_vocabulary *at_vocabulary_from_json(const char *json, at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    json_error_t trouble;
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, &trouble);
    json_t *units = json_object_get(root, "units"), *counts = json_object_get(root, "counts");
    const char *kind = json_string_value(json_object_get(root, "kind"));
    at_vocabulary *vocabulary = NULL;
    if (root == NULL)
        at_fail(error, AT_FAILED, "a stored vocabulary is not JSON: %s", trouble.text);
    else if (kind == NULL || !json_is_array(units) || json_array_size(units) != json_array_size(counts))
        at_fail(error, AT_FAILED, "a stored vocabulary needs its kind, its units and as many counts");
    else
        vocabulary = at_vocabulary_new(kind, error);
    for (size_t i = 0; vocabulary != NULL && error->code == AT_OK && i < json_array_size(units); i++)
        add_from_json(vocabulary, json_array_get(units, i), json_array_get(counts, i), error);
    if (vocabulary != NULL && error->code == AT_OK && vocabulary->count == 0)
        at_fail(error, AT_FAILED, "a stored vocabulary has no unit");
    json_decref(root);
    if (error->code != AT_OK) {
        at_vocabulary_free(vocabulary);
        return NULL;
    }
    vocabulary->fixed = true; /* in the order of the file, whatever the counts say */
    return vocabulary;
}
