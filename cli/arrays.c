#include "arrays.h"

#include <stdlib.h>
#include <string.h>

static const char suffix[] = ".safetensors";

/* The names in a file, for the sentence that says which there are: "none", or many that end in an ellipsis. */
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
        fail(error, AT_USAGE, "say which array of '%s' is meant, as in '%s:NAME'; it holds %s", path, path, all);
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
            fail(error, AT_FAILED, "no array '%s' in '%s'%s", name, path, near);
        else
            fail(error, AT_FAILED, "no array '%s' in '%s'; it holds %s", name, path, all);
    }
    at_tensors_free(tensors);
    return array;
}

/* Where ".safetensors" ends the file's name: before a colon or the end of the word; NULL if it does not. */
static const char *safetensors_end(const char *place)
{
    const char *end = NULL;
    for (const char *at = place; (at = strstr(at, suffix)); at++)
        if (at[sizeof suffix - 1] == ':' || at[sizeof suffix - 1] == 0)
            end = at + sizeof suffix - 1;
    return end;
}

at_array *array_read(const char *option, const char *place, at_error *error)
{
    const char *end = safetensors_end(place);
    at_array *array = NULL;
    if (error->code != AT_OK)
        return NULL;
    if (end) {
        char *path = strndup(place, (size_t)(end - place));
        if (path)
            array = read_safetensors(path, *end ? end + 1 : "", error);
        free(path);
    } else {
        at_array *stored = at_npy_read(place, error);
        array = stored ? at_array_to_f32(stored, error) : NULL;
        at_array_free(stored);
    }
    if (!array) {
        fail(error, AT_FAILED, "out of memory reading '%s'", place);
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
