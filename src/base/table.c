#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

enum { FEWEST_SLOTS = 64 };

void at_table_free(at_table *table)
{
    free(table->slot);
    *table = (at_table){0};
}

void at_table_clear(at_table *table)
{
    table->slots = 0;
    table->count = 0;
}

/* Puts `count` old slots back, which were copied before the table's own were marked free. */
static void refill(at_table *table, const at_table_slot *old, size_t count)
{
    for (size_t i = 0; i < table->slots; i++)
        table->slot[i].index = -1;
    for (size_t i = 0; i < count; i++) {
        if (old[i].index < 0)
            continue;
        size_t at = old[i].hash & (table->slots - 1);
        while (table->slot[at].index >= 0)
            at = (at + 1) & (table->slots - 1);
        table->slot[at] = old[i];
    }
}

bool at_table_reserve(at_table *table, size_t count)
{
    size_t slots = FEWEST_SLOTS, before = table->count > 0 ? table->slots : 0;
    if (count <= table->slots / 2)
        return true;
    if (count > SIZE_MAX / 4)
        return false;
    while (slots < 2 * count)
        slots *= 2;
    at_table_slot *old = before > 0 ? malloc(before * sizeof *old) : NULL;
    if (before > 0 && !old)
        return false;
    if (old)
        memcpy(old, table->slot, before * sizeof *old);
    const bool grown = AT_GROW(table->slot, table->room, slots);
    if (grown) {
        table->slots = slots;
        refill(table, old, before);
    }
    free(old);
    return grown;
}
