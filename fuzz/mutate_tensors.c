/* A mutator that knows safetensors files. Random bytes seldom pass the JSON of the header, and a changed shape never fits
 * the offsets; here a file is taken apart, one thing in it is changed, and it is put together again. */
#include "fuzz.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "io/dtype.h"

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t most);

enum { MOST_TEXT = 4096 };
#define METADATA "__metadata__"

static uint32_t state; /* of the random numbers */

static uint32_t draw(uint32_t below)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)(state >> 8) * below) >> 24);
}

static json_int_t interesting(void)
{
    static const json_int_t number[] = {0,         1,         2,         3,         4,         5,
                                        7,         8,         16,        64,        127,       255,
                                        256,       1000,      4096,      65535,     1 << 20,   INT32_MAX,
                                        -1,        -2,        INT32_MIN, INT64_MAX, INT64_MIN, INT64_MAX / 2,
                                        1LL << 32, 1LL << 61, 1LL << 62, 3037000500};
    return number[draw(sizeof number / sizeof *number)];
}

/* ---- Metadata that is JSON ------------------------------------------------------------------------------------ */

/* Texts in the metadata that are JSON objects or lists become such, so that they are changed like the header. */
static void expand(json_t *root)
{
    const char *key;
    json_t *value;
    void *next;
    json_t *meta = json_object_get(root, METADATA);
    json_object_foreach_safe(meta, next, key, value)
    {
        json_t *inner = json_is_string(value) ? json_loads(json_string_value(value), 0, NULL) : NULL;
        if (inner)
            json_object_set_new(meta, key, inner);
    }
}

static void collapse(json_t *root)
{
    const char *key;
    json_t *value;
    void *next;
    json_t *meta = json_object_get(root, METADATA);
    json_object_foreach_safe(meta, next, key, value)
    {
        char *text = json_is_object(value) || json_is_array(value) ? json_dumps(value, JSON_COMPACT) : NULL;
        if (text)
            json_object_set_new(meta, key, json_string(text));
        free(text);
    }
}

/* ---- One change of the JSON ----------------------------------------------------------------------------------- */

/* A text with what is not UTF-8 replaced; texts of the file's own vocabulary are more useful than any bytes. */
static json_t *changed_text(const char *text)
{
    static const char *const word[] = {"",
                                       "a",
                                       "0",
                                       "true",
                                       "F64",
                                       "I64",
                                       "U8",
                                       "I8",
                                       "BF16",
                                       "F16",
                                       "dot",
                                       "scaled",
                                       "general",
                                       "additive",
                                       "additive:relu",
                                       "softmax",
                                       "sparsemax",
                                       "entmax15",
                                       "sigmoid",
                                       "relu",
                                       "hard",
                                       "global",
                                       "causal",
                                       "sliding:1",
                                       "local-m:2",
                                       "local-p:1",
                                       "none",
                                       "shaw:2",
                                       "rope",
                                       "alibi",
                                       "t5:4",
                                       "gru",
                                       "lstm",
                                       "rnn-plain",
                                       "rnn-encdec",
                                       "rnn-attention",
                                       "bahdanau",
                                       "luong",
                                       "transformer",
                                       "transformer-lm",
                                       "char",
                                       "word",
                                       "spm",
                                       "nfkc",
                                       "nfc"};
    if (draw(2) == 0)
        return json_string(word[draw(sizeof word / sizeof *word)]);
    uint8_t bytes[MOST_TEXT + 1];
    size_t size = strnlen(text, MOST_TEXT);
    memcpy(bytes, text, size);
    size = LLVMFuzzerMutate(bytes, size, MOST_TEXT);
    bytes[size] = '\0';
    for (size_t i = 0; i < size; i++)
        bytes[i] = bytes[i] == '\0' ? '?' : bytes[i];
    for (size_t i = 0; (i += at_utf8_length((const char *)bytes + i, size - i)) < size; i++)
        bytes[i] = '?';
    return json_string((const char *)bytes);
}

/* A value in place of another one. */
static json_t *changed(json_t *old)
{
    if (draw(16) == 0)
        return draw(2) == 0 ? json_array() : draw(2) == 0 ? json_object() : json_null();
    if (json_is_integer(old) && draw(3) == 0)
        return json_integer((json_int_t)((uint64_t)json_integer_value(old) + draw(5) - 2));
    if (json_is_boolean(old))
        return json_boolean(!json_is_true(old));
    if (json_is_string(old))
        return changed_text(json_string_value(old));
    return json_integer(interesting());
}

/* A list with one element less, more, or different; true if it changed itself and not something in an element. */
static bool change_list(json_t *list)
{
    const size_t size = json_array_size(list), at = size > 0 ? draw((uint32_t)size) : 0;
    switch (draw(5)) {
    case 0:
        json_array_remove(list, at);
        return true;
    case 1:
        if (size > 0)
            json_array_insert_new(list, at, json_deep_copy(json_array_get(list, draw((uint32_t)size))));
        return true;
    default:
        return false;
    }
}

static void change(json_t *value, int depth);

static void change_child(json_t *parent, const char *key, size_t index, int depth)
{
    json_t *child = key ? json_object_get(parent, key) : json_array_get(parent, index);
    if (depth < 6 && (json_object_size(child) > 0 || json_array_size(child) > 0)) {
        change(child, depth + 1);
        return;
    }
    if (key)
        json_object_set_new(parent, key, changed(child));
    else
        json_array_set_new(parent, index, changed(child));
}

static void change_object(json_t *object, const char *key, int depth)
{
    json_t *value = json_object_get(object, key);
    switch (draw(16)) {
    case 0:
        json_object_del(object, key);
        return;
    case 1: { /* under another name */
        json_t *name = changed_text(key);
        json_object_set(object, json_string_value(name), value);
        json_decref(name);
        return;
    }
    default:
        change_child(object, key, 0, depth);
    }
}

static void change(json_t *value, int depth)
{
    if (json_object_size(value) > 0) {
        uint32_t skip = draw((uint32_t)json_object_size(value));
        void *at = json_object_iter(value);
        while (skip-- > 0)
            at = json_object_iter_next(value, at);
        char *key = strdup(json_object_iter_key(at));
        EXPECT(key);
        change_object(value, key, depth);
        free(key);
    } else if (json_array_size(value) > 0 && !change_list(value)) {
        change_child(value, NULL, draw((uint32_t)json_array_size(value)), depth);
    }
}

/* ---- Values --------------------------------------------------------------------------------------------------- */

static void change_number(uint8_t *bytes, size_t size)
{
    static const uint32_t odd_float[] = {0x7f800000, 0xff800000, 0x7fc00000, 0x7f7fffff,
                                         0xff7fffff, 0x00000001, 0,          1u << 31};
    const size_t width = draw(2) == 0 ? 4 : 8, count = size / width;
    if (count == 0)
        return;
    uint64_t number = (uint64_t)interesting();
    if (draw(2) == 0)
        number = odd_float[draw(sizeof odd_float / sizeof *odd_float)];
    /* The counts of a state are its first values: the widest types come first. */
    const size_t at = draw(2) == 0 || count < 16 ? draw((uint32_t)count) : draw(16);
    memcpy(bytes + at * width, &number, width);
}

static size_t item_size(const char *name)
{
    for (int i = 0; name && i < AT_DTYPES; i++)
        if (strcmp(name, at_dtype_rows[i].safetensors) == 0)
            return at_dtype_rows[i].size;
    return 0;
}

/* Gives every tensor the bytes that its shape takes, one after the other, with as many of its values as there were.
 * Returns the new size of the data; leaves a tensor alone that is broken or would not fit. */
static size_t lay_out(json_t *root, const uint8_t *old, size_t old_size, uint8_t *data, size_t most)
{
    const char *name;
    json_t *entry;
    size_t used = 0;
    json_object_foreach(root, name, entry)
    {
        json_t *shape = json_object_get(entry, "shape"), *offsets = json_object_get(entry, "data_offsets");
        size_t bytes = item_size(json_string_value(json_object_get(entry, "dtype"))), i;
        json_t *dim;
        if (strcmp(name, METADATA) == 0 || !json_is_array(shape) || bytes == 0)
            continue;
        json_array_foreach(shape, i, dim)
        {
            const json_int_t n = json_integer_value(dim);
            bytes = n < 0 || n > (json_int_t)most || (n > 0 && bytes > most / (size_t)n) ? most + 1 : bytes * (size_t)n;
        }
        if (bytes > most - used)
            continue;
        const json_int_t from = json_integer_value(json_array_get(offsets, 0)),
                         to = json_integer_value(json_array_get(offsets, 1));
        memset(data + used, 0, bytes);
        if (from >= 0 && to >= from && (uint64_t)to <= old_size)
            memcpy(data + used, old + from, (size_t)(to - from) < bytes ? (size_t)(to - from) : bytes);
        json_object_set_new(entry, "data_offsets", json_pack("[I,I]", (json_int_t)used, (json_int_t)(used + bytes)));
        used += bytes;
    }
    return used;
}

/* ---- The file ------------------------------------------------------------------------------------------------- */

/* The length of the header; 0 if there is none. */
static size_t header_length(const uint8_t *bytes, size_t size)
{
    uint64_t length = 0;
    for (int i = 8; size >= 8 && i-- > 0;)
        length = length << 8 | bytes[i];
    return size >= 8 && length <= size - 8 ? (size_t)length : 0;
}

/* Header and data as a file; 0 if it would be too long. */
static size_t put_together(json_t *root, const uint8_t *data, size_t data_size, uint8_t *bytes, size_t most)
{
    char *text = json_dumps(root, JSON_COMPACT);
    const size_t length = text ? strlen(text) : most;
    const bool fits = length <= most && data_size <= most && 8 + length + data_size <= most;
    for (int i = 0; fits && i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)length >> 8 * i);
    if (fits) {
        memcpy(bytes + 8, text, length);
        memcpy(bytes + 8 + length, data, data_size);
    }
    free(text);
    return fits ? 8 + length + data_size : 0;
}

size_t mutate_tensors(uint8_t *bytes, size_t size, size_t most, unsigned seed)
{
    state = seed;
    const size_t length = header_length(bytes, size), data_size = size - 8 - length;
    json_t *root = length > 0 && draw(12) > 0 ? json_loadb((const char *)bytes + 8, length, 0, NULL) : NULL;
    if (!json_is_object(root)) {
        json_decref(root);
        return LLVMFuzzerMutate(bytes, size, most);
    }
    uint8_t *old = malloc(data_size + 1), *data = malloc(most + data_size + 1);
    EXPECT(old && data);
    memcpy(old, bytes + 8 + length, data_size);
    memcpy(data, old, data_size);
    size_t new_size = data_size;
    for (uint32_t times = 1 + draw(3); times-- > 0;)
        switch (draw(6)) {
        case 0:
            change_number(old, data_size);
            break;
        case 1:
            if (data_size > 0)
                LLVMFuzzerMutate(old, data_size, data_size);
            break;
        default:
            expand(root);
            change(root, 0);
            collapse(root);
        }
    if (draw(4) > 0)
        new_size = lay_out(root, old, data_size, data, most);
    else
        memcpy(data, old, data_size);
    const size_t whole = put_together(root, data, new_size, bytes, most);
    json_decref(root);
    free(old);
    free(data);
    return whole > 0 ? whole : LLVMFuzzerMutate(bytes, size, most);
}
