/* What search keeps between steps. Two blocks take turns: a state that is stored may itself lie in the block that was
 * stored last, as may the rows that are picked. */
#include <stdlib.h>
#include <string.h>

#include "models/model.h"

struct at_kept {
    at_real *block[2];
    int64_t room[2];
    int now;
    int count;
    at_shape shape[AT_MOST_PARTS];
    int64_t offset[AT_MOST_PARTS];
};

at_kept *at_kept_new(void)
{
    return calloc(1, sizeof(at_kept));
}

void at_kept_free(at_kept *kept)
{
    if (!kept)
        return;
    free(kept->block[0]);
    free(kept->block[1]);
    free(kept);
}

/* Every part starts on a cache line. */
static int64_t rounded(int64_t count)
{
    const int64_t line = AT_ALIGN / (int64_t)sizeof(at_real);
    return (count + line - 1) / line * line;
}

/* The block that is not in use, with room for `count` numbers; NULL with a sentence if memory is out. */
static at_real *other_block(at_kept *kept, int64_t count, at_error *error)
{
    int other = !kept->now;
    if (kept->room[other] < count) {
        /* twice as much as asked for: a search that grows by a row at a time then asks seldom */
        void *block = NULL;
        if (posix_memalign(&block, AT_ALIGN, (size_t)count * 2 * sizeof(at_real)) != 0) {
            at_fail(error, AT_FAILED, "memory is out: the state of a search needs %lld numbers", (long long)count * 2);
            return NULL;
        }
        free(kept->block[other]);
        kept->block[other] = block;
        kept->room[other] = count * 2;
    }
    return kept->block[other];
}

bool at_kept_store(at_kept *kept, const at_parts *parts, at_error *error)
{
    int64_t offset[AT_MOST_PARTS], count = 0;
    if (error->code != AT_OK)
        return false;
    for (int i = 0; i < parts->count; i++) {
        if (!parts->part[i])
            return at_fail(error, AT_FAILED, "part %d of a state is missing, so it cannot be kept", i);
        offset[i] = count;
        count += rounded(at_shape_count(parts->part[i]->shape));
    }
    at_real *block = other_block(kept, count, error);
    if (!block && count > 0)
        return false;
    for (int i = 0; i < parts->count; i++) {
        size_t bytes = (size_t)at_shape_count(parts->part[i]->shape) * sizeof *block;
        if (bytes)
            memcpy(block + offset[i], parts->part[i]->value, bytes);
        kept->shape[i] = parts->part[i]->shape;
        kept->offset[i] = offset[i];
    }
    kept->count = parts->count;
    kept->now = !kept->now;
    return true;
}

at_parts at_kept_load(const at_kept *kept, at_tape *tape)
{
    at_parts parts = {.count = kept->count};
    for (int i = 0; i < kept->count; i++)
        parts.part[i] = at_leaf(tape, kept->shape[i], kept->block[kept->now] + kept->offset[i], NULL, false);
    return parts;
}

bool at_kept_select(at_kept *kept, const int64_t *rows, int64_t count, at_error *error)
{
    int64_t offset[AT_MOST_PARTS], size[AT_MOST_PARTS], all = 0;
    if (error->code != AT_OK)
        return false;
    for (int i = 0; i < kept->count; i++) {
        at_shape row = kept->shape[i];
        for (int64_t r = 0; r < count; r++)
            if (rows[r] < 0 || rows[r] >= row.dim[0])
                return at_fail(error, AT_FAILED, "row %lld is picked from a state of %lld rows", (long long)rows[r],
                               (long long)row.dim[0]);
        row.dim[0] = 1;
        size[i] = at_shape_count(row);
        offset[i] = all;
        all += rounded(size[i] * count);
    }
    at_real *block = other_block(kept, all, error);
    if (!block && all > 0)
        return false;
    for (int i = 0; i < kept->count; i++) {
        for (int64_t r = 0; r < count; r++)
            memcpy(block + offset[i] + r * size[i], kept->block[kept->now] + kept->offset[i] + rows[r] * size[i],
                   (size_t)size[i] * sizeof *block);
        kept->shape[i].dim[0] = count;
        kept->offset[i] = offset[i];
    }
    kept->now = !kept->now;
    return true;
}
