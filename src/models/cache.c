/* Slots for words come from an arena, a block of rows x width numbers for each step; a table of pointers says which
 * slot is whose. Two tables take turns when rows are picked. */
#include "models/cache.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SOURCES = 64 };

typedef struct places {
    at_real **word;      /* [rows, room]: where each word's numbers lie */
    int64_t *at, *count; /* [rows]: positions of the source */
    int64_t words, rows; /* how many of either there is memory for */
} places;

struct at_cache {
    at_arena *memory;
    places table[2];
    int now;
    int64_t rows, steps, room; /* room: steps in a row of the table */
    int layers;
    at_shape shape[MOST_SOURCES];
    at_real *source[MOST_SOURCES];
};

at_cache *at_cache_new(void)
{
    at_cache *cache = calloc(1, sizeof *cache);
    if (cache && !(cache->memory = at_arena_new())) {
        free(cache);
        return NULL;
    }
    return cache;
}

static void free_places(places *p)
{
    free(p->word);
    free(p->at);
    free(p->count);
}

void at_cache_free(at_cache *cache)
{
    if (!cache)
        return;
    free_places(&cache->table[0]);
    free_places(&cache->table[1]);
    at_arena_free(cache->memory);
    free(cache);
}

int64_t at_cache_rows(const at_cache *cache)
{
    return cache->rows;
}

int64_t at_cache_steps(const at_cache *cache)
{
    return cache->steps;
}

static bool out_of_memory(at_error *error)
{
    return at_fail(error, AT_FAILED,
                   "memory is out: a decoder's cache cannot grow; a smaller batch or beam takes less");
}

/* Twice as much as asked for: a search that grows by a row or a step at a time then asks seldom. */
static bool renew(void **memory, int64_t count, size_t size)
{
    free(*memory);
    *memory = malloc((size_t)(2 * count) * size);
    return *memory != NULL;
}

static bool reserve(places *p, int64_t rows, int64_t room, at_error *error)
{
    if (p->rows < rows) {
        p->rows = 0;
        if (!renew((void **)&p->at, rows, sizeof *p->at) || !renew((void **)&p->count, rows, sizeof *p->count))
            return out_of_memory(error);
        p->rows = 2 * rows;
    }
    if (p->words < rows * room) {
        p->words = 0;
        if (!renew((void **)&p->word, rows * room, sizeof *p->word))
            return out_of_memory(error);
        p->words = 2 * rows * room;
    }
    return true;
}

bool at_cache_begin(at_cache *cache, int64_t rows, int layers, at_tensor *const *source, const int64_t *at,
                    const int64_t *count, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    if (layers > MOST_SOURCES)
        return at_fail(error, AT_FAILED, "a decoder's cache holds %d layers at most, and not %d", MOST_SOURCES, layers);
    at_arena_reset(cache->memory);
    cache->steps = 0;
    cache->rows = rows;
    cache->layers = layers;
    for (int l = 0; l < layers; l++) {
        if (!source[l])
            return at_fail(error, AT_FAILED, "layer %d of a source is missing, so it cannot be kept", l + 1);
        size_t bytes = (size_t)at_shape_count(source[l]->shape) * sizeof(at_real);
        cache->shape[l] = source[l]->shape;
        cache->source[l] = at_arena_take(cache->memory, bytes);
        if (!cache->source[l])
            return out_of_memory(error);
        memcpy(cache->source[l], source[l]->value, bytes);
    }
    places *p = &cache->table[cache->now];
    if (!reserve(p, rows, cache->room, error))
        return false;
    for (int64_t b = 0; b < rows; b++) {
        p->at[b] = layers ? at[b] : 0;
        p->count[b] = layers ? count[b] : 0;
    }
    return true;
}

/* The other table becomes the one in use: rows[i] (NULL: i) of the old one, with `room` steps to a row. */
static bool turn(at_cache *cache, const int64_t *rows, int64_t count, int64_t room, at_error *error)
{
    const places *from = &cache->table[cache->now];
    places *to = &cache->table[!cache->now];
    if (!reserve(to, count, room, error))
        return false;
    for (int64_t i = 0; i < count; i++) {
        int64_t row = rows ? rows[i] : i;
        if (cache->steps)
            memcpy(to->word + i * room, from->word + row * cache->room, (size_t)cache->steps * sizeof *to->word);
        to->at[i] = from->at[row];
        to->count[i] = from->count[row];
    }
    cache->room = room;
    cache->rows = count;
    cache->now = !cache->now;
    return true;
}

bool at_cache_select(at_cache *cache, const int64_t *rows, int64_t count, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (rows[i] < 0 || rows[i] >= cache->rows)
            return at_fail(error, AT_FAILED, "row %lld is picked from a cache of %lld rows", (long long)rows[i],
                           (long long)cache->rows);
    return turn(cache, rows, count, cache->room, error);
}

bool at_cache_extend(at_cache *cache, int64_t steps, int64_t width, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    if (cache->steps + steps > cache->room && !turn(cache, NULL, cache->rows, 2 * (cache->steps + steps), error))
        return false;
    const int64_t line = AT_ALIGN / (int64_t)sizeof(at_real), apart = (width + line - 1) / line * line;
    at_real *slots = at_arena_take(cache->memory, (size_t)(steps * cache->rows * apart) * sizeof *slots);
    if (!slots)
        return out_of_memory(error);
    at_real **word = cache->table[cache->now].word;
    for (int64_t b = 0; b < cache->rows; b++)
        for (int64_t t = 0; t < steps; t++)
            word[b * cache->room + cache->steps + t] = slots + (t * cache->rows + b) * apart;
    cache->steps += steps;
    return true;
}

at_real *at_cache_word(const at_cache *cache, int64_t b, int64_t step)
{
    return cache->table[cache->now].word[b * cache->room + step];
}

/* Query row b is row b of the step's tensors. */
static bool one_query_each(const at_cache *cache, at_tape *tape, at_packed *packed, int64_t **at, int64_t **count)
{
    int64_t *numbers = at_arena_take(at_tape_arena(tape), (size_t)(4 * cache->rows + 1) * sizeof *numbers);
    if (!numbers)
        return out_of_memory(at_tape_error(tape));
    for (int64_t b = 0; b < cache->rows; b++) {
        numbers[b] = b;
        numbers[cache->rows + b] = 1;
    }
    *at = numbers + 2 * cache->rows;
    *count = numbers + 3 * cache->rows;
    packed->batch = cache->rows;
    packed->query_at = numbers;
    packed->query_count = numbers + cache->rows;
    packed->key_at = *at;
    packed->key_count = *count;
    return true;
}

bool at_cache_look(const at_cache *cache, at_tape *tape, int64_t steps, at_packed *packed)
{
    int64_t *at = NULL, *count = NULL;
    if (!one_query_each(cache, tape, packed, &at, &count))
        return false;
    for (int64_t b = 0; b < cache->rows; b++) {
        at[b] = 0;
        count[b] = steps;
    }
    packed->key_row = (const at_real *const *)cache->table[cache->now].word;
    packed->key_row_stride = cache->room;
    return true;
}

at_tensor *at_cache_look_source(const at_cache *cache, at_tape *tape, int layer, at_packed *packed)
{
    int64_t *at = NULL, *count = NULL;
    if (!one_query_each(cache, tape, packed, &at, &count))
        return NULL;
    const places *p = &cache->table[cache->now];
    memcpy(at, p->at, (size_t)cache->rows * sizeof *at);
    memcpy(count, p->count, (size_t)cache->rows * sizeof *count);
    return at_leaf(tape, cache->shape[layer], cache->source[layer], NULL, false);
}
