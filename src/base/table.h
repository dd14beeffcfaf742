/* A hash table that finds items by their keys. The items stay in an array of the caller's; the table holds their
 * hashes and indices, by open addressing with linear probing, and at least half of its slots are free. */
#ifndef AT_TABLE_H
#define AT_TABLE_H

#include "attend.h"

typedef struct at_table_slot {
    uint64_t hash;
    int32_t index; /* of the item; -1: the slot is free */
} at_table_slot;

/* Start from zeros. */
typedef struct at_table {
    at_table_slot *slot; /* [slots] */
    size_t slots;        /* a power of two, or 0 */
    size_t room;         /* slots allocated */
    size_t count;        /* slots in use */
} at_table;

void at_table_free(at_table *table);
/* Removes all items and keeps the memory. */
void at_table_clear(at_table *table);
/* Makes room for `count` items in all. False if out of memory: the table is as before. */
bool at_table_reserve(at_table *table, size_t count);

/* Whether the item `index` has this key. */
typedef bool at_table_match(const void *items, int32_t index, const void *key);

/* The slot of the item with this key, or the free slot where it belongs. The table has had room reserved. `match` NULL:
 * equal hashes mean equal keys. Inlined with its `match`, as it is the inner loop of its callers. */
static inline at_table_slot *at_table_find(const at_table *table, uint64_t hash, at_table_match *match,
                                           const void *items, const void *key)
{
    const size_t mask = table->slots - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
        at_table_slot *slot = &table->slot[at];
        if (slot->index < 0 || (slot->hash == hash && (!match || match(items, slot->index, key))))
            return slot;
    }
}

/* Fills the free slot that at_table_find returned for this hash. */
static inline void at_table_put(at_table *table, at_table_slot *slot, uint64_t hash, int32_t index)
{
    *slot = (at_table_slot){hash, index};
    table->count++;
}

#endif
