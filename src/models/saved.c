/* Parts saved between steps. Two blocks alternate, because the parts to store may lie in the block that was stored
 * last, and so do the rows that are selected. */
#include <stdlib.h>
#include <string.h>

#include "models/model.h"

struct at_saved {
    at_real *block[2];
    int64_t capacity[2];
    int now;
    int count;
    at_shape shape[AT_MOST_PARTS];
    int64_t offset[AT_MOST_PARTS];
};

at_saved *at_saved_new(void)
{
    return calloc(1, sizeof(at_saved));
}

void at_saved_free(at_saved *saved)
{
    if (!saved)
        return;
    free(saved->block[0]);
    free(saved->block[1]);
    free(saved);
}

/* Every part starts on a cache line. */
static int64_t rounded(int64_t count)
{
    const int64_t line = AT_ALIGN / (int64_t)sizeof(at_real);
    return (count + line - 1) / line * line;
}

/* The other block, with capacity for `count` numbers; NULL: out of memory. */
static at_real *other_block(at_saved *saved, int64_t count, at_error *error)
{
    int other = !saved->now;
    if (saved->capacity[other] < count) {
        /* twice as much as needed, so that a search that grows by a row at a time rarely allocates */
        void *block = NULL;
        if (posix_memalign(&block, AT_ALIGN, (size_t)count * 2 * sizeof(at_real)) != 0) {
            at_no_memory(error, "the state of a search, %lld numbers", (long long)count * 2);
            return NULL;
        }
        free(saved->block[other]);
        saved->block[other] = block;
        saved->capacity[other] = count * 2;
    }
    return saved->block[other];
}

bool at_saved_store(at_saved *saved, const at_parts *parts, at_error *error)
{
    int64_t offset[AT_MOST_PARTS], count = 0;
    if (error->code != AT_OK)
        return false;
    for (int i = 0; i < parts->count; i++) {
        if (!parts->part[i])
            return at_fail(error, AT_FAILED, "part %d of a state is missing", i);
        offset[i] = count;
        count += rounded(at_shape_count(parts->part[i]->shape));
    }
    at_real *block = other_block(saved, count, error);
    if (!block && count > 0)
        return false;
    for (int i = 0; i < parts->count; i++) {
        size_t bytes = (size_t)at_shape_count(parts->part[i]->shape) * sizeof *block;
        if (bytes)
            memcpy(block + offset[i], parts->part[i]->value, bytes);
        saved->shape[i] = parts->part[i]->shape;
        saved->offset[i] = offset[i];
    }
    saved->count = parts->count;
    saved->now = !saved->now;
    return true;
}

at_parts at_saved_load(const at_saved *saved, at_tape *tape)
{
    at_parts parts = {.count = saved->count};
    for (int i = 0; i < saved->count; i++)
        parts.part[i] = at_leaf(tape, saved->shape[i], saved->block[saved->now] + saved->offset[i], NULL, false);
    return parts;
}

bool at_saved_select(at_saved *saved, const int64_t *rows, int64_t count, at_error *error)
{
    int64_t offset[AT_MOST_PARTS], size[AT_MOST_PARTS], all = 0;
    if (error->code != AT_OK)
        return false;
    for (int i = 0; i < saved->count; i++) {
        at_shape row = saved->shape[i];
        for (int64_t r = 0; r < count; r++)
            if (rows[r] < 0 || rows[r] >= row.dim[0])
                return at_fail(error, AT_SHAPE, "row %lld is selected from a state of %lld rows", (long long)rows[r],
                               (long long)row.dim[0]);
        row.dim[0] = 1;
        size[i] = at_shape_count(row);
        offset[i] = all;
        all += rounded(size[i] * count);
    }
    at_real *block = other_block(saved, all, error);
    if (!block && all > 0)
        return false;
    for (int i = 0; i < saved->count; i++) {
        for (int64_t r = 0; r < count; r++)
            memcpy(block + offset[i] + r * size[i], saved->block[saved->now] + saved->offset[i] + rows[r] * size[i],
                   (size_t)size[i] * sizeof *block);
        saved->shape[i].dim[0] = count;
        saved->offset[i] = offset[i];
    }
    saved->now = !saved->now;
    return true;
}
