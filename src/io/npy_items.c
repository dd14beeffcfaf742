#include "io/npy_items.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "io/dtype.h"

static bool read_header(const char *path, at_npy_items *items, size_t size, at_error *error)
{
    const size_t taken = size < AT_NPY_HEADER ? size : AT_NPY_HEADER;
    unsigned char *bytes = malloc(taken > 0 ? taken : 1);
    if (!bytes)
        return at_no_memory(error, "the header of '%s'", path);
    const bool done = at_file_read_at(items->file, 0, bytes, taken, path, error) &&
                      at_npy_header_parse(bytes, taken, size, path, &items->header, error);
    free(bytes);
    if (!done)
        return false;
    if (items->header.rank == 0)
        return at_fail(error, AT_SHAPE, "'%s' holds a single number; an array of items has a dimension for them", path);
    size_t count;
    at_shape_bytes(items->header.dtype, items->header.rank - 1, items->header.dim + 1, &count, &items->item_bytes);
    return true;
}

bool at_npy_items_open(const char *path, at_npy_items *items, at_error *error)
{
    size_t size = 0;
    *items = (at_npy_items){.file = at_file_open_regular(path, &size, error)};
    if (items->file < 0)
        return false;
    if (read_header(path, items, size, error))
        return true;
    close(items->file);
    items->file = -1;
    return false;
}

bool at_npy_items_read(const at_npy_items *items, int64_t index, void *out, const char *path, at_error *error)
{
    return at_file_read_at(items->file, items->header.start + (size_t)index * items->item_bytes, out, items->item_bytes,
                           path, error);
}
