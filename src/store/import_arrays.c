/* Settings and parameters of a model from the named arrays of another program's file. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/dtype.h"
#include "store/imported_internal.h"

bool at_import_set(at_import *in, const char *setting, const char *value)
{
    return at_model_set(&in->settings, &in->given, setting, value, in->error);
}

bool at_import_set_number(at_import *in, const char *setting, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.9g", value);
    return at_import_set(in, setting, text);
}

void at_import_name(char *name, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, size, format, arguments);
    va_end(arguments);
}

bool at_import_has(const at_import *in, const char *name)
{
    return at_tensors_get(in->arrays, name);
}

/* Dimensions of 1 at the front: Marian writes a bias as [1,n]. */
static int leading_ones(const at_array *array)
{
    int ones = 0;
    while (ones < array->rank - 1 && array->dim[ones] == 1)
        ones++;
    return ones;
}

/* All dimensions but one are 1. */
static bool is_vector(const at_array *array)
{
    int64_t most = 0;
    for (int i = 0; i < array->rank; i++)
        most = array->dim[i] > most ? array->dim[i] : most;
    return at_array_count(array) == most;
}

int64_t at_import_dim(const at_array *array, int back)
{
    return back < array->rank ? array->dim[array->rank - 1 - back] : 1;
}

const at_array *at_import_need(at_import *in, const char *name, int rank)
{
    const at_array *array = at_tensors_get(in->arrays, name);
    char is[AT_SHAPE_TEXT];
    if (!array)
        at_fail(in->error, AT_UNSUPPORTED, "'%s' lacks '%s', which a model of this kind has", in->path, name);
    else if (array->rank < rank || (rank > 1 ? array->rank - leading_ones(array) > rank : !is_vector(array)))
        at_fail(in->error, AT_FORMAT, "'%s': '%s' is %s, and an array with %d dimension%s is needed", in->path, name,
                at_dims_text(array->rank, array->dim, is), rank, rank == 1 ? "" : "s");
    else if (array->dtype != AT_F32 && array->dtype != AT_F16 && array->dtype != AT_BF16 && array->dtype != AT_F64)
        at_fail(in->error, AT_FORMAT, "'%s': '%s' has %s, and weights are floats", in->path, name,
                at_dtype_rows[array->dtype].name);
    else
        return array;
    return NULL;
}

at_model *at_import_model(at_import *in, int64_t source_size, int64_t target_size)
{
    int64_t most = 0;
    if (in->error->code != AT_OK || !at_model_settings_complete(&in->settings, &in->given, in->error))
        return NULL;
    in->settings.source_size = source_size;
    in->settings.target_size = target_size;
    for (int i = 0; i < at_tensors_count(in->arrays); i++)
        most += at_array_count(at_tensors_get(in->arrays, at_tensors_name(in->arrays, i)));
    /* A matrix may serve as several of ours, and ours has special units that theirs has not. */
    const at_model_settings *s = &in->settings;
    most = 5 * most + 16 * AT_SPECIALS * (s->hidden + s->embedding + 1);
    at_model *model = at_model_blank(&in->settings, most, in->error);
    in->params = model ? model->params : NULL;
    return model;
}

/* ---- Values --------------------------------------------------------------------------------------------------- */

static at_real value_at(const at_array *array, int64_t i)
{
    switch (array->dtype) {
    case AT_F64:
        return (at_real)((const double *)array->data)[i];
    case AT_F16:
        return at_float_of_half(((const uint16_t *)array->data)[i]);
    case AT_BF16:
        return at_float_of_bfloat(((const uint16_t *)array->data)[i]);
    default:
        return ((const float *)array->data)[i];
    }
}

static bool not_finite(const at_import *in, const char *name)
{
    return at_fail(in->error, AT_FORMAT, "'%s': '%s' holds a number that is not finite", in->path, name);
}

static bool does_not_fit(const at_import *in, const at_import_part *part, const at_array *array, at_shape shape)
{
    char is[AT_SHAPE_TEXT], needs[AT_SHAPE_TEXT];
    return at_fail(in->error, AT_FORMAT, "'%s': '%s' is %s, which does not fit %s of the other sizes", in->path,
                   part->theirs, at_dims_text(array->rank, array->dim, is), at_dims_text(shape.rank, shape.dim, needs));
}

bool at_import_put(at_import *in, const at_import_part *part)
{
    if (in->error->code != AT_OK)
        return false;
    const int index = at_params_find(in->params, part->ours);
    const at_shape shape = at_params_shape(in->params, index);
    const at_array *array = at_import_need(in, part->theirs, shape.rank);
    if (!array)
        return false;
    const bool matrix = shape.rank == 2;
    const int64_t width = matrix ? shape.dim[1] : 1;
    const int64_t rows = !matrix ? at_array_count(array) : at_import_dim(array, part->transposed ? 0 : 1);
    const int64_t inner = !matrix ? 1 : at_import_dim(array, part->transposed ? 1 : 0);
    const int64_t count = part->count ? part->count : rows - part->from;
    const int64_t columns = part->columns ? part->columns : width;
    if (inner != columns || part->column + width > columns || part->from + count > rows || count < 0 ||
        part->row + count > shape.dim[0])
        return does_not_fit(in, part, array, shape);
    at_real *to = at_params_value(in->params, index) + part->row * width;
    for (int64_t r = 0; r < count; r++)
        for (int64_t c = 0; c < width; c++) {
            const int64_t row = part->from + r;
            const at_real value =
                value_at(array, matrix && part->transposed ? c * rows + row : row * columns + part->column + c);
            if (!isfinite(value))
                return not_finite(in, part->theirs);
            to[r * width + c] = part->adds ? to[r * width + c] + value : value;
        }
    return true;
}

bool at_import_layer(at_import *in, const at_import_names *names, const char *ours, int64_t row, const char *theirs,
                     const char *part)
{
    char our[100], their[160];
    at_import_name(our, sizeof our, "%s.W", ours);
    at_import_name(their, sizeof their, names->weights, theirs, part);
    const at_import_part weights = {.ours = our, .theirs = their, .row = row, .transposed = names->transposed};
    if (!at_import_put(in, &weights))
        return false;
    at_import_name(our, sizeof our, "%s.b", ours);
    at_import_name(their, sizeof their, names->biases, theirs, part);
    return at_import_put(in, &(at_import_part){.ours = our, .theirs = their, .row = row});
}

bool at_import_attention(at_import *in, const at_import_names *names, const char *ours, const char *theirs,
                         bool crosses)
{
    const int64_t d = in->settings.hidden;
    const char *const *part = names->attention;
    char q[100], kv[100], o[100];
    at_import_name(q, sizeof q, crosses ? "%s.Q" : "%s.QKV", ours);
    at_import_name(kv, sizeof kv, crosses ? "%s.KV" : "%s.QKV", ours);
    at_import_name(o, sizeof o, "%s.O", ours);
    return at_import_layer(in, names, q, 0, theirs, part[0]) &&
           at_import_layer(in, names, kv, crosses ? 0 : d, theirs, part[1]) &&
           at_import_layer(in, names, kv, crosses ? d : 2 * d, theirs, part[2]) &&
           at_import_layer(in, names, o, 0, theirs, part[3]);
}

int64_t at_import_count(const at_import *in, const char *format)
{
    char name[160];
    for (int count = 0;; count++) {
        at_import_name(name, sizeof name, format, count);
        if (!at_import_has(in, name))
            return count;
    }
}

/* The rows of [V,width], or with `transposed` the columns of [width,V]. */
static bool pick(at_import *in, const char *ours, const char *theirs, const at_row_ids *ids, at_real missing,
                 bool transposed)
{
    if (in->error->code != AT_OK)
        return false;
    const int index = at_params_find(in->params, ours);
    const at_shape shape = at_params_shape(in->params, index);
    const at_array *array = at_import_need(in, theirs, shape.rank);
    if (!array)
        return false;
    const int64_t width = shape.rank == 2 ? shape.dim[1] : 1;
    const int64_t rows = shape.rank == 2 ? at_import_dim(array, !transposed) : at_array_count(array);
    at_real *to = at_params_value(in->params, index);
    if (shape.rank == 2 && at_import_dim(array, transposed) != width)
        return does_not_fit(in, &(at_import_part){.theirs = theirs}, array, shape);
    for (int64_t i = 0; i < ids->units; i++) {
        if (ids->row[i] >= rows)
            return does_not_fit(in, &(at_import_part){.theirs = theirs}, array, shape);
        for (int64_t c = 0; c < width; c++) {
            to[i * width + c] = ids->row[i] < 0
                                    ? missing
                                    : value_at(array, transposed ? c * rows + ids->row[i] : ids->row[i] * width + c);
            if (!isfinite(to[i * width + c]))
                return not_finite(in, theirs);
        }
    }
    return true;
}

bool at_import_rows(at_import *in, const char *ours, const char *theirs, const at_row_ids *ids, at_real missing)
{
    return pick(in, ours, theirs, ids, missing, false);
}

bool at_import_columns(at_import *in, const char *ours, const char *theirs, const at_row_ids *ids)
{
    return pick(in, ours, theirs, ids, 0, true);
}

void at_import_no_bias(at_import *in, const char *ours, const at_row_ids *ids)
{
    at_real *b = at_params_value(in->params, at_params_find(in->params, ours));
    for (int64_t i = 0; i < ids->units; i++)
        b[i] = ids->row[i] < 0 ? AT_NEVER : 0;
}
