/* NumPy's .npy files: a magic string, a version, the length of a header, the header as a Python dictionary
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
 * padded with blanks and a line feed, then the values. */
#include "base/error.h"
#include "base/files.h"
#include "base/utf8.h"
#include "io/dtype.h"
#include "io/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

enum { MOST_HEADER = AT_NPY_HEADER - 12, DESCR = 32 };

/* The parsed header, and the current position in its text. */
typedef struct header {
    const char *at, *end;
    const char *file;
    at_error *error;
    bool has_descr, has_order, has_shape;
    char descr[DESCR];
    bool fortran_order;
    int rank;
    int64_t dim[AT_MAX_RANK];
} header;

static bool wrong(header *h, const char *what)
{
    return at_fail(h->error, AT_FORMAT,
                   "'%s' has a broken .npy header: %s; it should read like "
                   "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
                   h->file, what);
}

static void skip_blanks(header *h)
{
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\t' || *h->at == '\n' || *h->at == '\r'))
        h->at++;
}

/* Skips the character if it comes next. */
static bool take(header *h, char sign)
{
    skip_blanks(h);
    if (h->at == h->end || *h->at != sign)
        return false;
    h->at++;
    return true;
}

static bool take_word(header *h, const char *word)
{
    skip_blanks(h);
    size_t length = strlen(word);
    if ((size_t)(h->end - h->at) < length || memcmp(h->at, word, length) != 0)
        return false;
    h->at += length;
    return true;
}

/* A short string in either kind of quotes, without escapes: no known value needs one. */
static bool take_string(header *h, char *out, size_t room)
{
    char quote = take(h, '\'') ? '\'' : take(h, '"') ? '"' : '\0';
    if (quote == '\0')
        return false;
    size_t used = 0;
    for (; h->at < h->end && *h->at != quote; h->at++) {
        if (used + 1 == room || *h->at == '\\' || *h->at == '\0')
            return false;
        out[used++] = *h->at;
    }
    out[used] = '\0';
    return take(h, quote);
}

static bool take_dimension(header *h)
{
    if (h->rank == AT_MAX_RANK)
        return at_fail(h->error, AT_UNSUPPORTED, "'%s' has more than %d dimensions, the most that attend reads",
                       h->file, AT_MAX_RANK);
    if (take(h, '-'))
        return wrong(h, "a dimension is negative");
    skip_blanks(h);
    if (h->at == h->end || *h->at < '0' || *h->at > '9')
        return wrong(h, "'shape' is not a tuple of integers");
    int64_t value = 0;
    for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *h->at - '0', &value))
            return wrong(h, "a dimension is larger than any array");
    take(h, 'L'); /* how Python 2 wrote a long number */
    h->dim[h->rank++] = value;
    return true;
}

/* "()", "(3,)", "(2, 3)": one number needs its comma, as in Python. */
static bool take_shape(header *h)
{
    if (!take(h, '('))
        return wrong(h, "'shape' is not a tuple");
    bool comma = true;
    while (!take(h, ')')) {
        if (!comma)
            return wrong(h, "'shape' lacks a comma or its closing bracket");
        if (!take_dimension(h))
            return false;
        comma = take(h, ',');
    }
    if (h->rank == 1 && !comma)
        return wrong(h, "'shape' is a number in brackets and not a tuple");
    return true;
}

static bool take_entry(header *h)
{
    char key[DESCR];
    if (!take_string(h, key, sizeof key))
        return wrong(h, "a key is not a short string in quotes");
    if (!take(h, ':'))
        return wrong(h, "a key lacks its colon");
    bool *seen = strcmp(key, "descr") == 0           ? &h->has_descr
                 : strcmp(key, "fortran_order") == 0 ? &h->has_order
                 : strcmp(key, "shape") == 0         ? &h->has_shape
                                                     : NULL;
    if (!seen)
        return wrong(h, "it has a key besides 'descr', 'fortran_order' and 'shape'");
    if (*seen)
        return wrong(h, "a key comes twice");
    *seen = true;
    if (seen == &h->has_shape)
        return take_shape(h);
    if (seen == &h->has_order) {
        h->fortran_order = take_word(h, "True");
        return h->fortran_order || take_word(h, "False") || wrong(h, "'fortran_order' is neither True nor False");
    }
    skip_blanks(h);
    if (h->at < h->end && (*h->at == '[' || *h->at == '('))
        return at_fail(h->error, AT_UNSUPPORTED,
                       "'%s' holds records of several fields; save each field as an array of its own", h->file);
    return take_string(h, h->descr, sizeof h->descr) || wrong(h, "'descr' is not a short string in quotes");
}

static bool take_header(header *h)
{
    if (!take(h, '{'))
        return wrong(h, "it does not start with a '{'");
    bool comma = true;
    while (!take(h, '}')) {
        if (!comma)
            return wrong(h, "it lacks a comma or its closing '}'");
        if (!take_entry(h))
            return false;
        comma = take(h, ',');
    }
    skip_blanks(h);
    if (h->at != h->end)
        return wrong(h, "something follows its closing '}'");
    if (!h->has_descr || !h->has_order || !h->has_shape)
        return wrong(h, !h->has_descr   ? "'descr' is missing"
                        : !h->has_order ? "'fortran_order' is missing"
                                        : "'shape' is missing");
    return true;
}

/* The number type of a descr such as "<f4"; other types are refused by name. */
static bool find_dtype(const header *h, at_dtype *dtype)
{
    for (int i = 0; i < AT_DTYPES; i++)
        if (at_dtype_rows[i].npy && strcmp(h->descr, at_dtype_rows[i].npy) == 0) {
            *dtype = (at_dtype)i;
            return true;
        }
    static const char reads[] = "attend reads '<f4', '<f8', '<f2', '<i4', '<i8' and '|u1'";
    char shown[AT_SHOWN];
    at_shown(h->descr, shown, sizeof shown);
    const char *kind = h->descr + (h->descr[0] && strchr("<>|=", h->descr[0]));
    if (h->descr[0] == '>')
        return at_fail(h->error, AT_UNSUPPORTED,
                       "'%s' holds big-endian numbers ('%s'); save it little-endian, such as '<%s' (%s)", h->file,
                       shown, shown + 1, reads);
    if (kind[0] == 'O')
        return at_fail(h->error, AT_UNSUPPORTED, "'%s' holds Python objects ('%s'), not numbers; %s", h->file, shown,
                       reads);
    static const struct {
        char letter;
        const char *what;
    } kinds[] = {{'b', "booleans"},
                 {'i', "integers"},
                 {'u', "unsigned integers"},
                 {'f', "floats"},
                 {'c', "complex numbers"},
                 {'S', "byte strings"},
                 {'U', "text"},
                 {'V', "raw records"},
                 {'M', "dates"},
                 {'m', "time differences"}};
    const char *what = "numbers";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kind[0] == kinds[i].letter)
            what = kinds[i].what;
    return at_fail(h->error, AT_UNSUPPORTED, "'%s' holds %s of type '%s'; %s", h->file, what, shown, reads);
}

/* Reads the bytes before the header, and finds it. */
static bool find_header(const unsigned char *bytes, size_t size, header *h, size_t *data_start)
{
    if (size < sizeof magic + 2 || memcmp(bytes, magic, sizeof magic) != 0)
        return at_fail(h->error, AT_FORMAT, "'%s' is not a .npy file: it does not begin with \\x93NUMPY and a version",
                       h->file);
    int major = bytes[6], minor = bytes[7];
    if (major < 1 || major > 3 || minor != 0)
        return at_fail(h->error, AT_UNSUPPORTED, "'%s' is a .npy file of version %d.%d; attend reads 1.0, 2.0 and 3.0",
                       h->file, major, minor);
    size_t start = major == 1 ? 10 : 12, length = 0;
    if (size < start)
        return at_fail(h->error, AT_FORMAT,
                       "'%s' ends after %zu bytes, inside the fixed part of %zu bytes of a .npy file", h->file, size,
                       start);
    for (size_t i = start; i-- > 8;)
        length = length << 8 | bytes[i];
    if (length > MOST_HEADER)
        return at_fail(h->error, AT_FORMAT, "'%s' claims a .npy header of %zu bytes; it may have %d at most", h->file,
                       length, MOST_HEADER);
    if (length > size - start)
        return at_fail(h->error, AT_FORMAT, "'%s' ends inside its .npy header: %zu of its %zu bytes are there", h->file,
                       size - start, length);
    h->at = (const char *)bytes + start;
    h->end = h->at + length;
    *data_start = start + length;
    if (length == 0 || h->end[-1] != '\n')
        return wrong(h, "it does not end with a line feed");
    return true;
}

bool at_npy_header_parse(const unsigned char *bytes, size_t size, size_t total, const char *name, at_npy_header *out,
                         at_error *error)
{
    if (error->code != AT_OK)
        return false;
    header h = {.file = name, .error = error};
    size_t count, needed;
    *out = (at_npy_header){.dtype = AT_F32};
    if (!find_header(bytes, size, &h, &out->start) || !take_header(&h) || !find_dtype(&h, &out->dtype))
        return false;
    char shape[AT_SHAPE_TEXT];
    at_dims_text(h.rank, h.dim, shape);
    if (h.fortran_order && h.rank > 1)
        return at_fail(
            error, AT_UNSUPPORTED,
            "'%s' holds its shape %s in Fortran order (fortran_order: True); save numpy.ascontiguousarray of it", name,
            shape);
    if (!at_shape_bytes(out->dtype, h.rank, h.dim, &count, &needed))
        return at_fail(error, AT_FORMAT, "'%s' claims shape %s, which is larger than any array", name, shape);
    if (needed != total - out->start)
        return at_fail(error, AT_FORMAT, "'%s' has %zu bytes of data; its shape %s of %s takes %zu", name,
                       total - out->start, shape, at_dtype_rows[out->dtype].name, needed);
    out->rank = h.rank;
    memcpy(out->dim, h.dim, sizeof h.dim);
    return true;
}

at_array *at_npy_parse(const unsigned char *bytes, size_t size, const char *name, at_error *error)
{
    at_npy_header h;
    if (!at_npy_header_parse(bytes, size, size, name, &h, error))
        return NULL;
    return at_array_of(h.dtype, h.rank, h.dim, bytes + h.start, error);
}

at_array *at_npy_read(const char *path, at_error *error)
{
    size_t size;
    unsigned char *bytes = at_file_read(path, &size, error);
    at_array *array = !bytes ? NULL : at_npy_parse(bytes, size, path, error);
    free(bytes);
    return array;
}

bool at_npy_add(at_writer *writer, const at_array *array, at_error *error)
{
    if (!at_array_check(array, "write a .npy file", error))
        return false;
    const at_dtype_row *type = &at_dtype_rows[array->dtype];
    if (!type->npy)
        return at_fail(error, AT_UNSUPPORTED, "cannot write '%s': .npy has no %s; convert the array to float32",
                       at_writer_path(writer), type->name);
    /* Magic string, version 1.0, two bytes of length, the text, then blanks so that the values start at a multiple of 64.
     * The longest shape takes less than AT_SHAPE_TEXT, and all around it less than two steps of 64. */
    char block[AT_SHAPE_TEXT + 2 * 64 + 64];
    memcpy(block, magic, sizeof magic);
    memcpy(block + sizeof magic, "\x01\x00", 2);
    size_t used = 10;
    used += (size_t)sprintf(block + used, "{'descr': '%s', 'fortran_order': False, 'shape': (", type->npy);
    for (int i = 0; i < array->rank; i++)
        used += (size_t)sprintf(block + used, "%s%lld", i == 0 ? "" : ", ", (long long)array->dim[i]);
    used += (size_t)sprintf(block + used, "%s), }", array->rank == 1 ? "," : "");
    size_t start = (used + 1 + 63) / 64 * 64;
    memset(block + used, ' ', start - used - 1);
    block[start - 1] = '\n';
    block[8] = (char)((start - 10) & 255);
    block[9] = (char)((start - 10) >> 8);
    return at_writer_add(writer, block, start, error) &&
           at_writer_add(writer, array->data, (size_t)at_array_count(array) * type->size, error);
}

bool at_npy_write(const char *path, const at_array *array, at_error *error)
{
    at_writer *writer = at_writer_open(path, error);
    if (!writer)
        return false;
    at_npy_add(writer, array, error);
    return at_writer_commit(writer, error);
}
