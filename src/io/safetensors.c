/* safetensors: eight bytes of header length N, N bytes of JSON
 *   {"__metadata__":{"format":"pt"},"name":{"dtype":"F32","shape":[2,3],"data_offsets":[begin,end]}}
 * then the values, without holes, overlaps or anything after them. This file is the container and its writer; the
 * reader is in safetensors_parse.c. */
#include "base/error.h"
#include "base/files.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/utf8.h"
#include "io/dtype.h"
#include "io/parse.h"
#include "io/tensors_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

at_tensors *at_tensors_new(void)
{
    at_tensors *tensors = calloc(1, sizeof *tensors);
    if (!tensors)
        return NULL;
    tensors->index = json_object();
    if (!tensors->index) {
        free(tensors);
        return NULL;
    }
    return tensors;
}

void at_tensors_free(at_tensors *tensors)
{
    if (!tensors)
        return;
    for (int i = 0; i < tensors->count; i++) {
        free(tensors->item[i].name);
        at_array_free(tensors->item[i].array);
    }
    free(tensors->item);
    json_decref(tensors->index);
    json_decref(tensors->meta);
    free(tensors);
}

int at_tensors_count(const at_tensors *tensors)
{
    return tensors->count;
}

const char *at_tensors_name(const at_tensors *tensors, int index)
{
    return index >= 0 && index < tensors->count ? tensors->item[index].name : NULL;
}

/* The index of a name, -1 if there is none. */
static int find(const at_tensors *tensors, const char *name)
{
    const json_t *index = json_object_get(tensors->index, name);
    return index ? (int)json_integer_value(index) : -1;
}

const at_array *at_tensors_get(const at_tensors *tensors, const char *name)
{
    const int index = find(tensors, name);
    return index < 0 ? NULL : tensors->item[index].array;
}

bool at_tensors_append(at_tensors *tensors, const char *name, at_array *array, at_error *error)
{
    char shown[AT_SHOWN];
    char *copy = strdup(name);
    if (!copy || tensors->count == INT_MAX || !AT_GROW(tensors->item, tensors->room, (size_t)tensors->count + 1) ||
        json_object_set_new(tensors->index, name, json_integer(tensors->count)) != 0) {
        free(copy);
        return at_no_memory(error, "tensor '%s'", at_shown(name, shown, sizeof shown));
    }
    tensors->item[tensors->count++] = (at_item){copy, array};
    return true;
}

/* JSON is UTF-8. */
static bool check_text(const char *what, const char *text, at_error *error)
{
    if (at_is_utf8(text))
        return true;
    char shown[AT_SHOWN];
    return at_fail(error, AT_USAGE, "%s '%s' is not UTF-8, which a safetensors file needs", what,
                   at_shown(text, shown, sizeof shown));
}

bool at_tensors_put(at_tensors *tensors, const char *name, const at_array *array, at_error *error)
{
    if (!at_array_check(array, "store a tensor", error) || !check_text("the tensor name", name, error))
        return false;
    if (strcmp(name, AT_METADATA) == 0)
        return at_fail(error, AT_USAGE,
                       "a tensor cannot be called '" AT_METADATA "', which is where a safetensors file "
                       "keeps its metadata");
    at_array *copy = at_array_of(array->dtype, array->rank, array->dim, array->data, error);
    if (!copy)
        return false;
    const int index = find(tensors, name);
    if (index >= 0) {
        at_array_free(tensors->item[index].array);
        tensors->item[index].array = copy;
        return true;
    }
    if (at_tensors_append(tensors, name, copy, error))
        return true;
    at_array_free(copy);
    return false;
}

const char *at_tensors_meta(const at_tensors *tensors, const char *key)
{
    return json_string_value(json_object_get(tensors->meta, key));
}

bool at_tensors_set_meta(at_tensors *tensors, const char *key, const char *value, at_error *error)
{
    if (error->code != AT_OK || !check_text("the metadata key", key, error))
        return false;
    if (!value) {
        json_object_del(tensors->meta, key);
        return true;
    }
    if (!check_text("the metadata value", value, error))
        return false;
    if (!tensors->meta)
        tensors->meta = json_object();
    if (json_object_set_new(tensors->meta, key, json_string(value)) == 0)
        return true;
    char shown[AT_SHOWN];
    return at_no_memory(error, "the metadata of '%s'", at_shown(key, shown, sizeof shown));
}

/* The order in a file: types from the highest to the lowest `order`, so that all values are aligned, then names. */
static int compare(const void *a, const void *b)
{
    const at_item *left = *(const at_item *const *)a, *right = *(const at_item *const *)b;
    int by_type = at_dtype_rows[right->array->dtype].order - at_dtype_rows[left->array->dtype].order;
    return by_type != 0 ? by_type : strcmp(left->name, right->name);
}

static size_t bytes_of(const at_array *array)
{
    return (size_t)at_array_count(array) * at_dtype_rows[array->dtype].size;
}

/* {"dtype":"F32","shape":[2,3],"data_offsets":[begin,end]} */
static json_t *describe(const at_array *array, size_t begin, size_t end)
{
    json_t *shape = json_array();
    for (int i = 0; i < array->rank; i++)
        json_array_append_new(shape, json_integer(array->dim[i]));
    if (json_array_size(shape) != (size_t)array->rank) {
        json_decref(shape);
        return NULL;
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", at_dtype_rows[array->dtype].safetensors, "shape", shape,
                     "data_offsets", (json_int_t)begin, (json_int_t)end);
}

/* The header for the tensors in their order; NULL if out of memory. */
static char *header_text(const at_tensors *tensors, at_item *const *order)
{
    json_t *root = json_object();
    bool complete = root;
    if (complete && tensors->meta)
        complete = json_object_set(root, AT_METADATA, tensors->meta) == 0;
    size_t begin = 0;
    for (int i = 0; complete && i < tensors->count; i++) {
        size_t end = begin + bytes_of(order[i]->array);
        complete = json_object_set_new(root, order[i]->name, describe(order[i]->array, begin, end)) == 0;
        begin = end;
    }
    char *text = complete ? at_json_text(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return text;
}

static bool write_all(at_writer *writer, const char *text, at_item *const *order, int count, at_error *error)
{
    size_t length = strlen(text), padded = (length + 7) / 8 * 8;
    unsigned char prefix[8];
    for (int i = 0; i < 8; i++)
        prefix[i] = (unsigned char)((uint64_t)padded >> (8 * i));
    at_writer_add(writer, prefix, sizeof prefix, error);
    at_writer_add(writer, text, length, error);
    at_writer_add(writer, "        ", padded - length, error);
    for (int i = 0; i < count; i++)
        at_writer_add(writer, order[i]->array->data, bytes_of(order[i]->array), error);
    return at_writer_commit(writer, error);
}

bool at_tensors_write(const at_tensors *tensors, const char *path, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    at_item **order = calloc((size_t)tensors->count + 1, sizeof *order);
    for (int i = 0; order && i < tensors->count; i++)
        order[i] = &tensors->item[i];
    if (order)
        qsort(order, (size_t)tensors->count, sizeof *order, compare);
    char *text = !order ? NULL : header_text(tensors, order);
    bool done = false;
    if (!text)
        at_no_memory(error, "writing '%s'", path);
    else if (strlen(text) > AT_MOST_HEADER)
        at_fail(error, AT_UNSUPPORTED, "cannot write '%s': its header would have %zu bytes, and safetensors allows %d",
                path, strlen(text), AT_MOST_HEADER);
    else {
        at_writer *writer = at_writer_open(path, error);
        done = writer && write_all(writer, text, order, tensors->count, error);
    }
    free(text);
    free(order);
    return done;
}

at_tensors *at_tensors_read(const char *path, at_error *error)
{
    size_t size;
    unsigned char *bytes = at_file_read(path, &size, error);
    at_tensors *tensors = !bytes ? NULL : at_tensors_parse(bytes, size, path, error);
    free(bytes);
    return tensors;
}
