#include "arrays.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "matrix.h"
#include "options.h"

static const char suffix[] = ".safetensors";

/* The names in a file, for an error message: "none", or a list that may end in an ellipsis. */
static void list_arrays(const at_tensors *tensors, char *out, size_t size)
{
    size_t used = 0;
    snprintf(out, size, "none");
    for (int i = 0; at_tensors_name(tensors, i) && used < size; i++) {
        const char *name = at_tensors_name(tensors, i);
        if (used + strlen(name) + 8 > size) {
            snprintf(out + used, size - used, ", …");
            return;
        }
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", name);
    }
}

static at_array *read_safetensors(const char *path, const char *name, at_error *error)
{
    char all[200];
    at_tensors *tensors = at_tensors_read(path, error);
    if (!tensors)
        return NULL;
    list_arrays(tensors, all, sizeof all);
    const at_array *found = *name ? at_tensors_get(tensors, name) : NULL;
    at_array *array = found ? at_array_to_f32(found, error) : NULL;
    if (!*name)
        fail(error, AT_USAGE, "'%s' needs the name of an array, as in '%s:NAME'; it has %s", path, path, all);
    else if (!found) {
        int count = at_tensors_count(tensors);
        const char **names = calloc((size_t)count + 1, sizeof *names);
        char near[200] = "";
        for (int i = 0; names && i < count; i++)
            names[i] = at_tensors_name(tensors, i);
        if (names)
            at_suggest(name, names, count, near, sizeof near);
        free(names);
        if (near[0])
            fail(error, AT_FORMAT, "no array '%s' in '%s'%s", name, path, near);
        else
            fail(error, AT_FORMAT, "no array '%s' in '%s'; it has %s", name, path, all);
    }
    at_tensors_free(tensors);
    return array;
}

/* The end of the file name if it is a .safetensors file: before a colon or at the end; else NULL. */
static const char *safetensors_end(const char *path)
{
    const char *end = NULL;
    for (const char *at = path; (at = strstr(at, suffix)); at++)
        if (at[sizeof suffix - 1] == ':' || at[sizeof suffix - 1] == 0)
            end = at + sizeof suffix - 1;
    return end;
}

char text_separator(const char *path)
{
    return strcmp(path, "-") == 0 || ends_in(path, ".txt") ? ' '
           : ends_in(path, ".csv")                         ? ','
           : ends_in(path, ".tsv")                         ? '\t'
                                                           : 0;
}

/* A matrix that stands there itself, and not the name of a file: it begins like a number, or has several parts. */
static bool is_typed(const char *argument)
{
    return access(argument, F_OK) != 0 && !ends_in(argument, ".npy") && !text_separator(argument) &&
           (strpbrk(argument, "; \t\n") || strchr("+-.0123456789", argument[0]));
}

bool array_is_text(const char *argument)
{
    return text_separator(argument) || is_typed(argument);
}

static at_array *read_text(const char *path, at_error *error)
{
    static const char magic[] = "\x93NUMPY";
    const bool is_input = strcmp(path, "-") == 0;
    char name[300];
    at_line_list *lines = at_line_list_read(path, error);
    if (!lines)
        return NULL;
    const bool is_npy = lines->count && lines->line[0].size >= sizeof magic - 1 &&
                        memcmp(lines->line[0].text, magic, sizeof magic - 1) == 0;
    at_array *array = is_npy ? NULL : matrix_parse(lines->line, lines->count, false, error);
    snprintf(name, sizeof name, "'%s'", path);
    if (is_npy)
        fail(error, AT_FORMAT, "'%s' is a .npy file, not text; %s", path,
             is_input ? "name it /dev/stdin to read it" : "its name should end in .npy");
    else if (!array)
        fail_under(error, is_input ? "the standard input" : name);
    at_line_list_free(lines);
    return array;
}

static at_array *read_stored(const char *argument, at_error *error)
{
    const char *end = safetensors_end(argument);
    if (end) {
        char *path = strndup(argument, (size_t)(end - argument));
        at_array *array = path ? read_safetensors(path, *end ? end + 1 : "", error) : NULL;
        free(path);
        return array;
    }
    return at_npy_read(argument, error);
}

at_array *array_read(const char *option, const char *argument, at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    at_array *stored = text_separator(argument) ? read_text(argument, error)
                       : is_typed(argument)     ? matrix_parse(&(at_line){argument, strlen(argument)}, 1, true, error)
                                                : read_stored(argument, error);
    at_array *array = stored ? at_array_to_f32(stored, error) : NULL;
    at_array_free(stored);
    if (!array) {
        fail(error, AT_MEMORY, "out of memory reading '%s'", argument);
        fail_under(error, option);
    }
    return array;
}

char *array_shape(const at_array *array, char out[SHAPE_TEXT])
{
    int used = snprintf(out, SHAPE_TEXT, "[");
    for (int i = 0; i < array->rank && used < SHAPE_TEXT; i++)
        used += snprintf(out + used, (size_t)(SHAPE_TEXT - used), "%s%lld", i ? "," : "", (long long)array->dim[i]);
    if (used < SHAPE_TEXT)
        snprintf(out + used, (size_t)(SHAPE_TEXT - used), "]");
    return out;
}
