#include "matrix.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reading -------------------------------------------------------------------------------------------------- */

typedef struct parser {
    const char *at, *end;
    bool typed;
    int64_t line; /* from 1; of a typed matrix the row */
    float *numbers;
    size_t count, room;
    int64_t rows, columns; /* columns: of the first row */
    int64_t first_line;    /* of the first row */
    at_error *error;
} parser;

static const char *row_word(const parser *p)
{
    return p->typed ? "row" : "line";
}

static bool add_number(parser *p, float number)
{
    if (p->count == p->room) {
        const size_t room = p->room ? 2 * p->room : 64;
        float *more = realloc(p->numbers, room * sizeof *more);
        if (!more)
            return fail(p->error, AT_MEMORY, "out of memory for a matrix");
        p->numbers = more;
        p->room = room;
    }
    p->numbers[p->count++] = number;
    return true;
}

/* Reads the number that fills a field, whose end is a separator or the end of the row. */
static bool read_number(parser *p, const char *end)
{
    char field[64], *rest;
    const size_t length = (size_t)(end - p->at);
    snprintf(field, sizeof field, "%.*s", (int)(length < sizeof field ? length : sizeof field - 1), p->at);
    errno = 0;
    const float number = strtof(field, &rest);
    if (length >= sizeof field || *rest || rest == field)
        return fail(p->error, AT_FORMAT, "'%s%s' in %s %lld is not a number", field, length >= sizeof field ? "…" : "",
                    row_word(p), (long long)p->line);
    if (errno == ERANGE && isinf(number))
        return fail(p->error, AT_FORMAT, "'%s' in %s %lld is too large for float32", field, row_word(p),
                    (long long)p->line);
    p->at = end;
    return add_number(p, number);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool ends_row(const parser *p, const char *at)
{
    return at == p->end || *at == '#' || (p->typed && (*at == ';' || *at == '\n'));
}

static void skip_blanks(parser *p)
{
    while (p->at < p->end && is_blank(*p->at))
        p->at++;
}

static bool empty_field(const parser *p)
{
    return fail(p->error, AT_FORMAT, "%s %lld has an empty field", row_word(p), (long long)p->line);
}

/* The numbers up to the end of the row. A comma stands between two numbers. */
static bool read_row(parser *p)
{
    bool after_comma = false, first = true;
    for (skip_blanks(p); !ends_row(p, p->at); skip_blanks(p), first = false) {
        const char *end = p->at;
        while (!ends_row(p, end) && !is_blank(*end) && *end != ',')
            end++;
        if (end == p->at) { /* a comma */
            if (first || after_comma)
                return empty_field(p);
            after_comma = true;
            p->at++;
            continue;
        }
        if (!read_number(p, end))
            return false;
        after_comma = false;
    }
    return !after_comma || empty_field(p);
}

static bool check_row(parser *p, int64_t columns)
{
    if (columns == 0)
        return true;
    if (p->rows++ == 0) {
        p->columns = columns;
        p->first_line = p->line;
    }
    return columns == p->columns ||
           fail(p->error, AT_FORMAT, "%s %lld has %lld number%s and %s %lld has %lld; rows must be of one length",
                row_word(p), (long long)p->line, (long long)columns, columns == 1 ? "" : "s", row_word(p),
                (long long)p->first_line, (long long)p->columns);
}

/* One line: a row, or if it was typed several. */
static bool read_line(parser *p, at_line line)
{
    p->at = line.text;
    p->end = line.text + line.size;
    for (bool more = true; more; p->line += p->typed) {
        const size_t before = p->count;
        if (!read_row(p) || !check_row(p, (int64_t)(p->count - before)))
            return false;
        more = p->at < p->end && *p->at != '#';
        p->at += more; /* past the semicolon */
    }
    return true;
}

at_array *matrix_parse(const at_line *lines, int64_t count, bool typed, at_error *error)
{
    parser p = {.typed = typed, .line = 1, .error = error};
    for (int64_t i = 0; i < count && error->code == AT_OK; i++) {
        p.line = i + 1;
        read_line(&p, lines[i]);
    }
    if (p.rows == 0)
        fail(error, AT_FORMAT, "there is no number in it");
    at_array *array = error->code == AT_OK ? at_array_new(AT_F32, 2, (int64_t[]){p.rows, p.columns}, error) : NULL;
    if (array)
        memcpy(array->data, p.numbers, p.count * sizeof *p.numbers);
    free(p.numbers);
    return array;
}

/* ---- Writing -------------------------------------------------------------------------------------------------- */

/* Nine digits identify a float; most need fewer. */
static void print_number(FILE *stream, float number)
{
    char text[32];
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)number);
        if (strtof(text, NULL) == number)
            break;
    }
    fputs(isnan(number) ? "nan" : text, stream);
}

void matrix_print(FILE *stream, const at_array *array, char separator)
{
    const int64_t columns = array->rank > 0 ? array->dim[array->rank - 1] : 1;
    const int64_t rows = array->rank > 1 ? array->dim[array->rank - 2] : 1;
    const int64_t count = at_array_count(array);
    const float *numbers = array->data;
    for (int64_t i = 0; i < count; i++) {
        print_number(stream, numbers[i]);
        const int64_t next = i + 1;
        fputc(next % columns ? separator : '\n', stream);
        if (next < count && next % (rows * columns) == 0)
            fputc('\n', stream);
    }
}
