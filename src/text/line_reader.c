/* The lines of a file: one by one, or all of them in memory. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "text/input_internal.h"

enum { READ_SIZE = 1 << 16 };

/* ---- One by one ----------------------------------------------------------------------------------------------- */

struct at_line_reader {
    at_input *input;
    char *bytes;
    size_t used, room;
    size_t start;   /* of the next line */
    size_t scanned; /* there is no newline between `start` and here */
    int64_t count;  /* lines returned */
    bool ended;     /* all of the input is in `bytes` */
    at_error error; /* of reading ahead */
};

at_line_reader *at_line_reader_open(const char *path, at_error *error)
{
    at_input *input = at_input_open(path, error);
    at_line_reader *reader = input ? calloc(1, sizeof *reader) : NULL;
    if (reader) {
        reader->input = input;
        return reader;
    }
    if (input)
        at_no_memory(error, "the lines of '%s'", path);
    at_input_free(input);
    return NULL;
}

void at_line_reader_free(at_line_reader *reader)
{
    if (!reader)
        return;
    at_input_free(reader->input);
    free(reader->bytes);
    free(reader);
}

/* Reads once, after moving the unfinished line to the front. */
static bool read_more(at_line_reader *reader)
{
    if (reader->start > 0)
        memmove(reader->bytes, reader->bytes + reader->start, reader->used - reader->start);
    reader->used -= reader->start;
    reader->scanned -= reader->start;
    reader->start = 0;
    if (reader->used > INT32_MAX)
        return at_fail(&reader->error, AT_UNSUPPORTED, "line %lld of '%s' is longer than 2 GiB",
                       (long long)reader->count + 1, at_input_name(reader->input));
    if (reader->room - reader->used < READ_SIZE) {
        size_t room = 2 * reader->room + READ_SIZE;
        char *bytes = realloc(reader->bytes, room);
        if (!bytes)
            return at_no_memory(&reader->error, "line %lld of '%s'", (long long)reader->count + 1,
                                at_input_name(reader->input));
        reader->bytes = bytes;
        reader->room = room;
    }
    ssize_t got = at_input_read(reader->input, reader->bytes + reader->used, READ_SIZE, &reader->error);
    reader->ended = got == 0;
    reader->used += got > 0 ? (size_t)got : 0;
    return got >= 0;
}

static bool has_newline(at_line_reader *reader)
{
    if (reader->scanned < reader->used) {
        const char *newline = memchr(reader->bytes + reader->scanned, '\n', reader->used - reader->scanned);
        reader->scanned = newline ? (size_t)(newline - reader->bytes) : reader->used;
    }
    return reader->scanned < reader->used;
}

bool at_line_reader_ready(at_line_reader *reader)
{
    while (!has_newline(reader) && !reader->ended && reader->error.code == AT_OK && at_input_ready(reader->input))
        read_more(reader);
    return has_newline(reader) || reader->ended || reader->error.code != AT_OK;
}

/* The length of a byte order mark, which editors write at the start of a file; it is not part of the first line. */
static size_t mark_length(const char *bytes, size_t size)
{
    return size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

static at_line without_return(const char *text, size_t size)
{
    return (at_line){text, size > 0 && text[size - 1] == '\r' ? size - 1 : size};
}

bool at_line_reader_next(at_line_reader *reader, at_line *line, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    while (!has_newline(reader) && !reader->ended && reader->error.code == AT_OK)
        read_more(reader);
    if (reader->error.code != AT_OK)
        return at_fail(error, reader->error.code, "%s", reader->error.text);
    if (reader->count == 0)
        reader->start = mark_length(reader->bytes, reader->used);
    if (reader->start == reader->used)
        return false;
    *line = without_return(reader->bytes + reader->start, reader->scanned - reader->start);
    reader->start = reader->scanned = reader->scanned + has_newline(reader);
    reader->count++;
    return true;
}

/* ---- All of them ---------------------------------------------------------------------------------------------- */

/* Everything there is to read, in list->bytes. */
static bool read_all(at_line_list *list, at_input *input, size_t *size, at_error *error)
{
    size_t room = 0;
    for (ssize_t got = 1; got > 0; *size += got > 0 ? (size_t)got : 0) {
        if (*size == room) {
            const size_t guess = at_input_size(input) + 1; /* so that the read after the last byte finds the end */
            room = room == 0 && guess > READ_SIZE ? guess : room + room / 2 + READ_SIZE;
            char *bytes = realloc(list->bytes, room);
            if (!bytes)
                return at_no_memory(error, "the lines of '%s'", at_input_name(input));
            list->bytes = bytes;
        }
        got = at_input_read(input, list->bytes + *size, room - *size, error);
    }
    return error->code == AT_OK;
}

/* The line at `at`; *next is where the one after it starts. */
static at_line cut_line(const char *at, const char *end, const char **next)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    *next = newline ? newline + 1 : end;
    return without_return(at, (size_t)((newline ? newline : end) - at));
}

static bool cut_lines(at_line_list *list, const char *name, size_t size, at_error *error)
{
    const char *start = list->bytes + mark_length(list->bytes, size), *end = list->bytes + size, *next;
    int64_t count = 0;
    for (const char *at = start; at < end; at = next, count++)
        cut_line(at, end, &next);
    list->line = malloc((size_t)(count + 1) * sizeof *list->line);
    if (!list->line)
        return at_no_memory(error, "the lines of '%s'", name);
    for (const char *at = start; at < end; at = next) {
        at_line line = cut_line(at, end, &next);
        if (line.size > INT32_MAX)
            return at_fail(error, AT_UNSUPPORTED, "line %lld of '%s' is longer than 2 GiB", (long long)list->count + 1,
                           name);
        list->line[list->count++] = line;
    }
    return true;
}

at_line_list *at_line_list_read(const char *path, at_error *error)
{
    at_input *input = at_input_open(path, error);
    at_line_list *list = input ? calloc(1, sizeof *list) : NULL;
    size_t size = 0;
    if (input && !list)
        at_no_memory(error, "the lines of '%s'", path);
    const bool done = list && read_all(list, input, &size, error) && cut_lines(list, at_input_name(input), size, error);
    at_input_free(input);
    if (done)
        return list;
    at_line_list_free(list);
    return NULL;
}

void at_line_list_free(at_line_list *list)
{
    if (!list)
        return;
    free(list->line);
    free(list->bytes);
    free(list);
}
