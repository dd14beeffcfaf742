/* The number types a file may hold: one row each, in the order of at_dtype. */
#ifndef AT_DTYPE_H
#define AT_DTYPE_H

#include "attend.h"
#include "base/real.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are little-endian and are copied as they are");

typedef struct at_dtype_row {
    const char *name;        /* for error messages */
    const char *safetensors; /* "F32" */
    const char *npy;         /* "<f4"; NULL if NumPy has no such type */
    size_t size;             /* bytes of an element */
    int order;               /* a safetensors file holds its tensors from the highest to the lowest */
} at_dtype_row;

enum { AT_DTYPES = AT_I8 + 1 };
extern const at_dtype_row at_dtype_rows[AT_DTYPES];

/* The number type of at_real. */
#define AT_REAL_DTYPE (sizeof(at_real) == sizeof(double) ? AT_F64 : AT_F32)

/* The number of elements of a shape and of their bytes; false if a dimension is negative or either number overflows,
 * whatever the order of the dimensions and even if one of them is 0. */
bool at_shape_bytes(at_dtype dtype, int rank, const int64_t *dim, size_t *count, size_t *bytes);

/* "[2,3]" for error messages; returns `out`. */
enum { AT_SHAPE_TEXT = 24 * AT_MAX_RANK };
char *at_dims_text(int rank, const int64_t *dim, char *out);

/* A new array with those values, which need not be aligned. */
at_array *at_array_of(at_dtype dtype, int rank, const int64_t *dim, const void *values, at_error *error);

/* Numbers of 16 bits; a bfloat is the upper half of a float. */
float at_float_of_half(uint16_t half);
float at_float_of_bfloat(uint16_t upper);

/* Checks an array that the caller filled in; `what` says what was to be done with it. */
bool at_array_check(const at_array *array, const char *what, at_error *error);

#endif
