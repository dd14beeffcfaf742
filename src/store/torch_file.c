#include "store/torch_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/utf8.h"
#include "io/dtype.h"
#include "io/zip.h"

enum { MOST_ARRAYS = 1 << 14 };

/* PROTO 2, then the magic number 0x1950a86a20f9469cfc6c as LONG1, STOP. */
static const unsigned char old_start[] = {0x80, 2,    0x8a, 10,   0x6c, 0xfc, 0x9c, 0x46,
                                          0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, '.'};

/* The numbers of a storage in an old file. */
typedef struct numbers {
    const char *key;
    const unsigned char *data;
    int64_t count;
} numbers;

struct at_torch {
    char *path;
    at_arena *arena;
    at_zip *zip; /* NULL: an old file, whose bytes are: */
    char *top;   /* of the zip file, "archive/" */
    unsigned char *bytes;
    size_t size;
    numbers *storage;
    size_t storages;
    at_pickled *root;
};

/* ---- The two forms -------------------------------------------------------------------------------------------- */

static bool read_zip(at_torch *t, at_error *error)
{
    if (!(t->zip = at_zip_open(t->path, error)))
        return false;
    for (int64_t i = 0; i < at_zip_count(t->zip); i++) {
        const char *name = at_zip_name(t->zip, i), *slash = strchr(name, '/');
        if (!slash || strcmp(slash, "/data.pkl") != 0)
            continue;
        t->top = strndup(name, (size_t)(slash - name) + 1);
        t->bytes = t->top ? at_zip_read(t->zip, i, &t->size, error) : NULL;
        const unsigned char *at = t->bytes;
        t->root = at ? at_pickle_read(t->arena, &at, at + t->size, t->path, NULL, error) : NULL;
        return t->root || at_no_memory(error, "'%s'", t->path);
    }
    return at_fail(error, AT_FORMAT, "'%s' is a zip file without the data.pkl of PyTorch", t->path);
}

/* The bytes of a number of a storage of this type; 0: not known. */
static size_t type_of(const at_pickled *storage, at_dtype *dtype)
{
    static const struct {
        const char *name;
        at_dtype dtype;
    } types[] = {{"torch FloatStorage", AT_F32},  {"torch HalfStorage", AT_F16}, {"torch BFloat16Storage", AT_BF16},
                 {"torch DoubleStorage", AT_F64}, {"torch LongStorage", AT_I64}, {"torch IntStorage", AT_I32},
                 {"torch ByteStorage", AT_U8}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(storage->of->text, types[i].name) == 0) {
            *dtype = types[i].dtype;
            return at_dtype_rows[types[i].dtype].size;
        }
    return 0;
}

static const at_pickled *find_storage(const at_pickled *last, const char *key)
{
    while (last && strcmp(last->text, key) != 0)
        last = last->state;
    return last;
}

/* After the pickles, for each key: u64 count, the numbers. */
static bool read_numbers(at_torch *t, const at_pickled *keys, const at_pickled *last, const unsigned char *at,
                         at_error *error)
{
    const unsigned char *end = t->bytes + t->size;
    if (!keys || keys->kind != AT_PICKLED_LIST || keys->count > MOST_ARRAYS)
        return at_fail(error, AT_FORMAT, "'%s' is truncated or damaged: it has no list of storages", t->path);
    t->storage = calloc(keys->count + 1, sizeof *t->storage);
    if (!t->storage)
        return at_no_memory(error, "'%s'", t->path);
    for (size_t i = 0; i < keys->count; i++) {
        const char *key = at_pickled_text(keys->item[i]);
        const at_pickled *storage = key ? find_storage(last, key) : NULL;
        at_dtype dtype;
        uint64_t count;
        if (!key || end - at < 8)
            return at_fail(error, AT_FORMAT, "'%s' is truncated or damaged: a storage is missing", t->path);
        memcpy(&count, at, 8);
        at += 8;
        const size_t size = storage ? type_of(storage, &dtype) : 0;
        if (size == 0)
            return at_fail(error, AT_UNSUPPORTED, "'%s' has numbers of a type that this reader does not know", t->path);
        if (count > (size_t)(end - at) / size || (int64_t)count != storage->integer)
            return at_fail(error, AT_FORMAT, "'%s' is truncated or damaged: a storage is shorter than its arrays",
                           t->path);
        t->storage[t->storages++] = (numbers){key, at, (int64_t)count};
        at += count * size;
    }
    return true;
}

static bool read_old(at_torch *t, at_error *error)
{
    enum { MAGIC, PROTOCOL, SYSTEM, OBJECT, KEYS, PICKLES };
    at_pickled *part[PICKLES] = {0}, *last = NULL;
    t->bytes = at_file_read(t->path, &t->size, error);
    const unsigned char *at = t->bytes, *end = at ? at + t->size : NULL;
    for (int i = 0; at && i < PICKLES; i++)
        if (!(part[i] = at_pickle_read(t->arena, &at, end, t->path, i == OBJECT ? &last : NULL, error)))
            return false;
    t->root = part[OBJECT];
    return at && read_numbers(t, part[KEYS], last, at, error);
}

bool at_is_torch(const char *path)
{
    unsigned char start[sizeof old_start];
    at_error unread = {0};
    const size_t size = at_file_begin(path, start, sizeof start, &unread);
    if (size == sizeof start && memcmp(start, old_start, sizeof start) == 0)
        return true;
    at_zip *zip = at_is_zip(start, size) ? at_zip_open(path, &unread) : NULL;
    bool found = at_is_zip(start, size) && !at_zip_built(); /* so that reading it says why it cannot be read */
    for (int64_t i = 0; zip && i < at_zip_count(zip) && !found; i++) {
        const char *slash = strchr(at_zip_name(zip, i), '/');
        found = slash && strcmp(slash, "/data.pkl") == 0;
    }
    at_zip_close(zip);
    return found;
}

at_torch *at_torch_read(const char *path, at_error *error)
{
    unsigned char start[4];
    const size_t size = at_file_begin(path, start, sizeof start, error);
    at_torch *t = error->code == AT_OK ? calloc(1, sizeof *t) : NULL;
    if (t)
        *t = (at_torch){.path = strdup(path), .arena = at_arena_new()};
    if (!t || !t->path || !t->arena)
        at_no_memory(error, "'%s'", path);
    else if (at_is_zip(start, size) ? read_zip(t, error) : read_old(t, error))
        return t;
    at_torch_free(t);
    return NULL;
}

void at_torch_free(at_torch *t)
{
    if (!t)
        return;
    at_zip_close(t->zip);
    at_arena_free(t->arena);
    free(t->storage);
    free(t->bytes);
    free(t->top);
    free(t->path);
    free(t);
}

const at_pickled *at_torch_root(const at_torch *torch)
{
    return torch->root;
}

/* ---- Arrays --------------------------------------------------------------------------------------------------- */

/* The numbers of a storage; *owned is to be freed. */
static const unsigned char *numbers_of(const at_torch *t, const at_pickled *storage, size_t item, unsigned char **owned,
                                       at_error *error)
{
    char name[300];
    size_t size = 0;
    *owned = NULL;
    for (size_t i = 0; i < t->storages; i++)
        if (strcmp(t->storage[i].key, storage->text) == 0 && t->storage[i].count == storage->integer)
            return t->storage[i].data;
    if (t->zip) {
        snprintf(name, sizeof name, "%.100sdata/%.100s", t->top, storage->text);
        const int64_t index = at_zip_find(t->zip, name);
        *owned = index >= 0 ? at_zip_read(t->zip, index, &size, error) : NULL;
        if (*owned && (uint64_t)storage->integer <= size / item)
            return *owned;
    }
    char shown[AT_SHOWN];
    at_fail(error, AT_FORMAT, "'%s' is truncated or damaged: the numbers '%s' are missing or too few", t->path,
            at_shown(storage->text, shown, sizeof shown));
    return NULL;
}

/* Copies the array with its strides to C order. */
static void copy(const at_pickled *array, const unsigned char *from, size_t item, unsigned char *to)
{
    int64_t at[AT_MAX_RANK] = {0}, count = 1;
    for (int i = 0; i < array->rank; i++)
        count *= array->dim[i];
    for (int64_t n = 0; n < count; n++) {
        int64_t offset = array->integer;
        for (int i = 0; i < array->rank; i++)
            offset += at[i] * array->dim[array->rank + i];
        memcpy(to + (size_t)n * item, from + (size_t)offset * item, item);
        for (int i = array->rank - 1; i >= 0 && ++at[i] == array->dim[i]; i--)
            at[i] = 0;
    }
}

static bool add_array(const at_torch *t, const char *name, const at_pickled *array, at_tensors *arrays, at_error *error)
{
    at_dtype dtype;
    const size_t item = type_of(array->of, &dtype);
    size_t count, bytes;
    unsigned char *owned = NULL;
    if (item == 0 || at_tensors_get(arrays, name))
        return true; /* of a type that no weight has; or named before */
    if (!at_shape_bytes(dtype, array->rank, array->dim, &count, &bytes))
        return at_fail(error, AT_FORMAT, "'%s': an array is too large", t->path);
    const unsigned char *from = numbers_of(t, array->of, item, &owned, error);
    unsigned char *values = from ? malloc(bytes + 1) : NULL;
    if (from && !values)
        at_no_memory(error, "an array of '%s'", t->path);
    if (values)
        copy(array, from, item, values);
    at_array view = {.dtype = dtype, .rank = array->rank, .data = values};
    memcpy(view.dim, array->dim, (size_t)array->rank * sizeof *array->dim);
    const bool done = values && at_tensors_put(arrays, name, &view, error);
    free(values);
    free(owned);
    return done;
}

bool at_torch_add(const at_torch *t, const at_pickled *dictionary, at_tensors *arrays, at_error *error)
{
    if (!dictionary || dictionary->kind != AT_PICKLED_DICTIONARY || dictionary->count > 2 * MOST_ARRAYS)
        return at_fail(error, AT_FORMAT, "'%s' is not a dictionary of arrays", t->path);
    for (uint32_t i = 0; i + 1 < dictionary->count; i += 2) {
        const char *name = at_pickled_text(dictionary->item[i]);
        const at_pickled *value = dictionary->item[i + 1];
        if (name && value->kind == AT_PICKLED_ARRAY && !add_array(t, name, value, arrays, error))
            return false;
    }
    return true;
}

at_tensors *at_torch_tensors(const char *path, at_error *error)
{
    at_torch *t = at_torch_read(path, error);
    at_tensors *arrays = t ? at_tensors_new() : NULL;
    const bool done = arrays && at_torch_add(t, t->root, arrays, error);
    at_torch_free(t);
    if (done)
        return arrays;
    at_tensors_free(arrays);
    at_no_memory(error, "'%s'", path);
    return NULL;
}
