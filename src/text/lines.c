/* The lines of both sides of a corpus: from two parallel files, or from the columns of one. */
#include <stdlib.h>
#include <string.h>

#include "image/pictures.h"
#include "text/corpus.h"
#include "text/file_list.h"

static const char *name_of(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

/* Column `wanted`, counted from 1, of a line; if there is none, *columns is how many the line has. */
static bool cut_column(at_line line, int wanted, at_line *cell, int *columns)
{
    const char *at = line.text, *end = line.text + line.size;
    for (*columns = 1;; ++*columns) {
        const char *tab = memchr(at, '\t', (size_t)(end - at));
        const char *stop = tab ? tab : end;
        if (*columns == wanted) {
            *cell = (at_line){at, (size_t)(stop - at)};
            return true;
        }
        if (!tab)
            return false;
        at = tab + 1;
    }
}

static bool read_columns(at_lines *lines, const at_corpus_files *files, at_error *error)
{
    const int wanted[2] = {files->source_column, files->target_column}, first = files->target_only;
    if (wanted[first] < 1 || wanted[1] < 1)
        return at_fail(error, AT_USAGE, "columns count from 1, so there is no column %d",
                       wanted[first] < 1 ? wanted[first] : wanted[1]);
    lines->file[0] = at_line_list_read(files->tsv, error);
    if (!lines->file[0])
        return false;
    lines->count = lines->file[0]->count;
    lines->cells = malloc((size_t)(lines->count + 1) * 2 * sizeof *lines->cells);
    if (!lines->cells)
        return at_no_memory(error, "the columns of '%s'", name_of(files->tsv));
    for (int side = first; side < 2; side++) {
        at_line *cells = lines->cells + side * lines->count;
        lines->side[side] = cells;
        for (int64_t i = 0; i < lines->count; i++) {
            int columns;
            if (!cut_column(lines->file[0]->line[i], wanted[side], &cells[i], &columns))
                return at_fail(error, AT_FORMAT, "line %lld of '%s' has %d column%s, so there is no column %d",
                               (long long)i + 1, name_of(files->tsv), columns, columns == 1 ? "" : "s", wanted[side]);
        }
    }
    if (files->pictures)
        lines->paths = at_picture_paths(lines->cells, lines->count, files->tsv, error);
    return !files->pictures || lines->paths;
}

static bool read_file(at_lines *lines, int side, const char *path, bool pictures, at_error *error)
{
    if (!pictures && strcmp(path, "-") != 0 && at_pictures_is_array(path))
        return at_fail(error, AT_FORMAT,
                       "'%s' is an array (.npy), not lines of text; `model` show-attend-tell takes it as its source",
                       path);
    lines->file[side] = pictures ? at_picture_lines_read(path, error) : at_line_list_read(path, error);
    if (!lines->file[side])
        return false;
    lines->side[side] = lines->file[side]->line;
    lines->count = lines->file[side]->count;
    return true;
}

static bool read_parallel(at_lines *lines, const at_corpus_files *files, at_error *error)
{
    const char *path[2] = {files->source, files->target};
    int64_t count[2] = {0};
    for (int side = 0; side < 2; side++) {
        if (!read_file(lines, side, path[side], side == 0 && files->pictures, error))
            return false;
        count[side] = lines->count;
    }
    const int more = count[1] > count[0];
    if (count[0] > 0 && count[1] > 0 && count[0] != count[1])
        return at_fail(error, AT_FORMAT, "line %lld of '%s' has no partner: '%s' ends after %lld line%s",
                       (long long)count[!more] + 1, name_of(path[more]), name_of(path[!more]), (long long)count[!more],
                       count[!more] == 1 ? "" : "s");
    return true;
}

static bool read_files(at_lines *lines, const at_corpus_files *files, at_error *error)
{
    if (files->target_only && files->target)
        return read_file(lines, 1, files->target, false, error);
    if (!files->tsv && (!files->source || !files->target))
        return at_fail(error, AT_USAGE, "a corpus is a source file and a target file, or one tab-separated file");
    if (files->tsv && (files->source || files->target))
        return at_fail(error, AT_USAGE, "a tab-separated file holds both sides, so '%s' must not be given",
                       files->source ? files->source : files->target);
    return files->tsv ? read_columns(lines, files, error) : read_parallel(lines, files, error);
}

static bool check_empty(const at_lines *lines, const at_corpus_files *files, at_error *error)
{
    const char *path[2] = {files->tsv ? files->tsv : files->source, files->target};
    for (int side = 0; side < 2; side++)
        if (lines->file[side] && lines->file[side]->count == 0)
            return at_fail(error, AT_FORMAT, "'%s' is empty: it has no line", name_of(path[side]));
    return true;
}

static at_lines *read_corpus(const at_corpus_files *files, at_error *error)
{
    at_lines *lines = calloc(1, sizeof *lines);
    if (!lines)
        at_no_memory(error, "the lines of a corpus");
    else if (read_files(lines, files, error) && check_empty(lines, files, error))
        return lines;
    at_lines_free(lines);
    return NULL;
}

/* ---- Several corpora ------------------------------------------------------------------------------------------ */

typedef struct name_lists {
    at_file_list source, target, tsv;
} name_lists;

/* How many corpora there are; 0 with an error if the sides do not match. */
static int count_parts(const name_lists *lists, at_error *error)
{
    const int sources = lists->source.count, targets = lists->target.count;
    if (sources > 0 && targets > 0 && sources != targets)
        at_fail(error, AT_USAGE, "there are %d source files and %d target files; each source file has its target file",
                sources, targets);
    const int most = sources > targets ? sources : targets;
    return error->code != AT_OK ? 0 : most > lists->tsv.count ? most : lists->tsv.count;
}

static const char *name_at(const at_file_list *list, int index)
{
    return index < list->count ? list->path[index] : NULL;
}

static bool read_parts(at_lines *lines, const at_corpus_files *files, const name_lists *lists, int count,
                       at_error *error)
{
    lines->part = calloc((size_t)count, sizeof *lines->part);
    lines->part_name = calloc((size_t)count, sizeof *lines->part_name);
    if (!lines->part || !lines->part_name)
        return at_no_memory(error, "the lines of %d corpora", count);
    for (int i = 0; i < count; i++) {
        at_corpus_files one = *files;
        one.source = name_at(&lists->source, i);
        one.target = name_at(&lists->target, i);
        one.tsv = name_at(&lists->tsv, i);
        lines->part[i] = read_corpus(&one, error);
        lines->parts = i + 1;
        if (!lines->part[i])
            return false;
        lines->part_name[i] = strdup(one.tsv ? one.tsv : one.target);
        if (!lines->part_name[i])
            return at_no_memory(error, "the names of %d corpora", count);
        lines->count += lines->part[i]->count;
    }
    return true;
}

/* The lines of all parts, one after the other. */
static bool join_parts(at_lines *lines, at_error *error)
{
    lines->cells = malloc(((size_t)lines->count + 1) * 2 * sizeof *lines->cells);
    if (!lines->cells)
        return at_no_memory(error, "%lld lines", (long long)lines->count);
    for (int side = 0; side < 2; side++) {
        at_line *to = lines->cells + side * lines->count;
        if (!lines->part[0]->side[side])
            continue;
        lines->side[side] = to;
        for (int i = 0; i < lines->parts; to += lines->part[i++]->count)
            memcpy(to, lines->part[i]->side[side], (size_t)lines->part[i]->count * sizeof *to);
    }
    return true;
}

at_lines *at_lines_read(const at_corpus_files *files, at_error *error)
{
    name_lists lists = {0};
    at_lines *lines = NULL;
    const bool split = error->code == AT_OK && at_file_list_split(files->source, &lists.source, error) &&
                       at_file_list_split(files->target, &lists.target, error) &&
                       at_file_list_split(files->tsv, &lists.tsv, error);
    const int count = split ? count_parts(&lists, error) : 0;
    if (error->code == AT_OK && count <= 1) {
        lines = read_corpus(files, error);
    } else if (error->code == AT_OK) {
        lines = calloc(1, sizeof *lines);
        if (!lines)
            at_no_memory(error, "the lines of %d corpora", count);
        else if (!read_parts(lines, files, &lists, count, error) || !join_parts(lines, error)) {
            at_lines_free(lines);
            lines = NULL;
        }
    }
    at_file_list_free(&lists.source);
    at_file_list_free(&lists.target);
    at_file_list_free(&lists.tsv);
    return lines;
}

const char *at_lines_place(const at_lines *lines, int64_t number, int64_t *there)
{
    *there = number;
    for (int i = 0; i < lines->parts; i++) {
        if (*there <= lines->part[i]->count)
            return lines->part_name[i];
        *there -= lines->part[i]->count;
    }
    return NULL;
}

at_lines *at_lines_of(const at_line *sources, const at_line *targets, int64_t count, at_error *error)
{
    at_lines *lines = calloc(1, sizeof *lines);
    if (lines)
        *lines = (at_lines){.side = {sources, targets}, .count = count};
    else
        at_no_memory(error, "%lld lines", (long long)count);
    return lines;
}

void at_lines_free(at_lines *lines)
{
    if (!lines)
        return;
    at_line_list_free(lines->file[0]);
    at_line_list_free(lines->file[1]);
    for (int i = 0; i < lines->parts; i++) {
        at_lines_free(lines->part[i]);
        free(lines->part_name[i]);
    }
    free(lines->part);
    free(lines->part_name);
    free(lines->cells);
    free(lines->paths);
    free(lines);
}

bool at_lines_count_units(const at_lines *lines, int side, at_vocabulary *vocabulary, at_error *error)
{
    for (int64_t i = 0; i < lines->count; i++)
        if (!at_vocabulary_count(vocabulary, lines->side[side][i].text, lines->side[side][i].size, error))
            return false;
    return true;
}
