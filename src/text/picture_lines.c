/* Lines that name pictures: paths relative to the folder of the file they stand in, or the items of one array. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_kind.h"
#include "image/pictures.h"
#include "text/corpus.h"

/* The lines PATH[0], PATH[1], ... */
static bool list_items(at_line_list *list, const char *path, at_error *error)
{
    int64_t count;
    if (!at_pictures_array_count(path, &count, error))
        return false;
    const size_t room = strlen(path) + 24;
    list->line = calloc((size_t)count + 1, sizeof *list->line);
    list->bytes = malloc(((size_t)count + 1) * room);
    if (!list->line || !list->bytes)
        return at_no_memory(error, "the pictures of '%s'", path);
    char *at = list->bytes;
    for (; list->count < count; list->count++, at += room)
        list->line[list->count] = (at_line){at, (size_t)snprintf(at, room, "%s[%lld]", path, (long long)list->count)};
    return true;
}

/* The end of the name at `name`, before the bar that joins it to the next, or `end`. */
static const char *name_end(const char *name, const char *end)
{
    const char *bar = memmem(name, (size_t)(end - name), AT_PICTURE_BAR, sizeof AT_PICTURE_BAR - 1);
    return bar ? bar : end;
}

/* Bytes of a line whose names get a folder before them. */
static size_t size_with(at_line line, size_t folder)
{
    const char *end = line.text + line.size;
    size_t size = line.size + folder;
    for (const char *at = line.text; line.size && (at = name_end(at, end)) < end; at += sizeof AT_PICTURE_BAR - 1)
        size += folder;
    return size;
}

/* Writes the line with the folder before each relative name, and returns the end of it. */
static char *put_with(char *to, at_line line, const char *path, size_t folder)
{
    const char *end = line.text + line.size;
    for (const char *name = line.text; line.size && name <= end;) {
        const char *stop = name_end(name, end), *next = stop < end ? stop + sizeof AT_PICTURE_BAR - 1 : end + 1;
        const size_t before =
            name < stop && *name != '/' && !at_picture_is_inline(name, (size_t)(end - name)) ? folder : 0;
        const size_t size = (size_t)((next < end ? next : end) - name);
        memcpy(to, path, before);
        memcpy(to + before, name, size);
        to += before + size;
        name = next;
    }
    return to;
}

char *at_picture_paths(at_line *lines, int64_t count, const char *path, at_error *error)
{
    const char *slash = strrchr(path, '/');
    const size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    size_t size = 1;
    for (int64_t i = 0; i < count; i++)
        size += size_with(lines[i], folder);
    char *bytes = malloc(size), *at = bytes;
    if (!bytes)
        at_no_memory(error, "the lines of '%s'", path);
    for (int64_t i = 0; bytes && i < count; i++) {
        char *end = put_with(at, lines[i], path, folder);
        lines[i] = (at_line){at, (size_t)(end - at)};
        at = end;
    }
    return bytes;
}

/* Not the lines of a picture itself. */
static void check_kind(const at_line_list *list, const char *path, at_error *error)
{
    const at_line *last = list && list->count > 0 ? &list->line[list->count - 1] : NULL;
    const size_t size = last ? (size_t)(last->text + last->size - list->line[0].text) : 0;
    const char *kind = size > 0 ? at_file_kind((const unsigned char *)list->line[0].text, size) : NULL;
    const size_t length = kind ? strlen(kind) : 0;
    if (length > 8 && strcmp(kind + length - 8, " picture") == 0)
        at_fail(error, AT_FORMAT,
                "'%s' is %s; the source is a file whose lines each name a picture, or an array (.npy)",
                strcmp(path, "-") == 0 ? "standard input" : path, kind);
}

at_line_list *at_picture_lines_read(const char *path, at_error *error)
{
    at_line_list *list;
    bool done;
    if (error->code != AT_OK)
        return NULL;
    if (strcmp(path, "-") != 0 && at_pictures_is_array(path)) {
        list = calloc(1, sizeof *list);
        if (!list)
            at_no_memory(error, "the pictures of '%s'", path);
        done = list && list_items(list, path, error);
    } else {
        list = at_line_list_read(path, error);
        check_kind(list, path, error);
        char *bytes = list && error->code == AT_OK ? at_picture_paths(list->line, list->count, path, error) : NULL;
        done = bytes;
        if (done) {
            free(list->bytes);
            list->bytes = bytes;
        }
    }
    if (done)
        return list;
    at_line_list_free(list);
    return NULL;
}
