/* Slots come from an arena, a block of rows x width numbers for each step; a table holds the pointers of each row.
 * Selecting rows copies them from one of two tables to the other. */
#include "models/cache.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SOURCES = 64 };

typedef struct row_table {
    at_real **slot;      /* [rows, capacity]: the slot of each token */
    int64_t *at, *count; /* [rows]: first position and number of positions of the source */
    int64_t slots, rows; /* allocated */
} row_table;

struct at_cache {
    at_arena *arena;
    row_table table[2];
    int now;
    int64_t rows, steps, capacity; /* capacity: steps that fit into a row of the table */
    int layers;
    at_shape shape[MOST_SOURCES];
    at_real *source[MOST_SOURCES];
};

at_cache *at_cache_new(void)
{
    at_cache *cache = calloc(1, sizeof *cache);
    if (cache && !(cache->arena = at_arena_new())) {
        free(cache);
        return NULL;
    }
    return cache;
}

static void free_table(row_table *p)
{
    free(p->slot);
    free(p->at);
    free(p->count);
}

void at_cache_free(at_cache *cache)
{
    if (!cache)
        return;
    free_table(&cache->table[0]);
    free_table(&cache->table[1]);
    at_arena_free(cache->arena);
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
    return at_no_memory(error, "the decoder's cache; a smaller batch or beam needs less");
}

/* Allocates twice as much as needed, so that a search that grows step by step rarely allocates. */
static bool renew(void **array, int64_t count, size_t size)
{
    free(*array);
    *array = malloc((size_t)(2 * count) * size);
    return *array;
}

static bool reserve(row_table *p, int64_t rows, int64_t capacity, at_error *error)
{
    if (p->rows < rows) {
        p->rows = 0;
        if (!renew((void **)&p->at, rows, sizeof *p->at) || !renew((void **)&p->count, rows, sizeof *p->count))
            return out_of_memory(error);
        p->rows = 2 * rows;
    }
    if (p->slots < rows * capacity) {
        p->slots = 0;
        if (!renew((void **)&p->slot, rows * capacity, sizeof *p->slot))
            return out_of_memory(error);
        p->slots = 2 * rows * capacity;
    }
    return true;
}

bool at_cache_begin(at_cache *cache, int64_t rows, int layers, at_tensor *const *source, const int64_t *at,
                    const int64_t *count, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    if (layers > MOST_SOURCES)
        return at_fail(error, AT_UNSUPPORTED, "a decoder's cache holds at most %d layers, not %d", MOST_SOURCES,
                       layers);
    at_arena_reset(cache->arena);
    cache->steps = 0;
    cache->rows = rows;
    cache->layers = layers;
    for (int l = 0; l < layers; l++) {
        if (!source[l])
            return at_fail(error, AT_FAILED, "layer %d of an encoded source is missing", l + 1);
        size_t bytes = (size_t)at_shape_count(source[l]->shape) * sizeof(at_real);
        cache->shape[l] = source[l]->shape;
        cache->source[l] = at_arena_take(cache->arena, bytes);
        if (!cache->source[l])
            return out_of_memory(error);
        memcpy(cache->source[l], source[l]->value, bytes);
    }
    row_table *p = &cache->table[cache->now];
    if (!reserve(p, rows, cache->capacity, error))
        return false;
    for (int64_t b = 0; b < rows; b++) {
        p->at[b] = layers ? at[b] : 0;
        p->count[b] = layers ? count[b] : 0;
    }
    return true;
}

/* Copies rows[i] (NULL: i) of the current table to row i of the other, which becomes current, with `capacity` steps. */
static bool switch_table(at_cache *cache, const int64_t *rows, int64_t count, int64_t capacity, at_error *error)
{
    const row_table *from = &cache->table[cache->now];
    row_table *to = &cache->table[!cache->now];
    if (!reserve(to, count, capacity, error))
        return false;
    for (int64_t i = 0; i < count; i++) {
        int64_t row = rows ? rows[i] : i;
        if (cache->steps)
            memcpy(to->slot + i * capacity, from->slot + row * cache->capacity,
                   (size_t)cache->steps * sizeof *to->slot);
        to->at[i] = from->at[row];
        to->count[i] = from->count[row];
    }
    cache->capacity = capacity;
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
            return at_fail(error, AT_SHAPE, "row %lld is selected from a cache of %lld rows", (long long)rows[i],
                           (long long)cache->rows);
    return switch_table(cache, rows, count, cache->capacity, error);
}

bool at_cache_extend(at_cache *cache, int64_t steps, int64_t width, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    if (cache->steps + steps > cache->capacity &&
        !switch_table(cache, NULL, cache->rows, 2 * (cache->steps + steps), error))
        return false;
    const int64_t line = AT_ALIGN / (int64_t)sizeof(at_real), apart = (width + line - 1) / line * line;
    at_real *slots = at_arena_take(cache->arena, (size_t)(steps * cache->rows * apart) * sizeof *slots);
    if (!slots)
        return out_of_memory(error);
    at_real **slot = cache->table[cache->now].slot;
    for (int64_t b = 0; b < cache->rows; b++)
        for (int64_t t = 0; t < steps; t++)
            slot[b * cache->capacity + cache->steps + t] = slots + (t * cache->rows + b) * apart;
    cache->steps += steps;
    return true;
}

at_real *at_cache_slot(const at_cache *cache, int64_t b, int64_t step)
{
    return cache->table[cache->now].slot[b * cache->capacity + step];
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

bool at_cache_pack_steps(const at_cache *cache, at_tape *tape, int64_t steps, at_packed *packed)
{
    int64_t *at = NULL, *count = NULL;
    if (!one_query_each(cache, tape, packed, &at, &count))
        return false;
    for (int64_t b = 0; b < cache->rows; b++) {
        at[b] = 0;
        count[b] = steps;
    }
    packed->key_row = (const at_real *const *)cache->table[cache->now].slot;
    packed->key_row_stride = cache->capacity;
    return true;
}

at_tensor *at_cache_pack_source(const at_cache *cache, at_tape *tape, int layer, at_packed *packed)
{
    int64_t *at = NULL, *count = NULL;
    if (!one_query_each(cache, tape, packed, &at, &count))
        return NULL;
    const row_table *p = &cache->table[cache->now];
    memcpy(at, p->at, (size_t)cache->rows * sizeof *at);
    memcpy(count, p->count, (size_t)cache->rows * sizeof *count);
    return at_leaf(tape, cache->shape[layer], cache->source[layer], NULL, false);
}
