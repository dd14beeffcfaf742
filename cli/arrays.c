#include "arrays.h"

#include <stdlib.h>
#include <string.h>

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

at_array *array_read(const char *option, const char *argument, at_error *error)
{
    const char *end = safetensors_end(argument);
    at_array *array = NULL;
    if (error->code != AT_OK)
        return NULL;
    if (end) {
        char *path = strndup(argument, (size_t)(end - argument));
        if (path)
            array = read_safetensors(path, *end ? end + 1 : "", error);
        free(path);
    } else {
        at_array *stored = at_npy_read(argument, error);
        array = stored ? at_array_to_f32(stored, error) : NULL;
        at_array_free(stored);
    }
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
