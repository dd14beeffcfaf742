#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST = 64 }; /* bytes of the smallest array */

bool at_grow(void *array, size_t *room, size_t count, size_t size)
{
    void *memory;
    size_t larger = count, bytes;
    if (count <= *room && *room > 0)
        return true;
    if (*room <= SIZE_MAX / 2 && larger < 2 * *room)
        larger = 2 * *room;
    if (larger < FIRST / size + 1)
        larger = FIRST / size + 1;
    memcpy(&memory, array, sizeof memory); /* `array` points to a pointer of any type */
    void *moved = __builtin_mul_overflow(larger, size, &bytes) ? NULL : realloc(memory, bytes);
    if (!moved)
        return false;
    memcpy(array, &moved, sizeof moved);
    *room = larger;
    return true;
}
