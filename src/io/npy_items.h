/* The items of a .npy file, which are its parts along the first dimension: read one by one, so that the file may be larger
 * than the memory. */
#ifndef AT_NPY_ITEMS_H
#define AT_NPY_ITEMS_H

#include "io/parse.h"

typedef struct at_npy_items {
    int file; /* stays open */
    at_npy_header header;
    size_t item_bytes;
} at_npy_items;

/* Only regular files, of at least one dimension; the size of the file has to be that of its values. Close it with
 * close(items->file). */
bool at_npy_items_open(const char *path, at_npy_items *items, at_error *error);

/* Reads an item, 0 <= index < header.dim[0]: item_bytes bytes. */
bool at_npy_items_read(const at_npy_items *items, int64_t index, void *out, const char *path, at_error *error);

#endif
