/* The files of other programs' models: paths beside each other, and lists of words. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/files.h"
#include "store/imported_internal.h"

bool at_is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* ---- A folder, or a folder inside a zip file -------------------------------------------------------------------- */

/* The first part of the first entry's name; false if out of memory. */
static bool find_top(at_bundle *bundle)
{
    const char *name = at_zip_count(bundle->zip) > 0 ? at_zip_name(bundle->zip, 0) : "";
    const char *slash = strchr(name, '/');
    bundle->top = strndup(name, slash ? (size_t)(slash - name) : 0);
    return bundle->top;
}

bool at_bundle_open(at_bundle *bundle, const char *path, at_error *error)
{
    unsigned char start[4];
    at_error unread = {0};
    const char *slash = strrchr(path, '/');
    const bool folder = at_is_folder(path);
    *bundle = (at_bundle){0};
    if (!folder && at_is_zip(start, at_file_begin(path, start, sizeof start, &unread)) &&
        !(bundle->zip = at_zip_open(path, error)))
        return false;
    bundle->folder = folder || bundle->zip ? strdup(path)
                     : slash               ? strndup(path, (size_t)(slash - path + (slash == path)))
                                           : strdup(".");
    return (bundle->folder && (!bundle->zip || find_top(bundle))) || at_no_memory(error, "the path of '%s'", path);
}

bool at_bundle_beside(at_bundle *bundle, const char *path, at_error *error)
{
    const char *slash = strrchr(path, '/');
    char *folder = at_is_folder(path) ? strdup(path) : slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    *bundle = (at_bundle){0};
    const bool done = folder ? at_bundle_open(bundle, folder, error) : at_no_memory(error, "the path of '%s'", path);
    free(folder);
    return done;
}

void at_bundle_close(at_bundle *bundle)
{
    at_zip_close(bundle->zip);
    free(bundle->folder);
    free(bundle->top);
    *bundle = (at_bundle){0};
}

char *at_bundle_path(const at_bundle *bundle, const char *name, at_error *error)
{
    at_buffer path = {0};
    const size_t length = strlen(bundle->folder);
    const bool ends = length > 0 && bundle->folder[length - 1] == '/';
    at_buffer_print(&path, "%s%s%s", bundle->folder, bundle->zip ? ": " : ends ? "" : "/", name);
    if (!path.failed)
        return path.bytes; /* the caller frees it */
    at_buffer_free(&path);
    at_no_memory(error, "the path of '%s'", name);
    return NULL;
}

static int64_t entry_of(const at_bundle *bundle, const char *name)
{
    at_buffer path = {0};
    at_buffer_print(&path, "%s%s%s", bundle->top, *bundle->top ? "/" : "", name);
    const int64_t index = path.failed ? -1 : at_zip_find(bundle->zip, path.bytes);
    at_buffer_free(&path);
    return index;
}

bool at_bundle_has(const at_bundle *bundle, const char *name)
{
    struct stat about;
    at_error unused = {0};
    if (bundle->zip)
        return entry_of(bundle, name) >= 0;
    char *path = at_bundle_path(bundle, name, &unused);
    const bool there = path && stat(path, &about) == 0 && S_ISREG(about.st_mode);
    free(path);
    return there;
}

unsigned char *at_bundle_read(const at_bundle *bundle, const char *name, size_t *size, at_error *error)
{
    if (error->code != AT_OK || !at_bundle_has(bundle, name))
        return NULL;
    if (bundle->zip)
        return at_zip_read(bundle->zip, entry_of(bundle, name), size, error);
    char *path = at_bundle_path(bundle, name, error);
    unsigned char *bytes = path ? at_file_read(path, size, error) : NULL;
    free(path);
    return bytes;
}

json_t *at_bundle_json(const at_bundle *bundle, const char *name, at_error *error)
{
    size_t size;
    char *text = (char *)at_bundle_read(bundle, name, &size, error);
    char *path = text ? at_bundle_path(bundle, name, error) : NULL;
    json_t *value = path ? at_json_read(text, size, path, error) : NULL;
    free(path);
    free(text);
    return value;
}

/* ---- Words ---------------------------------------------------------------------------------------------------- */

void at_row_names_free(at_row_names *names)
{
    for (int64_t i = 0; names->name && i < names->count; i++)
        free(names->name[i]);
    free(names->name);
    *names = (at_row_names){0};
}

static bool reserve(at_row_names *names, size_t count, const char *path, at_error *error)
{
    names->name = calloc(count + 1, sizeof *names->name);
    names->count = names->name ? (int64_t)count : 0;
    return names->name || at_no_memory(error, "the words of '%s'", path);
}

static bool set_name(at_row_names *names, int64_t row, const char *text, size_t size, const char *path, at_error *error)
{
    names->name[row] = strndup(text, size);
    return names->name[row] || at_no_memory(error, "the words of '%s'", path);
}

bool at_row_names_of_text(const char *text, size_t size, const char *path, at_row_names *names, at_error *error)
{
    size_t lines = size > 0 && text[size - 1] != '\n';
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    bool done = reserve(names, lines, path, error);
    const char *at = text;
    for (size_t i = 0; done && i < lines; i++) {
        const char *end = memchr(at, '\n', size - (size_t)(at - text));
        const size_t length = end ? (size_t)(end - at) : size - (size_t)(at - text);
        done = set_name(names, (int64_t)i, at, length > 0 && at[length - 1] == '\r' ? length - 1 : length, path, error);
        at += length + 1;
    }
    return done;
}

/* {"</s>":0,"a":5}: rows may be in any order, and some may have no word. */
static bool of_object(const json_t *words, const char *path, at_row_names *names, at_error *error)
{
    const int64_t most = 4 * (int64_t)json_object_size(words) + 1024;
    int64_t count = 0;
    const char *word;
    json_t *value;
    json_object_foreach((json_t *)words, word, value)
    {
        const int64_t row = json_is_integer(value) ? json_integer_value(value) : -1;
        if (row < 0 || row >= most)
            return at_fail(error, AT_FORMAT, "'%s' gives a word a number that is no row", path);
        count = row >= count ? row + 1 : count;
    }
    bool done = reserve(names, (size_t)count, path, error);
    json_object_foreach((json_t *)words, word, value)
    {
        const int64_t row = json_integer_value(value);
        if (done && !names->name[row])
            done = set_name(names, row, word, strlen(word), path, error);
    }
    return done;
}

bool at_row_names_of_json(const json_t *words, const char *path, at_row_names *names, at_error *error)
{
    const size_t count = json_array_size(words);
    if (json_object_size(words) > 0)
        return of_object(words, path, names, error);
    if (count == 0)
        return at_fail(error, AT_FORMAT, "'%s' is not a list of words", path);
    bool done = reserve(names, count, path, error);
    for (size_t i = 0; done && i < count; i++) {
        const char *word = json_string_value(json_array_get(words, i));
        done = set_name(names, (int64_t)i, word ? word : "", word ? strlen(word) : 0, path, error);
    }
    return done;
}
