#include "score/ngrams_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"

/* ---- Sequences ------------------------------------------------------------------------------------------------ */

void at_sequences_clear(at_sequences *sequences)
{
    sequences->used = 0;
    sequences->count = 0;
}

void at_sequences_free(at_sequences *sequences)
{
    free(sequences->id);
    free(sequences->start);
}

/* Indices of n-grams are int32_t, so there are no more ids than that. */
bool at_sequences_add(at_sequences *sequences, int32_t id)
{
    if (sequences->used == sequences->room &&
        (sequences->used >= INT32_MAX || !AT_GROW(sequences->id, sequences->room, sequences->used + 1)))
        return false;
    sequences->id[sequences->used++] = id;
    return true;
}

bool at_sequences_end(at_sequences *sequences)
{
    /* Without a single id there is an array as well, because NULL + 0 is undefined. */
    if (!AT_GROW(sequences->start, sequences->start_room, (size_t)sequences->count + 2) ||
        !AT_GROW(sequences->id, sequences->room, sequences->used))
        return false;
    if (sequences->count == 0)
        sequences->start[0] = 0;
    sequences->start[++sequences->count] = (int64_t)sequences->used;
    return true;
}

/* ---- The dictionary ------------------------------------------------------------------------------------------- */

void at_dictionary_clear(at_dictionary *dictionary)
{
    at_table_clear(&dictionary->table);
    dictionary->used = 0;
    dictionary->size = 0;
}

void at_dictionary_free(at_dictionary *dictionary)
{
    at_table_free(&dictionary->table);
    free(dictionary->start);
    free(dictionary->bytes);
}

static bool is_word(const void *items, int32_t index, const void *key)
{
    const at_dictionary *dictionary = items;
    const at_line *word = key;
    const size_t start = dictionary->start[index], size = dictionary->start[index + 1] - start;
    return size == word->size && memcmp(dictionary->bytes + start, word->text, size) == 0;
}

int32_t at_dictionary_id(at_dictionary *dictionary, const char *text, size_t size)
{
    const size_t used = (size_t)dictionary->used;
    if (used == INT32_MAX - 1 || !at_table_reserve(&dictionary->table, used + 1))
        return -1;
    const uint64_t hash = at_hash_quick(text, size);
    at_table_slot *slot = at_table_find(&dictionary->table, hash, is_word, dictionary, &(at_line){text, size});
    if (slot->index >= 0)
        return slot->index;
    if (!AT_GROW(dictionary->start, dictionary->start_room, used + 2) ||
        !AT_GROW(dictionary->bytes, dictionary->room, dictionary->size + size))
        return -1;
    memcpy(dictionary->bytes + dictionary->size, text, size);
    dictionary->start[used] = dictionary->size;
    dictionary->start[used + 1] = dictionary->size += size;
    at_table_put(&dictionary->table, slot, hash, dictionary->used);
    return dictionary->used++;
}

/* ---- n-grams -------------------------------------------------------------------------------------------------- */

/* An n-gram is the pair of the (n-1)-gram before its last unit and that unit:
 *   id_n(i) = the id of the pair (id_(n-1)(i), unit(i + n - 1)),   id_0 = 0,
 * so that two ids are equal if and only if the n-grams are, and no n-gram is ever compared unit by unit. */
void at_grams_free(at_grams *grams)
{
    free(grams->id);
    free(grams->most);
    free(grams->now);
    at_table_free(&grams->table);
}

bool at_grams_start(at_grams *grams, const at_sequences *sequences)
{
    const size_t count = sequences->used;
    size_t room[3] = {grams->room, grams->room, grams->room};
    grams->of = sequences;
    grams->order = 0;
    at_table_clear(&grams->table);
    if (!AT_GROW(grams->id, room[0], count) || !AT_GROW(grams->most, room[1], count) ||
        !AT_GROW(grams->now, room[2], count) || !at_table_reserve(&grams->table, count))
        return false;
    grams->room = room[0];
    memset(grams->id, 0, count * sizeof *grams->id);
    memset(grams->most, 0, count * sizeof *grams->most);
    memset(grams->now, 0, count * sizeof *grams->now);
    return true;
}

/* Different pairs have different hashes, so the table need not compare pairs. */
static int32_t id_of(at_table *table, uint64_t pair)
{
    const uint64_t hash = at_hash_mix(pair);
    at_table_slot *slot = at_table_find(table, hash, NULL, NULL, NULL);
    if (slot->index < 0)
        at_table_put(table, slot, hash, (int32_t)table->count);
    return slot->index;
}

int64_t at_grams_count(const at_grams *grams, int sequence)
{
    const int64_t *start = grams->of->start;
    int64_t count = start[sequence + 1] - start[sequence] - grams->order + 1;
    return count > 0 ? count : 0;
}

void at_grams_step(at_grams *grams)
{
    const at_sequences *of = grams->of;
    grams->order++;
    at_table_clear(&grams->table);
    at_table_reserve(&grams->table, of->used); /* cannot fail: at_grams_start had the memory allocated */
    for (int s = 0; s < of->count; s++) {
        int32_t *id = grams->id + of->start[s];
        const int64_t last = of->start[s] + grams->order - 1; /* beyond the ids if the sequence is short */
        for (int64_t i = 0, count = at_grams_count(grams, s); i < count; i++)
            id[i] = id_of(&grams->table, (uint64_t)(uint32_t)id[i] << 32 | (uint32_t)of->id[last + i]);
    }
}

int64_t at_grams_common(at_grams *grams, int first, int last)
{
    const int64_t *start = grams->of->start;
    int64_t common = 0;
    for (int s = first; s <= last; s++) {
        const int32_t *id = grams->id + start[s];
        int64_t count = at_grams_count(grams, s);
        for (int64_t i = 0; i < count; i++) {
            int32_t now = ++grams->now[id[i]];
            if (now > grams->most[id[i]])
                grams->most[id[i]] = now;
        }
        for (int64_t i = 0; i < count; i++)
            grams->now[id[i]] = 0;
    }
    const int32_t *id = grams->id + start[0];
    for (int64_t i = 0, count = at_grams_count(grams, 0); i < count; i++)
        if (grams->most[id[i]] > 0) {
            grams->most[id[i]]--;
            common++;
        }
    for (int s = first; s <= last; s++) /* zeros for the next call */
        for (int64_t i = 0, count = at_grams_count(grams, s); i < count; i++)
            grams->most[grams->id[start[s] + i]] = 0;
    return common;
}
