/* Parsing, formatting and refusing values of settings, for every table there is. */
#include "base/settings.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"

_Static_assert(sizeof(at_setting_type) == sizeof(int), "a choice is stored as an int, whatever its enum");

/* ---- Names ---------------------------------------------------------------------------------------------------- */

/* "a, b or c", each name between two quotes. */
static void list_names(const char *const *names, int count, const char *quote, const char *last, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < count && used < size; i++) {
        const char *before = i == 0 ? "" : i == count - 1 ? last : ", ";
        const int more = snprintf(out + used, size - used, "%s%s%s%s", before, quote, names[i], quote);
        used += more > 0 ? (size_t)more : 0;
    }
}

bool at_unknown(const char *what, const char *word, const char *const *names, int count, at_error *error)
{
    enum { A_FEW = 20 };
    char near[200], all[300] = "", shown[AT_SHOWN];
    at_suggest(word, names, count, near, sizeof near);
    at_shown(word, shown, sizeof shown);
    if (near[0] || count > A_FEW)
        return at_fail(error, AT_USAGE, "no %s '%s'%s", what, shown, near);
    list_names(names, count, "'", " and ", all, sizeof all);
    return at_fail(error, AT_USAGE, "no %s '%s'; there %s %s", what, shown, count == 1 ? "is" : "are", all);
}

int at_setting_find(at_setting_rows *rows, const char *name)
{
    for (int i = 0; rows(i); i++)
        if (strcmp(rows(i)->name, name) == 0)
            return i;
    return -1;
}

int at_setting_expect(at_setting_rows *rows, const char *name, at_error *error)
{
    const char *names[AT_MOST_SETTINGS];
    int count = 0;
    const int found = at_setting_find(rows, name);
    for (; found < 0 && count < AT_MOST_SETTINGS && rows(count); count++)
        names[count] = rows(count)->name;
    if (found < 0)
        at_unknown("setting", name, names, count, error);
    return found;
}

/* ---- From text to a value ------------------------------------------------------------------------------------- */

/* One setting that is being parsed. */
typedef struct job {
    const at_setting *row;
    const char *label;
    const char *text;
    at_error *error;
} job;

/* "`heads` takes a whole number, 1 or more, not 'x'" */
static bool refuse(const job *j, const char *takes)
{
    char shown[AT_SHOWN];
    const char *quote = j->label ? "" : "`";
    return at_fail(j->error, AT_USAGE, "%s%s%s takes %s, not '%s'", quote, j->label ? j->label : j->row->name, quote,
                   takes, at_shown(j->text, shown, sizeof shown));
}

/* The limits of a number in words, then the failure. */
static bool refuse_number(const job *j, bool whole, const char *why)
{
    const at_setting *row = j->row;
    char least[32], most[32], takes[160];
    snprintf(least, sizeof least, "%.15g", row->least);
    snprintf(most, sizeof most, "%.15g", row->most);
    const char *what = whole ? "a whole number" : "a number", *below = row->limits & AT_BELOW_MOST ? "below " : "";
    if (row->most != 0)
        snprintf(takes, sizeof takes, "%s %s %s to %s%s%s", what, row->limits & AT_ABOVE_LEAST ? "above" : "from",
                 least, below, most, why);
    else if (row->limits & AT_ABOVE_LEAST)
        snprintf(takes, sizeof takes, "%s above %s", what, least);
    else
        snprintf(takes, sizeof takes, "%s, %s or more", what, least);
    return refuse(j, takes);
}

static bool parse_count(const job *j, int64_t *to)
{
    const at_setting *row = j->row;
    char *end;
    errno = 0;
    const long long value = strtoll(j->text, &end, 10);
    const bool fits = (double)value >= row->least && (row->most == 0 || (double)value <= row->most);
    if (end == j->text || *end || errno || !fits)
        return refuse_number(j, true, "");
    *to = value;
    return true;
}

static bool parse_number(const job *j, double *to)
{
    const at_setting *row = j->row;
    char *end;
    const double value = strtod(j->text, &end);
    const bool whole = row->limits & AT_WHOLE, below = row->limits & AT_BELOW_MOST;
    /* A share is judged as the float that training makes of it: of 0.999999999 nothing would be left. */
    const bool low = row->limits & AT_ABOVE_LEAST ? value > row->least : value >= row->least,
               high = row->most == 0 || (below ? (double)(float)value < row->most : value <= row->most);
    if (end == j->text || *end || !isfinite(value) || !low || !high || (whole && value != floor(value)))
        return refuse_number(j, whole, below && !high && value < row->most ? ", rounded to a float" : "");
    *to = value;
    return true;
}

static bool parse_seed(const job *j, uint64_t *to)
{
    char *end = "?";
    errno = 0;
    /* strtoull would take "-1" for the largest number */
    const unsigned long long value = isdigit((unsigned char)*j->text) ? strtoull(j->text, &end, 10) : 0;
    if (*end || errno)
        return refuse(j, "a whole number from 0 to 18446744073709551615");
    *to = value;
    return true;
}

static bool parse_switch(const job *j, bool *to)
{
    static const char *const yes[] = {"true", "yes", "on", "1"}, *const no[] = {"false", "no", "off", "0"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(j->text, yes[i]) == 0 || strcmp(j->text, no[i]) == 0) {
            *to = strcmp(j->text, yes[i]) == 0;
            return true;
        }
    }
    return refuse(j, "true or false");
}

static bool parse_choice(const job *j, int *to)
{
    const char *names[AT_MOST_SETTINGS];
    int count = 0;
    char all[200];
    for (int i = 0; j->row->choices[i]; i++) {
        if (!*j->row->choices[i])
            continue;
        if (strcmp(j->row->choices[i], j->text) == 0) {
            *to = i;
            return true;
        }
        names[count++] = j->row->choices[i];
    }
    list_names(names, count, "", " or ", all, sizeof all);
    return refuse(j, all);
}

static bool parse_name(const job *j, char *to)
{
    char takes[60];
    const char *const *alias = j->row->alias;
    const size_t other = alias[0] ? strlen(alias[0]) : 0;
    if (other && strncmp(j->text, alias[0], other) == 0 && (!j->text[other] || j->text[other] == ':')) {
        snprintf(to, j->row->size, "%s%s", alias[1], j->text + other);
        return true;
    }
    const size_t length = strlen(j->text);
    snprintf(takes, sizeof takes, "a name of 1 to %zu characters", j->row->size - 1);
    if (length >= j->row->size || (length == 0 && j->row->fallback))
        return refuse(j, takes);
    memcpy(to, j->text, length + 1);
    return true;
}

static bool parse_columns(const job *j, at_columns *to)
{
    at_columns c = {0};
    int used = 0;
    bool good = sscanf(j->text, "%d%n", &c.target, &used) == 1 && !j->text[used];
    if (!good)
        good = sscanf(j->text, "%d,%d%n", &c.source, &c.target, &used) == 2 && !j->text[used] && c.source > 0;
    if (!good || c.target < 1)
        return refuse(j, "two numbers from 1, such as 1,2, or one for a language model");
    *to = c;
    return true;
}

/* ---- Lists ---------------------------------------------------------------------------------------------------- */

static bool no_memory(const job *j)
{
    return at_no_memory(j->error, "the values of `%s`", j->row->name);
}

static bool parse_counts(const job *j, at_counts *to)
{
    int64_t count = 1;
    for (const char *at = j->text; *at; at++)
        count += *at == ',';
    int64_t *value = malloc((size_t)count * sizeof *value);
    char *copy = strdup(j->text), *rest = copy;
    bool good = (value && copy) || no_memory(j);
    for (int64_t i = 0; good && i < count; i++)
        good = parse_count(&(job){j->row, j->label, strsep(&rest, ","), j->error}, &value[i]);
    free(copy);
    if (!good) {
        free(value);
        return false;
    }
    free(to->value);
    *to = (at_counts){value, count};
    return true;
}

static bool parse_texts(const job *j, at_texts *to)
{
    if (to->settled)
        to->count = 0;
    to->settled = false;
    const char **value = realloc(to->value, ((size_t)to->count + 1) * sizeof *value);
    if (!value)
        return no_memory(j);
    to->value = value;
    to->value[to->count++] = j->text;
    return true;
}

static bool parse_pair(const job *j, at_pairs *to)
{
    const char *equals = strchr(j->text, '=');
    if (!equals || equals == j->text || !equals[1])
        return refuse(j, "NAME=FILE, like W=w.npy");
    const size_t length = (size_t)(equals - j->text), count = (size_t)to->count + 1;
    for (int i = 0; i < to->count; i++) {
        if (strlen(to->name[i]) == length && strncmp(to->name[i], j->text, length) == 0) {
            to->file[i] = equals + 1;
            return true;
        }
    }
    char *name = strndup(j->text, length), **names = realloc(to->name, count * sizeof *names);
    if (names)
        to->name = names;
    const char **files = realloc(to->file, count * sizeof *files);
    if (files)
        to->file = files;
    if (!name || !names || !files) {
        free(name);
        return no_memory(j);
    }
    to->name[to->count] = name;
    to->file[to->count++] = equals + 1;
    return true;
}

void at_setting_release(const at_setting *row, void *from)
{
    void *field = (char *)from + row->offset;
    if (row->type == AT_SETTING_COUNTS)
        free(((at_counts *)field)->value);
    if (row->type == AT_SETTING_TEXTS)
        free(((at_texts *)field)->value);
    if (row->type == AT_SETTING_PAIRS) {
        at_pairs *list = field;
        for (int i = 0; i < list->count; i++)
            free(list->name[i]);
        free(list->name);
        free(list->file);
    }
}

/* ---- Any setting ---------------------------------------------------------------------------------------------- */

static bool parse_text(const job *j, const char **to)
{
    *to = j->text;
    return true;
}

bool at_setting_parse(const at_setting *row, const char *label, const char *text, void *into, at_error *error)
{
    void *field = (char *)into + row->offset;
    const job j = {row, label, text, error};
    const char *quote = label ? "" : "`";
    if (error->code != AT_OK || (row->known && !row->known(text, error)))
        return false;
    if ((row->type == AT_SETTING_TEXT || row->type == AT_SETTING_TEXTS) && !*text)
        return at_fail(error, AT_USAGE, "%s%s%s takes %s, not an empty word", quote, label ? label : row->name, quote,
                       row->argument);
    switch (row->type) {
    case AT_SETTING_HEADING:
        break;
    case AT_SETTING_SWITCH:
        return parse_switch(&j, field);
    case AT_SETTING_TEXT:
        return parse_text(&j, field);
    case AT_SETTING_NAME:
        return parse_name(&j, field);
    case AT_SETTING_COUNT:
        return parse_count(&j, field);
    case AT_SETTING_NUMBER:
        return parse_number(&j, field);
    case AT_SETTING_SEED:
        return parse_seed(&j, field);
    case AT_SETTING_CHOICE:
        return parse_choice(&j, field);
    case AT_SETTING_COLUMNS:
        return parse_columns(&j, field);
    case AT_SETTING_COUNTS:
        return parse_counts(&j, field);
    case AT_SETTING_TEXTS:
        return parse_texts(&j, field);
    case AT_SETTING_PAIRS:
        return parse_pair(&j, field);
    }
    return true;
}

int at_number_shortest(double value, char *text, size_t size)
{
    int digits = 0;
    do
        snprintf(text, size, "%.*g", ++digits, value);
    while (digits < 17 && strtod(text, NULL) != value);
    return digits;
}

/* As one types it: 20 and not 2e+01, 0.00005 and not 5e-05; but 1e-05. */
static void print_number(double value, char *text, size_t size)
{
    char *e;
    const int digits = at_number_shortest(value, text, size);
    const int exponent = (e = strchr(text, 'e')) ? atoi(e + 1) : 0;
    if (exponent > 0 && exponent < 16)
        snprintf(text, size, "%.0f", value);
    else if (exponent < 0 && exponent > -7 && strncmp(text, "1e", 2) != 0)
        snprintf(text, size, "%.*f", digits - 1 - exponent, value);
}

char *at_setting_text(const at_setting *row, const void *from, char *text, size_t size)
{
    const void *field = (const char *)from + row->offset;
    const at_columns *columns = field;
    text[0] = 0;
    switch (row->type) {
    case AT_SETTING_SWITCH:
        snprintf(text, size, "%s", *(const bool *)field ? "true" : "false");
        break;
    case AT_SETTING_TEXT:
        snprintf(text, size, "%s", *(const char *const *)field ? *(const char *const *)field : "");
        break;
    case AT_SETTING_NAME:
        snprintf(text, size, "%s", (const char *)field);
        break;
    case AT_SETTING_COUNT:
        snprintf(text, size, "%lld", (long long)*(const int64_t *)field);
        break;
    case AT_SETTING_NUMBER:
        print_number(*(const double *)field, text, size);
        break;
    case AT_SETTING_SEED:
        snprintf(text, size, "%llu", (unsigned long long)*(const uint64_t *)field);
        break;
    case AT_SETTING_CHOICE:
        snprintf(text, size, "%s", row->choices[*(const int *)field]);
        break;
    case AT_SETTING_COLUMNS:
        snprintf(text, size, columns->source ? "%d,%d" : "%d", columns->source ? columns->source : columns->target,
                 columns->target);
        break;
    case AT_SETTING_HEADING:
    case AT_SETTING_COUNTS:
    case AT_SETTING_TEXTS:
    case AT_SETTING_PAIRS:
        break;
    }
    return text;
}

bool at_setting_is_zero(const at_setting *row, const void *from)
{
    const void *field = (const char *)from + row->offset;
    char text[32];
    switch (row->type) {
    case AT_SETTING_SWITCH:
        return !*(const bool *)field;
    case AT_SETTING_COUNT:
        return *(const int64_t *)field == 0;
    case AT_SETTING_NUMBER:
        return *(const double *)field == 0;
    case AT_SETTING_SEED:
        return *(const uint64_t *)field == 0;
    default:
        return !*at_setting_text(row, from, text, sizeof text);
    }
}
