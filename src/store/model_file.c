#include "store/model_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/file_kind.h"
#include "base/files.h"
#include "base/utf8.h"
#include "io/checksum.h"
#include "io/dtype.h"
#include "kernels/isa.h"
#include "store/imported_internal.h"

#define VERSION "1"

/* ---- Marks ---------------------------------------------------------------------------------------------------- */

bool at_file_mark(at_tensors *file, const char *kind, at_error *error)
{
    return at_tensors_set_meta(file, "format", "pt", error) && /* what PyTorch's loaders look for */
           at_tensors_set_meta(file, "attend.kind", kind, error) &&
           at_tensors_set_meta(file, "attend.version", VERSION, error);
}

bool at_file_check(const at_tensors *file, const char *kind, const char *path, at_error *error)
{
    const char *is = at_tensors_meta(file, "attend.kind"), *version = at_tensors_meta(file, "attend.version");
    char shown[AT_SHOWN];
    bool has_checksum;
    if (!is || !version)
        return at_fail(error, AT_FORMAT, "'%s' holds arrays but is not a %s: attend train writes those", path, kind);
    if (!at_tensors_verify(file, path, &has_checksum, error))
        return false;
    if (strcmp(is, kind) != 0)
        return at_fail(error, AT_FORMAT, "'%s' is a %s, not a %s", path, at_shown(is, shown, sizeof shown), kind);
    if (strcmp(version, VERSION) != 0)
        return at_fail(error, AT_UNSUPPORTED,
                       "'%s' is a %s of format %s, and this attend reads format " VERSION
                       "; use the version of attend that wrote it, or train again",
                       path, kind, at_shown(version, shown, sizeof shown));
    return true;
}

/* Only files that attend writes have a checksum; what else a file is that cannot be read, if it can be told. */
static void name_kind(const char *path, at_error *why)
{
    unsigned char bytes[AT_KIND_BYTES];
    at_error unread = {0};
    const bool is_folder = at_is_folder(path);
    const size_t size = is_folder ? 0 : at_file_begin(path, bytes, sizeof bytes, &unread);
    const char *kind = is_folder ? "a folder" : unread.code == AT_OK ? at_file_kind(bytes, size) : NULL;
    if (!kind || strstr(kind, "safetensors"))
        return;
    *why = (at_error){0};
    at_fail(why, AT_FORMAT, "'%s' is %s; a checksum is in the models and training states that attend has written", path,
            kind);
}

bool at_model_verify(const char *path, bool *has_checksum, at_error *error)
{
    *has_checksum = false;
    if (error->code != AT_OK)
        return false;
    at_tensors *file = at_tensors_read(path, error);
    if (!file) {
        name_kind(path, error);
        return false;
    }
    if (!at_tensors_meta(file, "attend.kind"))
        at_fail(error, AT_FORMAT, "'%s' holds arrays but is neither a model nor a training state of attend", path);
    else
        at_tensors_verify(file, path, has_checksum, error);
    at_tensors_free(file);
    return error->code == AT_OK;
}

/* ---- Numbers that are not finite ------------------------------------------------------------------------------ */

/* "a NaN at [3,17]" for the number with that offset. */
static void show_offset(const at_array *array, int64_t offset, char *text, size_t size)
{
    int64_t at[AT_MAX_RANK];
    char position[AT_SHAPE_TEXT];
    const at_real number = ((const at_real *)array->data)[offset];
    for (int i = array->rank - 1; i >= 0; i--) {
        at[i] = offset % array->dim[i];
        offset /= array->dim[i];
    }
    snprintf(text, size, "%s at %s", isnan(number) ? "a NaN" : "an infinity", at_dims_text(array->rank, at, position));
}

/* "a NaN at [3,17]" for the first number that is not finite, or with `no_infinity` false for the first NaN; false if
 * there is none. The vector pass decides; only a failing array is searched number by number. */
static bool find_not_finite(const at_array *array, bool no_infinity, char *text, size_t size)
{
    const int64_t count = at_array_count(array);
    const at_real *x = array->data;
    if (at_isa()->rows->finite(x, 0, 1, count))
        return false;
    for (int64_t i = 0; i < count; i++)
        if (isnan(x[i]) || (no_infinity && isinf(x[i]))) {
            show_offset(array, i, text, size);
            return true;
        }
    return false;
}

enum { OFFSET_TEXT = AT_SHAPE_TEXT + 24 };

bool at_array_finite(const at_array *array, const char *name, const char *path, bool no_infinity, at_error *error)
{
    char found[OFFSET_TEXT], shown[AT_SHOWN];
    return !find_not_finite(array, no_infinity, found, sizeof found) ||
           at_fail(error, AT_FORMAT, "'%s': tensor '%s' holds %s; such a file is damaged and of no use", path,
                   at_shown(name, shown, sizeof shown), found);
}

static at_array param_array(at_params *params, int index)
{
    const at_shape shape = at_params_shape(params, index);
    at_array array = {.dtype = AT_REAL_DTYPE, .rank = shape.rank, .data = at_params_value(params, index)};
    memcpy(array.dim, shape.dim, sizeof array.dim);
    return array;
}

bool at_params_finite(at_params *params, const char *path, at_error *error)
{
    char found[OFFSET_TEXT];
    for (int i = 0; i < at_params_number(params); i++) {
        const at_array array = param_array(params, i);
        if (array.data && find_not_finite(&array, true, found, sizeof found)) /* fewer bits are always finite */
            return at_fail(error, AT_FAILED, "'%s' is not written: tensor '%s' holds %s", path,
                           at_params_name(params, i), found);
    }
    return true;
}

/* ---- Parameters ----------------------------------------------------------------------------------------------- */

/* The type of a matrix in the file; int8 has a tensor NAME.scale beside it, a number for each row. */
static const at_dtype narrow_dtypes[AT_NUMBER_TYPES] = {AT_REAL_DTYPE, AT_BF16, AT_F16, AT_I8};
#define SCALE ".scale"
enum { SCALE_NAME = 200 }; /* names of parameters are shorter than 120 */

static const char *name_of_scale(const char *name, char full[SCALE_NAME])
{
    snprintf(full, SCALE_NAME, "%s" SCALE, name);
    return full;
}

/* The type of numbers of a parameter that is stored as `dtype`; -1: it cannot be stored so. Parameters that are being trained
 * have values already, so fewer bits than those cannot be taken. */
static int type_of(const at_params *params, int index, at_dtype dtype)
{
    for (int type = AT_NUMBERS_REAL; type < AT_NUMBER_TYPES; type++)
        if (narrow_dtypes[type] == dtype && (type == AT_NUMBERS_REAL || at_params_is_open(params, index)))
            return type;
    return -1;
}

static bool put_narrow(at_params *params, int index, at_tensors *file, at_error *error)
{
    const at_shape shape = at_params_shape(params, index);
    const char *name = at_params_name(params, index);
    at_array *rows = at_array_new(narrow_dtypes[at_params_type(params, index)], 2, shape.dim, error);
    const at_real *scale = rows ? at_params_get_narrow(params, index, rows->data) : NULL;
    const at_array scales = {.dtype = AT_REAL_DTYPE, .rank = 1, .dim = {shape.dim[0]}, .data = (void *)scale};
    char scale_name[SCALE_NAME];
    const bool done = rows && at_tensors_put(file, name, rows, error) &&
                      (!scale || at_tensors_put(file, name_of_scale(name, scale_name), &scales, error));
    at_array_free(rows);
    return done;
}

bool at_params_put(at_params *params, at_tensors *file, at_error *error)
{
    for (int i = 0; i < at_params_number(params); i++) {
        const at_array array = param_array(params, i);
        if (!(array.data ? at_tensors_put(file, at_params_name(params, i), &array, error)
                         : put_narrow(params, i, file, error)))
            return false;
    }
    return true;
}

/* A matrix of int8 has its scale, and nothing else has one. The widened numbers have to be finite. */
static bool scale_fits(const at_params *params, int index, const at_tensors *file, const char *path, at_error *error)
{
    const char *name = at_params_name(params, index);
    char scale_name[SCALE_NAME];
    const at_array *scale = at_tensors_get(file, name_of_scale(name, scale_name));
    const int64_t rows = at_params_shape(params, index).dim[0];
    if (at_tensors_get(file, name)->dtype != AT_I8)
        return true;
    if (!scale || scale->dtype != AT_REAL_DTYPE || scale->rank != 1 || scale->dim[0] != rows)
        return at_fail(error, AT_FORMAT, "'%s' needs '%s', float32 [%lld]: a factor for each row of '%s'", path,
                       scale_name, (long long)rows, name);
    for (int64_t i = 0; i < rows; i++) {
        const at_real s = ((const at_real *)scale->data)[i];
        if (!(s >= 0 && isfinite(s * 128)))
            return at_fail(error, AT_FORMAT, "'%s': number %lld of '%s' is %g; a factor is 0 or more, and finite", path,
                           (long long)i, scale_name, (double)s);
    }
    return true;
}

/* Whether the name is that of the scale of a matrix of int8. */
static bool is_scale(const at_params *params, const at_tensors *file, const char *name)
{
    const size_t length = strlen(name), ending = strlen(SCALE);
    char matrix[SCALE_NAME];
    if (length <= ending || length >= sizeof matrix || strcmp(name + length - ending, SCALE) != 0)
        return false;
    snprintf(matrix, sizeof matrix, "%.*s", (int)(length - ending), name);
    return at_params_find(params, matrix) >= 0 && at_tensors_get(file, matrix)->dtype == AT_I8;
}

/* Exactly our parameters: each with its shape, and no other name but those that begin with the other prefix. */
static bool params_fit(const at_params *params, const at_tensors *file, const char *path, const char *other_prefix,
                       at_error *error)
{
    char shown[AT_SHOWN];
    for (int i = 0; i < at_params_number(params); i++) {
        const char *name = at_params_name(params, i);
        const at_array *array = at_tensors_get(file, name);
        at_shape shape = at_params_shape(params, i);
        char is[AT_SHAPE_TEXT], needs[AT_SHAPE_TEXT];
        if (!array)
            return at_fail(error, AT_FORMAT, "'%s' lacks the parameter '%s' that its settings need", path, name);
        if (type_of(params, i, array->dtype) < 0)
            return at_fail(error, AT_FORMAT, "the parameter '%s' of '%s' is %s, and must be %s", name, path,
                           at_dtype_rows[array->dtype].name, at_dtype_rows[AT_REAL_DTYPE].name);
        if (array->rank != shape.rank || memcmp(array->dim, shape.dim, (size_t)shape.rank * sizeof *shape.dim) != 0)
            return at_fail(error, AT_FORMAT,
                           "the parameter '%s' of '%s' is %s, and its settings and vocabularies need %s", name, path,
                           at_dims_text(array->rank, array->dim, is), at_dims_text(shape.rank, shape.dim, needs));
        if (!scale_fits(params, i, file, path, error))
            return false;
    }
    for (int i = 0; i < at_tensors_count(file); i++) {
        const char *name = at_tensors_name(file, i);
        bool other = other_prefix && strncmp(name, other_prefix, strlen(other_prefix)) == 0;
        if (!other && at_params_find(params, name) < 0 && !is_scale(params, file, name))
            return at_fail(error, AT_FORMAT, "'%s' holds '%s', which is not a parameter of its model", path,
                           at_shown(name, shown, sizeof shown));
    }
    return true;
}

/* Refuses a matrix of 16 bits with a NaN or an infinity, which have all bits of the exponent set. */
static bool halves_finite(const at_array *array, const char *name, const char *path, at_error *error)
{
    const uint16_t *half = array->data, exponent = array->dtype == AT_BF16 ? 0x7f80 : 0x7c00;
    for (int64_t i = 0; array->dtype != AT_I8 && i < at_array_count(array); i++)
        if ((half[i] & exponent) == exponent)
            return at_fail(error, AT_FORMAT,
                           "'%s': tensor '%s' holds a NaN or an infinity at [%lld,%lld]; such a file is damaged and of "
                           "no use",
                           path, name, (long long)(i / array->dim[1]), (long long)(i % array->dim[1]));
    return true;
}

static bool take_narrow(at_params *params, int index, const at_tensors *file, const char *path, at_error *error)
{
    const char *name = at_params_name(params, index);
    const at_array *array = at_tensors_get(file, name);
    char scale_name[SCALE_NAME];
    const at_array *scale = array->dtype == AT_I8 ? at_tensors_get(file, name_of_scale(name, scale_name)) : NULL;
    if (!halves_finite(array, name, path, error))
        return false;
    at_params_put_narrow(params, index, array->data, scale ? scale->data : NULL);
    return true;
}

bool at_params_take(at_params *params, const at_tensors *file, const char *path, const char *other_prefix,
                    at_error *error)
{
    if (error->code != AT_OK || !params_fit(params, file, path, other_prefix, error))
        return false;
    for (int i = 0; i < at_params_number(params); i++)
        at_params_set_type(params, i,
                           (at_number_type)type_of(params, i, at_tensors_get(file, at_params_name(params, i))->dtype));
    if (!at_params_fix_values(params, error))
        return false;
    for (int i = 0; i < at_params_number(params); i++) {
        const at_array *array = at_tensors_get(file, at_params_name(params, i));
        if (at_params_type(params, i) != AT_NUMBERS_REAL) {
            if (!take_narrow(params, i, file, path, error))
                return false;
            continue;
        }
        if (!at_array_finite(array, at_params_name(params, i), path, true, error))
            return false;
        memcpy(at_params_value(params, i), array->data, (size_t)at_array_count(array) * sizeof(at_real));
    }
    at_params_changed(params);
    return true;
}
