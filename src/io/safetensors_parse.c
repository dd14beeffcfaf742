/* The parser of safetensors files. Every size in the header is checked against the size of the file before it is used. */
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/utf8.h"
#include "io/dtype.h"
#include "io/parse.h"
#include "io/tensors_internal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One entry of the header, checked by itself. */
typedef struct entry {
    const char *name; /* owned by the JSON */
    at_dtype dtype;
    int rank;
    int64_t dim[AT_MAX_RANK];
    size_t begin, end;
} entry;

typedef struct reader {
    const char *file;
    at_error *error;
    size_t data_size;
    char shown[AT_SHOWN]; /* the name of a tensor, for error messages */
} reader;

static const char *shown(reader *r, const char *name)
{
    return at_shown(name, r->shown, sizeof r->shown);
}

static bool wrong(reader *r, const char *name, const char *what)
{
    return at_fail(r->error, AT_FORMAT, "'%s' has a broken entry for tensor '%s': %s", r->file, shown(r, name), what);
}

static bool read_dtype(reader *r, const char *name, const json_t *value, entry *e)
{
    if (!json_is_string(value))
        return wrong(r, name, "its dtype is missing or not a string such as \"F32\"");
    const char *text = json_string_value(value);
    for (int i = 0; i < AT_DTYPES; i++)
        if (strcmp(text, at_dtype_rows[i].safetensors) == 0) {
            e->dtype = (at_dtype)i;
            return true;
        }
    char type[24];
    at_shown(text, type, sizeof type);
    return at_fail(r->error, AT_UNSUPPORTED,
                   "'%s' has tensor '%s' of dtype %s; attend reads F32, F16, BF16, F64, I32, I64 and U8", r->file,
                   shown(r, name), type);
}

static bool read_shape(reader *r, const char *name, const json_t *value, entry *e)
{
    if (!json_is_array(value))
        return wrong(r, name, "its shape is missing or not a list such as [2,3]");
    size_t rank = json_array_size(value);
    if (rank > AT_MAX_RANK)
        return at_fail(r->error, AT_UNSUPPORTED, "'%s' has tensor '%s' of %zu dimensions; attend reads up to %d",
                       r->file, shown(r, name), rank, AT_MAX_RANK);
    e->rank = (int)rank;
    for (size_t i = 0; i < rank; i++) {
        const json_t *dim = json_array_get(value, i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return wrong(r, name, "a dimension of its shape is not a whole number from 0 up");
        e->dim[i] = json_integer_value(dim);
    }
    return true;
}

static bool read_offsets(reader *r, const char *name, const json_t *value, entry *e)
{
    const json_t *begin = json_array_get(value, 0), *end = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return wrong(r, name, "its data_offsets are missing or not two whole numbers [begin,end]");
    long long from = json_integer_value(begin), to = json_integer_value(end);
    if (from < 0 || to < from || (unsigned long long)to > r->data_size)
        return at_fail(r->error, AT_FORMAT,
                       "'%s' is truncated or damaged: it places tensor '%s' at bytes %lld to %lld of its data, which "
                       "has %zu bytes",
                       r->file, shown(r, name), from, to, r->data_size);
    e->begin = (size_t)from;
    e->end = (size_t)to;
    size_t count, bytes;
    char shape[AT_SHAPE_TEXT];
    if (!at_shape_bytes(e->dtype, e->rank, e->dim, &count, &bytes))
        return at_fail(r->error, AT_FORMAT, "'%s' claims shape %s for tensor '%s', which is larger than any array",
                       r->file, at_dims_text(e->rank, e->dim, shape), shown(r, name));
    if (bytes != e->end - e->begin)
        return at_fail(r->error, AT_FORMAT, "'%s' has %zu bytes for tensor '%s'; its shape %s of %s takes %zu", r->file,
                       e->end - e->begin, shown(r, name), at_dims_text(e->rank, e->dim, shape),
                       at_dtype_rows[e->dtype].name, bytes);
    return true;
}

static bool read_entry(reader *r, const char *name, const json_t *value, entry *e)
{
    *e = (entry){.name = name};
    if (!json_is_object(value))
        return wrong(r, name, "it is not an object with dtype, shape and data_offsets");
    if (!read_dtype(r, name, json_object_get(value, "dtype"), e) ||
        !read_shape(r, name, json_object_get(value, "shape"), e) ||
        !read_offsets(r, name, json_object_get(value, "data_offsets"), e))
        return false;
    if (json_object_size(value) != 3)
        return wrong(r, name, "it has a field besides dtype, shape and data_offsets");
    return true;
}

static bool read_meta(reader *r, json_t *meta, at_tensors *tensors)
{
    if (!json_is_object(meta))
        return at_fail(r->error, AT_FORMAT, "'%s' has " AT_METADATA " that is not an object of strings", r->file);
    const char *key;
    json_t *value;
    json_object_foreach(meta, key, value)
    {
        if (!json_is_string(value))
            return at_fail(r->error, AT_FORMAT, "'%s' has metadata '%s' that is not a string", r->file, shown(r, key));
    }
    tensors->meta = json_incref(meta);
    return true;
}

static int compare(const void *a, const void *b)
{
    const entry *left = a, *right = b;
    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    return (left->end > right->end) - (left->end < right->end);
}

/* In the order of their offsets, each tensor begins where the one before ends, from the first byte to the last. Memory
 * for the values is allocated only after that check: together they have as many bytes as the file. */
static bool read_values(reader *r, entry *entries, size_t count, const unsigned char *data, at_tensors *tensors)
{
    qsort(entries, count, sizeof *entries, compare);
    size_t offset = 0;
    for (size_t i = 0; i < count; i++) {
        const entry *e = &entries[i];
        if (e->begin != offset)
            return at_fail(r->error, AT_FORMAT,
                           "'%s' has %s before tensor '%s': it begins at byte %zu of the data instead of %zu", r->file,
                           e->begin > offset ? "a hole" : "an overlap", shown(r, e->name), e->begin, offset);
        offset = e->end;
    }
    if (offset != r->data_size)
        return at_fail(r->error, AT_FORMAT, "'%s' has %zu bytes of data; its tensors take %zu", r->file, r->data_size,
                       offset);
    for (size_t i = 0; i < count; i++) {
        const entry *e = &entries[i];
        at_array *array = at_array_of(e->dtype, e->rank, e->dim, data + e->begin, r->error);
        if (!array)
            return false;
        if (!at_tensors_append(tensors, e->name, array, r->error)) {
            at_array_free(array);
            return false;
        }
    }
    return true;
}

static bool read_root(reader *r, json_t *root, const unsigned char *data, at_tensors *tensors)
{
    size_t most = json_object_size(root), count = 0;
    if (most > INT_MAX)
        return at_fail(r->error, AT_UNSUPPORTED, "'%s' has %zu tensors; attend reads up to %d", r->file, most, INT_MAX);
    entry *entries = calloc(most + 1, sizeof *entries);
    if (!entries)
        return at_no_memory(r->error, "reading '%s'", r->file);
    const char *name;
    json_t *value;
    bool good = true;
    json_object_foreach(root, name, value)
    {
        if (strcmp(name, AT_METADATA) == 0)
            good = read_meta(r, value, tensors);
        else
            good = read_entry(r, name, value, &entries[count++]);
        if (!good)
            break;
    }
    good = good && read_values(r, entries, count, data, tensors);
    free(entries);
    return good;
}

/* Parses the JSON of the header; NULL if it fails. */
static json_t *load_header(const unsigned char *bytes, size_t size, size_t *length, reader *r)
{
    if (size < 8) {
        at_fail(r->error, AT_FORMAT,
                "'%s' is not a safetensors file: it has %zu bytes and needs 8 for its header's length", r->file, size);
        return NULL;
    }
    uint64_t n = 0;
    for (int i = 8; i-- > 0;)
        n = n << 8 | bytes[i];
    if (n <= AT_MOST_HEADER && n > size - 8 && size > 8 && bytes[8] == '{') {
        at_fail(r->error, AT_FORMAT, "'%s' is truncated: it claims a header of %llu bytes, and %zu bytes follow",
                r->file, (unsigned long long)n, size - 8);
        return NULL;
    }
    if (n > AT_MOST_HEADER || n > size - 8) {
        at_fail(r->error, AT_FORMAT,
                "'%s' is not a safetensors file: it claims a header of %llu bytes, and %zu bytes follow (%d at most)",
                r->file, (unsigned long long)n, size - 8, AT_MOST_HEADER);
        return NULL;
    }
    *length = (size_t)n;
    if (n == 0 || bytes[8] != '{') {
        at_fail(r->error, AT_FORMAT, "'%s' is not a safetensors file: its header does not begin with '{'", r->file);
        return NULL;
    }
    char what[120], text[AT_SHOWN];
    snprintf(what, sizeof what, "the header of '%s'", at_shown(r->file, text, sizeof text));
    return at_json_read((const char *)bytes + 8, *length, what, r->error);
}

at_tensors *at_tensors_parse(const unsigned char *bytes, size_t size, const char *name, at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    reader r = {.file = name, .error = error};
    size_t length = 0;
    json_t *root = load_header(bytes, size, &length, &r);
    if (!root)
        return NULL;
    r.data_size = size - 8 - length;
    at_tensors *tensors = at_tensors_new();
    bool good = tensors;
    if (!good)
        at_no_memory(error, "reading '%s'", name);
    good = good && read_root(&r, root, bytes + 8 + length, tensors);
    json_decref(root);
    if (good)
        return tensors;
    at_tensors_free(tensors);
    return NULL;
}
