/* Parameters as files of other programs have them. */
#include <stdlib.h>
#include <string.h>

#include "io/dtype.h"
#include "store/export_internal.h"

static const at_dtype dtypes[AT_NUMBER_TYPES] = {AT_F32, AT_BF16, AT_F16, AT_I8};

static void copy_floats(const at_real *from, int64_t count, float *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = (float)from[i];
}

bool at_exported_take(const at_export *x, const char *name, at_exported *exported)
{
    const int index = at_params_find(x->params, name);
    const at_shape shape = at_params_shape(x->params, index);
    const at_dtype dtype = dtypes[at_params_type(x->params, index)];
    *exported = (at_exported){.rows = shape.dim[0], .columns = shape.rank == 2 ? shape.dim[1] : 1};
    exported->array = (at_array){.dtype = dtype, .rank = shape.rank};
    memcpy(exported->array.dim, shape.dim, sizeof exported->array.dim);
    const int64_t count = exported->rows * exported->columns;
    exported->array.data = malloc((size_t)count * at_dtype_rows[dtype].size + 1);
    exported->scale = dtype == AT_I8 ? malloc((size_t)exported->rows * sizeof *exported->scale + 1) : NULL;
    if (!exported->array.data || (dtype == AT_I8 && !exported->scale))
        return at_no_memory(x->error, "a copy of '%s'", name);
    if (dtype == AT_F32)
        copy_floats(at_params_value(x->params, index), count, exported->array.data);
    else {
        const at_real *scale = at_params_get_narrow(x->params, index, exported->array.data);
        if (exported->scale)
            copy_floats(scale, exported->rows, exported->scale);
    }
    return true;
}

void at_exported_free(at_exported *exported)
{
    free(exported->array.data);
    free(exported->scale);
    *exported = (at_exported){0};
}

/* Number i of the copy is number from[i / width] * width + i % width of each of `blocks` blocks. */
static bool order(const at_export *x, at_exported *exported, const int64_t *from, int64_t blocks, int64_t items,
                  int64_t width)
{
    const size_t size = at_dtype_rows[exported->array.dtype].size * (size_t)width;
    unsigned char *old = exported->array.data, *new = malloc((size_t)(blocks * items) * size + 1);
    if (!new)
        return at_no_memory(x->error, "a copy of a parameter");
    for (int64_t b = 0; b < blocks; b++)
        for (int64_t i = 0; i < items; i++)
            memcpy(new + (size_t)(b * items + i) * size, old + (size_t)(b * items + from[i]) * size, size);
    free(old);
    exported->array.data = new;
    return true;
}

bool at_exported_order_rows(const at_export *x, at_exported *exported, const int64_t *from)
{
    return order(x, exported, from, 1, exported->rows, exported->columns);
}

bool at_exported_order_columns(const at_export *x, at_exported *exported, const int64_t *from)
{
    return order(x, exported, from, exported->rows, exported->columns, 1);
}
