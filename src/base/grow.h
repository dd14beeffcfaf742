/* Arrays that grow. */
#ifndef AT_GROW_H
#define AT_GROW_H

#include "attend.h"

/* Makes room for at least `count` elements of `size` bytes in an array from malloc or NULL; *room is how many fit. An
 * array that must grow at least doubles, so that adding elements one by one takes linear time. `array` is the address
 * of the pointer. False if out of memory or if the size overflows: the array is as before. */
bool at_grow(void *array, size_t *room, size_t count, size_t size);

/* The same with the element's size taken from the array: AT_GROW(line->ids, line->room, line->count + 1). */
#define AT_GROW(array, room, count) at_grow(&(array), &(room), (count), sizeof *(array))

#endif
