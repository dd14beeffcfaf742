#include "text/file_list.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool at_file_list_split(const char *names, at_file_list *list, at_error *error)
{
    *list = (at_file_list){0};
    if (!names)
        return true;
    const bool one = !strchr(names, ',') || access(names, F_OK) == 0;
    int count = 1;
    for (const char *at = names; !one && *at; at++)
        count += *at == ',';
    list->names = strdup(names);
    list->path = calloc((size_t)count, sizeof *list->path);
    if (!list->names || !list->path) {
        at_file_list_free(list);
        return at_no_memory(error, "the names of %d files", count);
    }
    char *rest = list->names;
    while (list->count < count) {
        char *name = one ? list->names : strsep(&rest, ",");
        if (!*name) {
            at_file_list_free(list);
            return at_fail(error, AT_USAGE, "'%s' names %d files, and one of the names is empty", names, count);
        }
        list->path[list->count++] = name;
    }
    return true;
}

void at_file_list_free(at_file_list *list)
{
    free(list->path);
    free(list->names);
    *list = (at_file_list){0};
}
