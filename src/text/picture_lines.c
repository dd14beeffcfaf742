/* Lines that name pictures: paths relative to the folder of the file they stand in, or the items of one array. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

char *at_picture_paths(at_line *lines, int64_t count, const char *path, at_error *error)
{
    const char *slash = strrchr(path, '/');
    const size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    size_t size = 1;
    for (int64_t i = 0; i < count; i++)
        size += lines[i].size + folder;
    char *bytes = malloc(size), *at = bytes;
    if (!bytes)
        at_no_memory(error, "the lines of '%s'", path);
    for (int64_t i = 0; bytes && i < count; i++) {
        const at_line line = lines[i];
        const size_t before = line.size > 0 && line.text[0] != '/' ? folder : 0;
        lines[i] = (at_line){at, before + line.size};
        memcpy(at, path, before);
        at += before;
        if (line.size)
            memcpy(at, line.text, line.size);
        at += line.size;
    }
    return bytes;
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
        char *bytes = list ? at_picture_paths(list->line, list->count, path, error) : NULL;
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
