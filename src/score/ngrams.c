/* Words and n-grams as numbers, so that equal ones are found by comparing integers. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/hash.h"
#include "score/judge.h"

bool at_no_memory_to_score(at_error *error)
{
    return at_no_memory(error, "a score");
}

void at_judge_scratch_free(at_judge_scratch *scratch)
{
    at_words_free(&scratch->words);
    at_table_free(&scratch->dictionary.table);
    free(scratch->dictionary.start);
    free(scratch->dictionary.bytes);
    free(scratch->units.id);
    free(scratch->units.start);
    free(scratch->characters.id);
    free(scratch->characters.start);
    free(scratch->grams.number);
    free(scratch->grams.most);
    free(scratch->grams.now);
    at_table_free(&scratch->grams.table);
    free(scratch->lowered);
    free(scratch->lines);
    free(scratch->tallies);
    free(scratch->masks);
    free(scratch->steps);
    *scratch = (at_judge_scratch){0};
}

/* ---- Sequences ------------------------------------------------------------------------------------------------ */

void at_sequences_clear(at_sequences *sequences)
{
    sequences->used = 0;
    sequences->count = 0;
}

/* Numbers are int32_t, so there are no more ids than that. */
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
    if (!AT_GROW(sequences->start, sequences->start_room, (size_t)sequences->count + 2))
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

static bool is_word(const void *items, int32_t index, const void *key)
{
    const at_dictionary *dictionary = items;
    const at_line *word = key;
    const size_t start = dictionary->start[index], size = dictionary->start[index + 1] - start;
    return size == word->size && memcmp(dictionary->bytes + start, word->text, size) == 0;
}

int32_t at_dictionary_number(at_dictionary *dictionary, const char *text, size_t size)
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
 *   number_n(i) = the number of the pair (number_(n-1)(i), id(i + n - 1)),   number_0 = 0,
 * so that two numbers are equal if and only if the n-grams are, and none is ever compared unit by unit. */
bool at_grams_start(at_grams *grams, const at_sequences *sequences)
{
    const size_t count = sequences->used;
    size_t room[3] = {grams->room, grams->room, grams->room};
    grams->of = sequences;
    grams->order = 0;
    if (!AT_GROW(grams->number, room[0], count) || !AT_GROW(grams->most, room[1], count) ||
        !AT_GROW(grams->now, room[2], count) || !at_table_reserve(&grams->table, count))
        return false;
    grams->room = room[0];
    memset(grams->number, 0, count * sizeof *grams->number);
    memset(grams->most, 0, count * sizeof *grams->most);
    memset(grams->now, 0, count * sizeof *grams->now);
    return true;
}

/* Different pairs have different hashes. */
static int32_t number_of(at_table *table, uint64_t pair)
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
    at_table_reserve(&grams->table, of->used); /* it has the memory */
    for (int s = 0; s < of->count; s++) {
        int32_t *number = grams->number + of->start[s];
        const int32_t *last = of->id + of->start[s] + grams->order - 1;
        for (int64_t i = 0, count = at_grams_count(grams, s); i < count; i++)
            number[i] = number_of(&grams->table, (uint64_t)(uint32_t)number[i] << 32 | (uint32_t)last[i]);
    }
}

int64_t at_grams_common(at_grams *grams, int first, int last)
{
    const int64_t *start = grams->of->start;
    int64_t common = 0;
    for (int s = first; s <= last; s++) {
        const int32_t *number = grams->number + start[s];
        int64_t count = at_grams_count(grams, s);
        for (int64_t i = 0; i < count; i++) {
            int32_t now = ++grams->now[number[i]];
            if (now > grams->most[number[i]])
                grams->most[number[i]] = now;
        }
        for (int64_t i = 0; i < count; i++)
            grams->now[number[i]] = 0;
    }
    const int32_t *number = grams->number + start[0];
    for (int64_t i = 0, count = at_grams_count(grams, 0); i < count; i++)
        if (grams->most[number[i]] > 0) {
            grams->most[number[i]]--;
            common++;
        }
    for (int s = first; s <= last; s++) /* zeros for the next */
        for (int64_t i = 0, count = at_grams_count(grams, s); i < count; i++)
            grams->most[grams->number[start[s] + i]] = 0;
    return common;
}
