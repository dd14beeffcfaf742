#include "array_maps.h"

#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "heads.h"

static void free_names(char **names, int64_t count)
{
    for (int64_t i = 0; names && i < count; i++)
        free(names[i]);
    free(names);
}

/* One name for each row or column: the lines of a file, or numbers from 0. */
static char **read_names(const char *option, const char *path, int64_t count, at_error *error)
{
    at_line_list *lines = path ? at_line_list_read(path, error) : NULL;
    if (path && !lines) {
        fail_under(error, option);
        return NULL;
    }
    char **names = NULL;
    if (lines && lines->count != count)
        fail(error, AT_SHAPE, "%s: '%s' has %lld line%s, and the weights have %lld %s", option, path,
             (long long)lines->count, lines->count == 1 ? "" : "s", (long long)count, option + 2);
    else if (!(names = calloc((size_t)count + 1, sizeof *names)))
        fail(error, AT_MEMORY, "out of memory for the names");
    for (int64_t i = 0; names && i < count; i++) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)i);
        names[i] = lines ? strndup(lines->line[i].text, lines->line[i].size) : strdup(number);
        if (!names[i]) {
            fail(error, AT_MEMORY, "out of memory for the names");
            free_names(names, i);
            names = NULL;
        }
    }
    at_line_list_free(lines);
    return names;
}

bool array_maps_read(array_maps *a, const char *weights, const char *rows, const char *columns, at_error *error)
{
    char shape[SHAPE_TEXT];
    a->array = array_read("--weights", weights, error);
    if (!a->array)
        return false;
    const int rank = a->array->rank;
    if (rank < 2 || rank > 4)
        return fail(error, AT_SHAPE,
                    "--weights has the shape %s; it must be [rows,columns], [heads,rows,columns] or "
                    "[layers,heads,rows,columns]",
                    array_shape(a->array, shape));
    const int64_t *dim = a->array->dim + rank - 2;
    const int64_t layers = rank == 4 ? dim[-2] : 1, heads = rank >= 3 ? dim[-1] : 1;
    if (at_array_count(a->array) == 0 || layers > MOST_LAYERS || heads > 1024)
        return fail(error, AT_SHAPE,
                    "--weights has the shape %s; it must have no side of 0, at most %d layers and 1024 heads",
                    array_shape(a->array, shape), MOST_LAYERS);
    if (!(a->row_names = read_names("--rows", rows, dim[0], error)) ||
        !(a->column_names = read_names("--columns", columns, dim[1], error)))
        return false;
    a->maps = (cli_maps){.layers = (int)layers, .of_array = true};
    for (int64_t l = 0; l < layers; l++) {
        a->layer[l] = (at_map){.kind = AT_CROSS_ATTENTION,
                               .layer = (int)l + 1,
                               .heads = (int)heads,
                               .rows = dim[0],
                               .columns = dim[1],
                               .weights = (const float *)a->array->data + l * heads * dim[0] * dim[1],
                               .row_names = (const char *const *)a->row_names,
                               .column_names = (const char *const *)a->column_names};
        a->maps.map[l] = &a->layer[l];
    }
    return true;
}

void array_maps_free(array_maps *a)
{
    const int64_t *dim = a->array && a->array->rank >= 2 ? a->array->dim + a->array->rank - 2 : NULL;
    free_names(a->row_names, dim ? dim[0] : 0);
    free_names(a->column_names, dim ? dim[1] : 0);
    at_array_free(a->array);
    *a = (array_maps){0};
}

bool array_maps_choose(const array_maps *a, const char *head, cli_choice *choice, at_error *error)
{
    cli_head one = {0};
    *choice = (cli_choice){.all = head ? strcmp(head, "all") == 0 : a->maps.layers * a->layer[0].heads > 1};
    if (choice->all)
        return true;
    if (head && !head_read(head, "all", NULL, &one, error))
        return false;
    choice->layer = one.layer;
    choice->head = one.head;
    return choice_exists(&a->maps, choice, error);
}
