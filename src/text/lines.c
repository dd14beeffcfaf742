/* Lines of files, alone and in pairs. */
#include "base/files.h"
#include "text/corpus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- The lines of one file ------------------------------------------------------------------------------------ */

static const char *name_of(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

static char *read_standard_input(size_t *size, at_error *error)
{
    at_buffer text = {0};
    char chunk[1 << 16];
    ssize_t got;
    while ((got = read(STDIN_FILENO, chunk, sizeof chunk)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            at_fail(error, AT_FAILED, "cannot read the standard input: %s", strerror(errno));
            break;
        }
        at_buffer_add(&text, chunk, (size_t)got);
    }
    at_buffer_add(&text, "", 0);
    if (text.failed)
        at_fail(error, AT_FAILED, "cannot read the standard input: it does not fit into memory");
    if (error->code != AT_OK) {
        at_buffer_free(&text);
        return NULL;
    }
    *size = text.size;
    return text.bytes;
}

/* Both by its name and by its first bytes: its lines would be noise, and a model would be trained on them. */
static bool is_packed(const char *path, const char *bytes, size_t size)
{
    size_t length = strlen(path);
    return (length > 3 && strcmp(path + length - 3, ".gz") == 0) || (size >= 2 && memcmp(bytes, "\x1f\x8b", 2) == 0);
}

/* The line from `at` on without what ends it: a newline, a carriage return and a newline, or the end of the file. */
static at_line cut_line(const char *at, const char *end, const char **next)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    const char *stop = newline == NULL ? end : newline;
    *next = newline == NULL ? end : newline + 1;
    if (stop > at && stop[-1] == '\r')
        stop--;
    return (at_line){at, (size_t)(stop - at)};
}

static bool cut_lines(at_line_list *list, const char *path, size_t size, at_error *error)
{
    const char *start = list->bytes, *end = list->bytes + size, *next;
    if (size >= 3 && memcmp(start, "\xef\xbb\xbf", 3) == 0) /* a mark that some editors leave; no part of line 1 */
        start += 3;
    int64_t count = 0;
    for (const char *at = start; at < end; at = next, count++)
        cut_line(at, end, &next);
    list->line = malloc((size_t)(count + 1) * sizeof *list->line);
    if (list->line == NULL)
        return at_fail(error, AT_FAILED, "memory ran out for the lines of '%s'", name_of(path));
    for (const char *at = start; at < end; at = next) {
        at_line line = cut_line(at, end, &next);
        if (line.size > INT32_MAX)
            return at_fail(error, AT_FAILED, "line %lld of '%s' is longer than 2 GiB, which is no line of text",
                           (long long)list->count + 1, name_of(path));
        list->line[list->count++] = line;
    }
    return true;
}

at_line_list *at_line_list_read(const char *path, at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    at_line_list *list = calloc(1, sizeof *list);
    if (list == NULL) {
        at_fail(error, AT_FAILED, "memory ran out for the lines of '%s'", name_of(path));
        return NULL;
    }
    size_t size = 0;
    list->bytes = strcmp(path, "-") == 0 ? read_standard_input(&size, error) : (char *)at_file_read(path, &size, error);
    if (list->bytes != NULL && is_packed(path, list->bytes, size))
        at_fail(error, AT_FAILED, "'%s' is packed by gzip, which is not read here; unpack it first with gunzip",
                name_of(path));
    if (error->code == AT_OK && cut_lines(list, path, size, error))
        return list;
    at_line_list_free(list);
    return NULL;
}

void at_line_list_free(at_line_list *list)
{
    if (list == NULL)
        return;
    free(list->line);
    free(list->bytes);
    free(list);
}

/* ---- Pairs ---------------------------------------------------------------------------------------------------- */

/* Parallel files: list 0 and 1. A tab-separated file: list 0, of which `cell` has both columns of each line. */
struct at_lines {
    at_line_list *list[2];
    at_line *cell; /* [count, 2] */
    int64_t count;
    bool alone; /* side 0 is empty */
};

/* Column `wanted`, counted from 1, of a line; without it *columns says how many there are. */
static bool cut_column(at_line line, int wanted, at_line *cell, int *columns)
{
    const char *at = line.text, *end = line.text + line.size;
    for (*columns = 1;; ++*columns) {
        const char *tab = memchr(at, '\t', (size_t)(end - at));
        const char *stop = tab == NULL ? end : tab;
        if (*columns == wanted) {
            *cell = (at_line){at, (size_t)(stop - at)};
            return true;
        }
        if (tab == NULL)
            return false;
        at = tab + 1;
    }
}

static bool read_columns(at_lines *lines, const at_corpus_files *files, at_error *error)
{
    const int wanted[2] = {files->source_column, files->target_column}, first = files->alone;
    if (wanted[first] < 1 || wanted[1] < 1)
        return at_fail(error, AT_USAGE, "columns count from 1, so there is no column %d",
                       wanted[first] < 1 ? wanted[first] : wanted[1]);
    lines->list[0] = at_line_list_read(files->tsv, error);
    if (lines->list[0] == NULL)
        return false;
    lines->count = lines->list[0]->count;
    lines->cell = malloc((size_t)(lines->count + 1) * 2 * sizeof *lines->cell);
    if (lines->cell == NULL)
        return at_fail(error, AT_FAILED, "memory ran out for the lines of '%s'", name_of(files->tsv));
    for (int64_t i = 0; i < lines->count; i++)
        for (int side = first; side < 2; side++) {
            int columns;
            if (!cut_column(lines->list[0]->line[i], wanted[side], &lines->cell[2 * i + side], &columns))
                return at_fail(error, AT_FAILED, "line %lld of '%s' has %d column%s, so there is no column %d",
                               (long long)i + 1, name_of(files->tsv), columns, columns == 1 ? "" : "s", wanted[side]);
        }
    return true;
}

static bool read_parallel(at_lines *lines, const at_corpus_files *files, at_error *error)
{
    const char *path[2] = {files->source, files->target};
    for (int side = 0; side < 2; side++)
        lines->list[side] = at_line_list_read(path[side], error);
    if (error->code != AT_OK)
        return false;
    int64_t count[2] = {lines->list[0]->count, lines->list[1]->count};
    for (int side = 0; side < 2; side++)
        if (count[side] == 0)
            return at_fail(error, AT_FAILED, "'%s' is empty: it has no line", name_of(path[side]));
    int more = count[1] > count[0];
    if (count[0] != count[1])
        return at_fail(error, AT_FAILED, "line %lld of '%s' has no partner: '%s' ends after %lld line%s",
                       (long long)count[!more] + 1, name_of(path[more]), name_of(path[!more]), (long long)count[!more],
                       count[!more] == 1 ? "" : "s");
    lines->count = count[0];
    return true;
}

static bool read_alone(at_lines *lines, const at_corpus_files *files, at_error *error)
{
    lines->list[1] = at_line_list_read(files->target, error);
    lines->count = lines->list[1] != NULL ? lines->list[1]->count : 0;
    if (lines->list[1] != NULL && lines->count == 0)
        at_fail(error, AT_FAILED, "'%s' is empty: it has no line", name_of(files->target));
    return error->code == AT_OK;
}

static bool read_pairs(at_lines *lines, const at_corpus_files *files, at_error *error)
{
    lines->alone = files->alone;
    if (files->alone && files->target != NULL)
        return read_alone(lines, files, error);
    if (files->tsv == NULL && (files->source == NULL || files->target == NULL))
        return at_fail(error, AT_USAGE, "a corpus is a source file and a target file, or one tab-separated file");
    if (files->tsv != NULL && (files->source != NULL || files->target != NULL))
        return at_fail(error, AT_USAGE, "a tab-separated file holds both sides, so '%s' is too much",
                       files->source != NULL ? files->source : files->target);
    if (files->tsv == NULL)
        return read_parallel(lines, files, error);
    if (!read_columns(lines, files, error))
        return false;
    if (lines->count == 0)
        return at_fail(error, AT_FAILED, "'%s' is empty: it has no line", name_of(files->tsv));
    return true;
}

at_lines *at_lines_read(const at_corpus_files *files, at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    at_lines *lines = calloc(1, sizeof *lines);
    if (lines == NULL)
        at_fail(error, AT_FAILED, "memory ran out for a corpus");
    else if (read_pairs(lines, files, error))
        return lines;
    at_lines_free(lines);
    return NULL;
}

void at_lines_free(at_lines *lines)
{
    if (lines == NULL)
        return;
    at_line_list_free(lines->list[0]);
    at_line_list_free(lines->list[1]);
    free(lines->cell);
    free(lines);
}

int64_t at_lines_count(const at_lines *lines)
{
    return lines->count;
}

const char *at_lines_text(const at_lines *lines, int64_t line, int side, size_t *size)
{
    if (lines->alone && side == 0) {
        *size = 0;
        return "";
    }
    const at_line *found = lines->cell != NULL ? &lines->cell[2 * line + side] : &lines->list[side]->line[line];
    *size = found->size;
    return found->text;
}

bool at_lines_count_units(const at_lines *lines, int side, at_vocabulary *vocabulary, at_error *error)
{
    for (int64_t i = 0; i < lines->count; i++) {
        size_t size;
        const char *text = at_lines_text(lines, i, side, &size);
        if (!at_vocabulary_count(vocabulary, text, size, error))
            return false;
    }
    return true;
}
