#include "io/checksum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/error.h"
#include "base/utf8.h"
#include "io/dtype.h"
#include "io/tensors_internal.h"

#define ALGORITHM "xxh3-64:"
enum { CHECKSUM_TEXT = sizeof ALGORITHM + 16 };

/* 8 bytes, little-endian, as the machine is: io/dtype.h asserts it. */
static void add_number(XXH3_state_t *hash, uint64_t number)
{
    XXH3_64bits_update(hash, &number, sizeof number);
}

/* A field: its length, then its bytes. */
static void add_bytes(XXH3_state_t *hash, const void *bytes, size_t size)
{
    add_number(hash, size);
    if (size > 0)
        XXH3_64bits_update(hash, bytes, size);
}

static void add_text(XXH3_state_t *hash, const char *text)
{
    add_bytes(hash, text, strlen(text));
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The keys of a JSON object in the order of their bytes, NULL after the last; NULL if out of memory. */
static const char **sorted_keys(json_t *object)
{
    const char **keys = calloc(json_object_size(object) + 1, sizeof *keys), *key;
    json_t *value;
    size_t count = 0;
    if (!keys)
        return NULL;
    json_object_foreach(object, key, value)
    {
        keys[count++] = key;
    }
    qsort(keys, count, sizeof *keys, compare);
    return keys;
}

/* The number of entries of the metadata, without the checksum itself; then the key and the value of each. */
static bool add_metadata(XXH3_state_t *hash, const at_tensors *tensors)
{
    const char **keys = sorted_keys(tensors->meta);
    add_number(hash, json_object_size(tensors->meta) - (at_tensors_meta(tensors, AT_CHECKSUM_KEY) ? 1 : 0));
    for (int i = 0; keys && keys[i]; i++)
        if (strcmp(keys[i], AT_CHECKSUM_KEY) != 0) {
            add_text(hash, keys[i]);
            add_text(hash, at_tensors_meta(tensors, keys[i]));
        }
    free(keys);
    return keys;
}

/* The number of tensors; then name, type, shape and values of each. */
static bool add_tensors(XXH3_state_t *hash, const at_tensors *tensors)
{
    const char **names = sorted_keys(tensors->index);
    add_number(hash, json_object_size(tensors->index));
    for (int i = 0; names && names[i]; i++) {
        const at_array *array = at_tensors_get(tensors, names[i]);
        const at_dtype_row *type = &at_dtype_rows[array->dtype];
        char shape[AT_SHAPE_TEXT];
        add_text(hash, names[i]);
        add_text(hash, type->safetensors);
        add_text(hash, at_dims_text(array->rank, array->dim, shape));
        add_bytes(hash, array->data, (size_t)at_array_count(array) * type->size);
    }
    free(names);
    return names;
}

static bool compute(const at_tensors *tensors, char text[CHECKSUM_TEXT], at_error *error)
{
    XXH3_state_t *hash = error->code == AT_OK ? XXH3_createState() : NULL;
    if (error->code != AT_OK)
        return false;
    const bool done =
        hash && XXH3_64bits_reset(hash) == XXH_OK && add_metadata(hash, tensors) && add_tensors(hash, tensors);
    if (done)
        snprintf(text, CHECKSUM_TEXT, ALGORITHM "%016llx", (unsigned long long)XXH3_64bits_digest(hash));
    XXH3_freeState(hash);
    return done || at_no_memory(error, "a checksum");
}

bool at_tensors_seal(at_tensors *tensors, at_error *error)
{
    char text[CHECKSUM_TEXT];
    return compute(tensors, text, error) && at_tensors_set_meta(tensors, AT_CHECKSUM_KEY, text, error);
}

/* A key that holds a checksum though it is another key: a damaged one. NULL: none. */
static const char *misplaced(const at_tensors *tensors)
{
    const char *key;
    json_t *value;
    json_object_foreach(tensors->meta, key, value)
    {
        if (strncmp(json_string_value(value), ALGORITHM, strlen(ALGORITHM)) == 0)
            return key;
    }
    return NULL;
}

bool at_tensors_verify(const at_tensors *tensors, const char *path, bool *has_checksum, at_error *error)
{
    const char *stored = at_tensors_meta(tensors, AT_CHECKSUM_KEY);
    const char *other = stored ? NULL : misplaced(tensors);
    char computed[CHECKSUM_TEXT], shown[AT_SHOWN];
    *has_checksum = stored;
    if (other)
        return at_fail(error, AT_FORMAT, "'%s' is damaged: its checksum is called '%s' and not '" AT_CHECKSUM_KEY "'",
                       path, at_shown(other, shown, sizeof shown));
    if (!stored)
        return error->code == AT_OK;
    if (!compute(tensors, computed, error))
        return false;
    return strcmp(stored, computed) == 0 ||
           at_fail(error, AT_FORMAT,
                   "'%s' is damaged, or another program changed it: the checksum in it is %s, and that of its "
                   "contents is %s; use a copy that is intact, or remove '" AT_CHECKSUM_KEY
                   "' from its metadata if the change is intended",
                   path, at_shown(stored, shown, sizeof shown), computed);
}
