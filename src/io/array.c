#include "base/error.h"
#include "base/files.h"
#include "io/dtype.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const at_dtype_row at_dtype_rows[AT_DTYPES] = {
    [AT_F32] = {"float32", "F32", "<f4", 4, 9},
    [AT_F64] = {"float64", "F64", "<f8", 8, 10},
    [AT_F16] = {"float16", "F16", "<f2", 2, 5},
    [AT_BF16] = {"bfloat16", "BF16", NULL, 2, 6},
    [AT_I32] = {"int32", "I32", "<i4", 4, 7},
    [AT_I64] = {"int64", "I64", "<i8", 8, 11},
    [AT_U8] = {"unsigned 8-bit integers", "U8", "|u1", 1, 1},
    [AT_I8] = {"signed 8-bit integers", "I8", "|i1", 1, 2},
};

bool at_shape_bytes(at_dtype dtype, int rank, const int64_t *dim, size_t *count, size_t *bytes)
{
    size_t product = 1;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (dim[i] < 0)
            return false;
        if (dim[i] == 0)
            empty = true;
        else if (!at_size_mul(product, (size_t)dim[i], &product))
            return false;
    }
    if (!at_size_mul(product, at_dtype_rows[dtype].size, bytes) || *bytes > PTRDIFF_MAX)
        return false;
    *count = empty ? 0 : product;
    if (empty)
        *bytes = 0;
    return true;
}

char *at_dims_text(int rank, const int64_t *dim, char *out)
{
    size_t used = (size_t)sprintf(out, "[");
    for (int i = 0; i < rank; i++)
        used += (size_t)sprintf(out + used, "%s%lld", i == 0 ? "" : ",", (long long)dim[i]);
    sprintf(out + used, "]");
    return out;
}

/* An array whose values are not initialised. */
static at_array *allocate(at_dtype dtype, int rank, const int64_t *dim, at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    if ((int)dtype < 0 || (int)dtype >= AT_DTYPES) {
        at_fail(error, AT_USAGE, "an array cannot have number type %d; there are 0 to %d", (int)dtype, AT_DTYPES - 1);
        return NULL;
    }
    if (rank < 0 || rank > AT_MAX_RANK) {
        at_fail(error, AT_SHAPE, "an array cannot have %d dimensions; it may have 0 to %d", rank, AT_MAX_RANK);
        return NULL;
    }
    char shape[AT_SHAPE_TEXT];
    size_t count, bytes;
    if (!at_shape_bytes(dtype, rank, dim, &count, &bytes)) {
        at_fail(error, AT_SHAPE, "an array of %s cannot have shape %s: its size overflows", at_dtype_rows[dtype].name,
                at_dims_text(rank, dim, shape));
        return NULL;
    }
    at_array *array = calloc(1, sizeof *array);
    void *data = NULL;
    if (!array || posix_memalign(&data, 64, bytes > 0 ? bytes : 1) != 0) {
        at_no_memory(error, "an array of %s of shape %s", at_dtype_rows[dtype].name, at_dims_text(rank, dim, shape));
        free(array);
        return NULL;
    }
    array->dtype = dtype;
    array->rank = rank;
    if (rank > 0)
        memcpy(array->dim, dim, (size_t)rank * sizeof *dim);
    array->data = data;
    return array;
}

at_array *at_array_new(at_dtype dtype, int rank, const int64_t *dim, at_error *error)
{
    at_array *array = allocate(dtype, rank, dim, error);
    if (array)
        memset(array->data, 0, (size_t)at_array_count(array) * at_dtype_rows[dtype].size);
    return array;
}

at_array *at_array_of(at_dtype dtype, int rank, const int64_t *dim, const void *values, at_error *error)
{
    at_array *array = allocate(dtype, rank, dim, error);
    size_t bytes = !array ? 0 : (size_t)at_array_count(array) * at_dtype_rows[dtype].size;
    if (bytes > 0)
        memcpy(array->data, values, bytes);
    return array;
}

void at_array_free(at_array *array)
{
    if (!array)
        return;
    free(array->data);
    free(array);
}

int64_t at_array_count(const at_array *array)
{
    int64_t count = 1;
    for (int i = 0; i < array->rank; i++)
        if (array->dim[i] == 0)
            return 0;
    for (int i = 0; i < array->rank; i++)
        count *= array->dim[i];
    return count;
}

bool at_array_check(const at_array *array, const char *what, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    size_t count, bytes;
    if (!array)
        return at_fail(error, AT_USAGE, "cannot %s: there is no array", what);
    if ((int)array->dtype < 0 || (int)array->dtype >= AT_DTYPES)
        return at_fail(error, AT_USAGE, "cannot %s: its array has number type %d; there are 0 to %d", what,
                       (int)array->dtype, AT_DTYPES - 1);
    if (array->rank < 0 || array->rank > AT_MAX_RANK)
        return at_fail(error, AT_SHAPE, "cannot %s: its array has %d dimensions; it may have 0 to %d", what,
                       array->rank, AT_MAX_RANK);
    char shape[AT_SHAPE_TEXT];
    if (!at_shape_bytes(array->dtype, array->rank, array->dim, &count, &bytes))
        return at_fail(error, AT_SHAPE, "cannot %s: its array has shape %s, whose size overflows", what,
                       at_dims_text(array->rank, array->dim, shape));
    if (!array->data && count > 0)
        return at_fail(error, AT_USAGE, "cannot %s: its array of shape %s has no values", what,
                       at_dims_text(array->rank, array->dim, shape));
    return true;
}

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A half has 1 sign, 5 exponent (bias 15) and 10 fraction bits; a float 1, 8 (bias 127) and 23, so every half is a
 * float exactly. Its denormals are fraction * 2^-24, which a float holds as normal numbers. */
float at_float_of_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half >> 15) << 31, exponent = (half >> 10) & 31, fraction = half & 1023;
    if (exponent == 31)
        return float_of_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0)
        return (sign ? -1.0f : 1.0f) * ((float)fraction * 0x1p-24f);
    return float_of_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

float at_float_of_bfloat(uint16_t upper)
{
    return float_of_bits((uint32_t)upper << 16);
}

/* One line per type: to[i] = from[i] as a float. */
#define CONVERT(type, expression)                                                                                      \
    do {                                                                                                               \
        const type *from = array->data;                                                                                \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i] = expression;                                                                                        \
    } while (0)

at_array *at_array_to_f32(const at_array *array, at_error *error)
{
    if (!at_array_check(array, "convert to float32", error))
        return NULL;
    at_array *result = allocate(AT_F32, array->rank, array->dim, error);
    if (!result)
        return NULL;
    int64_t count = at_array_count(array);
    float *to = result->data;
    switch (array->dtype) {
    case AT_F32:
        if (count > 0)
            memcpy(to, array->data, (size_t)count * sizeof *to);
        break;
    case AT_F64:
        CONVERT(double, (float)from[i]);
        break;
    case AT_F16:
        CONVERT(uint16_t, at_float_of_half(from[i]));
        break;
    case AT_BF16:
        CONVERT(uint16_t, at_float_of_bfloat(from[i]));
        break;
    case AT_I32:
        CONVERT(int32_t, (float)from[i]);
        break;
    case AT_I64:
        CONVERT(int64_t, (float)from[i]);
        break;
    case AT_U8:
        CONVERT(uint8_t, from[i]);
        break;
    case AT_I8:
        CONVERT(int8_t, from[i]);
        break;
    }
    return result;
}
