/* Reading requests and writing answers. */
#include <math.h>
#include <string.h>

#include "lesson/ask_internal.h"

enum { LARGEST = 1000000 }; /* number in a matrix */

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

static bool is_among(const char *names, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = strstr(names, name); length > 0 && at; at = strstr(at + 1, name))
        if ((at == names || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

bool at_ask_only(const at_ask *ask, const json_t *object, const char *names)
{
    const char *name;
    json_t *value;
    if (ask->error->code != AT_OK)
        return false;
    json_object_foreach((json_t *)object, name, value) if (!is_among(names, name)) return at_fail(
        ask->error, AT_USAGE, "there is no `%.40s` in such a request; it has %s", name, names);
    return true;
}

int64_t at_ask_count(const at_ask *ask, const json_t *object, const char *name, int64_t fallback, int64_t least,
                     int64_t most)
{
    const json_t *value = json_object_get(object, name);
    if (!value || ask->error->code != AT_OK)
        return fallback;
    if (json_is_integer(value) && json_integer_value(value) >= least && json_integer_value(value) <= most)
        return json_integer_value(value);
    at_fail(ask->error, AT_USAGE, "`%s` must be a whole number from %lld to %lld", name, (long long)least,
            (long long)most);
    return fallback;
}

double at_ask_number(const at_ask *ask, const json_t *object, const char *name, double fallback, double most)
{
    const json_t *value = json_object_get(object, name);
    if (!value || ask->error->code != AT_OK)
        return fallback;
    if (json_is_number(value) && fabs(json_number_value(value)) <= most)
        return json_number_value(value);
    at_fail(ask->error, AT_USAGE, "`%s` must be a number from %g to %g", name, -most, most);
    return fallback;
}

const char *at_ask_text(const at_ask *ask, const json_t *object, const char *name, const char *fallback)
{
    const json_t *value = json_object_get(object, name);
    if (!value || ask->error->code != AT_OK)
        return fallback;
    if (json_is_string(value))
        return json_string_value(value);
    at_fail(ask->error, AT_USAGE, "`%s` must be a text", name);
    return fallback;
}

bool at_ask_switch(const at_ask *ask, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (value && !json_is_boolean(value))
        at_fail(ask->error, AT_USAGE, "`%s` must be true or false", name);
    return json_is_true(value);
}

int at_ask_choice(const at_ask *ask, const json_t *object, const char *name, const char *const *names)
{
    const char *text = at_ask_text(ask, object, name, names[0]);
    if (ask->error->code != AT_OK)
        return -1;
    int count = 0;
    for (; names[count]; count++)
        if (strcmp(text, names[count]) == 0)
            return count;
    char what[40], word[60];
    snprintf(what, sizeof what, "`%s`", name);
    snprintf(word, sizeof word, "%.50s", text);
    at_unknown(what, word, names, count, ask->error);
    return -1;
}

float *at_ask_floats(const at_ask *ask, int64_t count)
{
    float *floats = at_arena_zeros(ask->arena, (size_t)(count + 1) * sizeof *floats);
    if (!floats)
        at_no_memory(ask->error, "a request of the lesson");
    return floats;
}

static bool read_row(const at_ask *ask, const json_t *row, const char *name, at_matrix *m, int64_t at)
{
    if (!json_is_array(row) || (int64_t)json_array_size(row) != m->columns)
        return at_fail(ask->error, AT_SHAPE, "row %lld of `%s` must have %lld numbers, as the first has",
                       (long long)at + 1, name, (long long)m->columns);
    for (int64_t i = 0; i < m->columns; i++) {
        const json_t *value = json_array_get(row, (size_t)i);
        if (!json_is_number(value) || !(fabs(json_number_value(value)) <= LARGEST))
            return at_fail(ask->error, AT_USAGE, "row %lld of `%s` must have numbers from -%d to %d only",
                           (long long)at + 1, name, LARGEST, LARGEST);
        m->value[at * m->columns + i] = (float)json_number_value(value);
    }
    return true;
}

bool at_ask_matrix(const at_ask *ask, const json_t *value, const char *name, at_matrix *matrix)
{
    if (ask->error->code != AT_OK)
        return false;
    const json_t *first = json_array_get(value, 0);
    const bool flat = json_is_number(first);
    const size_t rows = flat ? 1 : json_array_size(value), columns = json_array_size(flat ? value : first);
    if (rows < 1 || columns < 1 || rows > AT_LESSON_ROWS || columns > AT_LESSON_COLUMNS)
        return at_fail(ask->error, AT_SHAPE, "`%s` must be 1 to %d rows of 1 to %d numbers", name, AT_LESSON_ROWS,
                       AT_LESSON_COLUMNS);
    *matrix = (at_matrix){(int64_t)rows, (int64_t)columns, at_ask_floats(ask, (int64_t)(rows * columns))};
    if (!matrix->value)
        return false;
    for (size_t i = 0; i < rows; i++)
        if (!read_row(ask, flat ? value : json_array_get(value, i), name, matrix, (int64_t)i))
            return false;
    return true;
}

/* ---- Writing ---------------------------------------------------------------------------------------------------- */

void at_put_name(at_ask *ask, const char *name)
{
    const at_buffer *text = &ask->text;
    const bool first = text->size == 0 || text->bytes[text->size - 1] == '{';
    at_buffer_print(&ask->text, "%s\"%s\":", first ? "" : ",", name);
}

/* Nine digits are those of a float; a NaN has no place in JSON and is refused by who computes it. */
static void put(at_ask *ask, double value)
{
    if (isfinite(value))
        at_buffer_print(&ask->text, "%.9g", value);
    else
        at_buffer_print(&ask->text, "null");
    if (isnan(value))
        at_fail(ask->error, AT_FAILED, "what these numbers give is not a number; smaller ones would be");
}

static void put_row(at_ask *ask, const float *value, int64_t count)
{
    at_buffer_print(&ask->text, "[");
    for (int64_t i = 0; i < count; i++) {
        at_buffer_print(&ask->text, "%s", i ? "," : "");
        put(ask, (double)value[i]);
    }
    at_buffer_print(&ask->text, "]");
}

static void put_rows(at_ask *ask, const float *value, int64_t rows, int64_t columns)
{
    at_buffer_print(&ask->text, "[");
    for (int64_t i = 0; i < rows; i++) {
        at_buffer_print(&ask->text, "%s", i ? "," : "");
        put_row(ask, value + i * columns, columns);
    }
    at_buffer_print(&ask->text, "]");
}

void at_put_number(at_ask *ask, const char *name, double value)
{
    at_put_name(ask, name);
    put(ask, value);
}

void at_put_row(at_ask *ask, const char *name, const float *value, int64_t count)
{
    at_put_name(ask, name);
    put_row(ask, value, count);
}

void at_put_matrix(at_ask *ask, const char *name, const float *value, int64_t rows, int64_t columns)
{
    at_put_name(ask, name);
    put_rows(ask, value, rows, columns);
}

void at_put_cube(at_ask *ask, const char *name, const float *value, int64_t count, int64_t rows, int64_t columns)
{
    at_put_name(ask, name);
    at_buffer_print(&ask->text, "[");
    for (int64_t i = 0; i < count; i++) {
        at_buffer_print(&ask->text, "%s", i ? "," : "");
        put_rows(ask, value + i * rows * columns, rows, columns);
    }
    at_buffer_print(&ask->text, "]");
}
