/* Words and n-grams as numbers, so that equal ones are found by comparing integers. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "score/judge.h"

bool at_no_memory_to_score(at_error *error)
{
    return at_fail(error, AT_FAILED, "memory ran out for a score");
}

bool at_judge_room(void *pointer, size_t *room, size_t count, size_t size)
{
    void *memory;
    size_t need = count > 0 ? count : 1, bytes;
    if (need <= *room)
        return true;
    if (*room <= SIZE_MAX / 2 && need < 2 * *room)
        need = 2 * *room;
    memcpy(&memory, pointer, sizeof memory);
    void *larger = at_size_mul(need, size, &bytes) ? realloc(memory, bytes) : NULL;
    if (larger == NULL)
        return false;
    memcpy(pointer, &larger, sizeof larger);
    *room = need;
    return true;
}

void at_judge_scratch_free(at_judge_scratch *scratch)
{
    at_words_free(&scratch->words);
    free(scratch->dictionary.slot);
    free(scratch->dictionary.bytes);
    free(scratch->units.id);
    free(scratch->units.start);
    free(scratch->characters.id);
    free(scratch->characters.start);
    free(scratch->grams.number);
    free(scratch->grams.most);
    free(scratch->grams.now);
    free(scratch->grams.slot);
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
        (sequences->used >= INT32_MAX ||
         !at_judge_room(&sequences->id, &sequences->room, 2 * sequences->used + 64, sizeof id)))
        return false;
    sequences->id[sequences->used++] = id;
    return true;
}

bool at_sequences_end(at_sequences *sequences)
{
    if (!at_judge_room(&sequences->start, &sequences->start_room, (size_t)sequences->count + 2, sizeof(int64_t)))
        return false;
    if (sequences->count == 0)
        sequences->start[0] = 0;
    sequences->start[++sequences->count] = (int64_t)sequences->used;
    return true;
}

/* ---- Hashing -------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCDu;
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53u;
    return x ^ x >> 33;
}

static uint64_t hash_of(const char *text, size_t size)
{
    uint64_t hash = size, part;
    for (; size >= sizeof part; text += sizeof part, size -= sizeof part) {
        memcpy(&part, text, sizeof part);
        hash = mix(hash ^ part);
    }
    part = 0;
    if (size > 0)
        memcpy(&part, text, size);
    return mix(hash ^ part);
}

/* The smallest power of two that leaves half of the slots free. */
static size_t slots_for(size_t count)
{
    size_t slots = 64;
    while (slots < 2 * count)
        slots *= 2;
    return slots;
}

/* ---- The dictionary ------------------------------------------------------------------------------------------- */

struct at_dictionary_slot {
    uint64_t hash;
    size_t place, size; /* of its bytes */
    int32_t number;     /* -1: the slot is free */
};

void at_dictionary_clear(at_dictionary *dictionary)
{
    dictionary->slots = 0;
    dictionary->used = 0;
    dictionary->size = 0;
}

/* The slot of a word, or the free one where it belongs. */
static struct at_dictionary_slot *find_word(const at_dictionary *dictionary, uint64_t hash, const char *text,
                                            size_t size)
{
    for (size_t at = hash & (dictionary->slots - 1);; at = (at + 1) & (dictionary->slots - 1)) {
        struct at_dictionary_slot *slot = &dictionary->slot[at];
        if (slot->number < 0 || (slot->hash == hash && slot->size == size &&
                                 (size == 0 || memcmp(dictionary->bytes + slot->place, text, size) == 0)))
            return slot;
    }
}

static void free_slots(struct at_dictionary_slot *slot, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        slot[i].number = -1;
}

/* Makes the slots twice as many: those of a half that find their place taken by the old order move on. */
static bool grow(at_dictionary *dictionary)
{
    size_t slots = slots_for((size_t)dictionary->used + 32), before = dictionary->slots;
    struct at_dictionary_slot *old = NULL;
    if (before > 0) {
        if ((old = malloc(before * sizeof *old)) == NULL)
            return false;
        memcpy(old, dictionary->slot, before * sizeof *old);
    }
    bool good = at_judge_room(&dictionary->slot, &dictionary->slot_room, slots, sizeof *old);
    if (good) {
        dictionary->slots = slots;
        free_slots(dictionary->slot, 0, slots);
        for (size_t i = 0; i < before; i++)
            if (old[i].number >= 0) {
                size_t at = old[i].hash & (slots - 1);
                while (dictionary->slot[at].number >= 0)
                    at = (at + 1) & (slots - 1);
                dictionary->slot[at] = old[i];
            }
    }
    free(old);
    return good;
}

int32_t at_dictionary_number(at_dictionary *dictionary, const char *text, size_t size)
{
    if (2 * (size_t)dictionary->used >= dictionary->slots && !grow(dictionary))
        return -1;
    uint64_t hash = hash_of(text, size);
    struct at_dictionary_slot *slot = find_word(dictionary, hash, text, size);
    if (slot->number >= 0)
        return slot->number;
    if (dictionary->used == INT32_MAX ||
        !at_judge_room(&dictionary->bytes, &dictionary->room, dictionary->size + size, 1))
        return -1;
    *slot = (struct at_dictionary_slot){hash, dictionary->size, size, dictionary->used++};
    memcpy(dictionary->bytes + dictionary->size, text, size);
    dictionary->size += size;
    return slot->number;
}

/* ---- n-grams -------------------------------------------------------------------------------------------------- */

/* An n-gram is the pair of the (n-1)-gram before its last unit and that unit:
 *   number_n(i) = the number of the pair (number_(n-1)(i), id(i + n - 1)),   number_0 = 0,
 * so that two numbers are equal if and only if the n-grams are, and none is ever compared unit by unit. */
struct at_grams_slot {
    uint64_t pair;
    int32_t number; /* -1: the slot is free */
};

bool at_grams_start(at_grams *grams, const at_sequences *sequences)
{
    size_t count = sequences->used, room = grams->room, same = grams->room;
    grams->of = sequences;
    grams->order = 0;
    grams->slots = slots_for(count);
    if (!at_judge_room(&grams->number, &room, count, sizeof *grams->number))
        return false;
    room = same;
    if (!at_judge_room(&grams->most, &room, count, sizeof *grams->most))
        return false;
    if (!at_judge_room(&grams->now, &same, count, sizeof *grams->now) ||
        !at_judge_room(&grams->slot, &grams->slot_room, grams->slots, sizeof *grams->slot))
        return false;
    grams->room = same;
    memset(grams->number, 0, count * sizeof *grams->number);
    memset(grams->most, 0, count * sizeof *grams->most);
    memset(grams->now, 0, count * sizeof *grams->now);
    return true;
}

static int32_t number_of(at_grams *grams, uint64_t pair, int32_t *used)
{
    for (size_t at = mix(pair) & (grams->slots - 1);; at = (at + 1) & (grams->slots - 1)) {
        struct at_grams_slot *slot = &grams->slot[at];
        if (slot->number >= 0 && slot->pair == pair)
            return slot->number;
        if (slot->number < 0) {
            *slot = (struct at_grams_slot){pair, (*used)++};
            return slot->number;
        }
    }
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
    int32_t used = 0;
    grams->order++;
    for (size_t i = 0; i < grams->slots; i++)
        grams->slot[i].number = -1;
    for (int s = 0; s < of->count; s++) {
        int32_t *number = grams->number + of->start[s];
        const int32_t *last = of->id + of->start[s] + grams->order - 1;
        for (int64_t i = 0, count = at_grams_count(grams, s); i < count; i++)
            number[i] = number_of(grams, (uint64_t)(uint32_t)number[i] << 32 | (uint32_t)last[i], &used);
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
