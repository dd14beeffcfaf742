/* Jansson's own reader and writer do not check every allocation: where memory runs out the reader loses characters, or
 * reads past the end of its buffer, and the writer leaves out names. Its functions that make values do check, so texts
 * are read and stored here and the values are made by them. */
#include "base/json.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/utf8.h"

enum { MOST_DEPTH = 100 };

typedef struct reader {
    const char *start, *at, *end;
    at_buffer text; /* what was decoded and is in use: the keys of the objects around, then the last string or number */
    const char *fault; /* the first one; NULL: none, or out of memory */
    int depth;
} reader;

static json_t *refuse(reader *r, const char *fault)
{
    if (!r->fault)
        r->fault = fault;
    return NULL;
}

static void skip_blanks(reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

/* Steps over this character, after blanks, if it is the next one. */
static bool next_is(reader *r, char wanted)
{
    skip_blanks(r);
    const bool found = r->at < r->end && *r->at == wanted;
    r->at += found;
    return found;
}

/* ---- Strings ---------------------------------------------------------------------------------------------------- */

/* Four hexadecimal digits; -1 if they are not. */
static int32_t read_unit(reader *r)
{
    int32_t unit = 0;
    if (r->end - r->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const char c = *r->at++;
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

/* \uXXXX, or two of them for a character beyond U+FFFF. */
static bool read_point(reader *r)
{
    utf8proc_uint8_t bytes[4];
    int32_t point = read_unit(r);
    if (point >= 0xD800 && point < 0xDC00) {
        const bool pair = r->end - r->at >= 2 && r->at[0] == '\\' && r->at[1] == 'u';
        r->at += pair ? 2 : 0;
        const int32_t low = pair ? read_unit(r) : -1;
        point = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00) : -1;
    }
    if (point < 0 || (point >= 0xDC00 && point < 0xE000))
        return refuse(r, "a \\u escape that is no character");
    if (point == 0)
        return refuse(r, "a NUL character in a string");
    at_buffer_add(&r->text, bytes, (size_t)utf8proc_encode_char(point, bytes));
    return true;
}

static bool read_escape(reader *r)
{
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char name = r->at < r->end ? *r->at++ : '\0';
    if (name == 'u')
        return read_point(r);
    const char *found = name ? strchr(names, name) : NULL;
    if (!found)
        return refuse(r, "an unknown escape in a string");
    at_buffer_add(&r->text, &meant[found - names], 1);
    return true;
}

/* A string, whose quote has been read, is added to the text. */
static bool read_string(reader *r)
{
    while (!r->text.failed) {
        const char *run = r->at;
        while (r->at < r->end && *r->at != '"' && *r->at != '\\' && (unsigned char)*r->at >= ' ')
            r->at++;
        at_buffer_add(&r->text, run, (size_t)(r->at - run));
        const char stop = r->at < r->end ? *r->at : '\0';
        if (stop != '"' && stop != '\\')
            return refuse(r, r->at < r->end ? "a control character in a string" : "a string without an end");
        r->at++;
        if (stop == '"')
            return !r->text.failed;
        if (!read_escape(r))
            return false;
    }
    return false;
}

/* ---- Numbers ---------------------------------------------------------------------------------------------------- */

static size_t count_digits(reader *r)
{
    const char *first = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return (size_t)(r->at - first);
}

static bool step_over(reader *r, const char *either)
{
    const bool found = r->at < r->end && *r->at && strchr(either, *r->at);
    r->at += found;
    return found;
}

/* The text of a number, of the form that JSON allows. */
static bool scan_number(reader *r, bool *whole)
{
    step_over(r, "-");
    const char *digits = r->at;
    const size_t count = count_digits(r);
    *whole = true;
    if (count == 0 || (count > 1 && *digits == '0'))
        return false;
    if (step_over(r, ".")) {
        *whole = false;
        if (count_digits(r) == 0)
            return false;
    }
    if (step_over(r, "eE")) {
        *whole = false;
        step_over(r, "+-");
        if (count_digits(r) == 0)
            return false;
    }
    return true;
}

static json_t *read_number(reader *r)
{
    const char *first = r->at;
    bool whole;
    if (!scan_number(r, &whole))
        return refuse(r, "neither a value nor a number");
    const size_t before = r->text.size;
    at_buffer_add(&r->text, first, (size_t)(r->at - first));
    if (r->text.failed)
        return NULL;
    const char *text = r->text.bytes + before;
    errno = 0;
    const long long integer = whole ? strtoll(text, NULL, 10) : 0;
    const double real = whole ? 0 : strtod_l(text, NULL, newlocale(LC_ALL_MASK, "C", NULL)); /* a point, not a comma */
    const bool in_range = whole ? errno != ERANGE : isfinite(real);
    at_buffer_cut(&r->text, before);
    if (!in_range)
        return refuse(r, "a number that is too large");
    return whole ? json_integer(integer) : json_real(real);
}

/* ---- Values ----------------------------------------------------------------------------------------------------- */

static json_t *read_value(reader *r);

static bool add_element(reader *r, json_t *array)
{
    json_t *value = read_value(r);
    return value && json_array_append_new(array, value) == 0;
}

static bool add_member(reader *r, json_t *object)
{
    const size_t before = r->text.size;
    if (!next_is(r, '"'))
        return refuse(r, "no name where one should be");
    if (!read_string(r))
        return false;
    at_buffer_add(&r->text, "", 1); /* the names inside the value come after its NUL */
    if (r->text.failed)
        return false;
    if (json_object_get(object, r->text.bytes + before))
        return refuse(r, "a name twice in one object");
    if (!next_is(r, ':'))
        return refuse(r, "no colon after a name");
    json_t *value = read_value(r);
    const bool done = value && json_object_set_new_nocheck(object, r->text.bytes + before, value) == 0;
    at_buffer_cut(&r->text, before);
    return done;
}

/* The members of an object or an array, whose bracket has been read. */
static json_t *read_members(reader *r, json_t *into, char close, bool (*add)(reader *, json_t *))
{
    bool good = into && (r->depth < MOST_DEPTH || refuse(r, "brackets nested too deep"));
    r->depth++;
    for (bool first = true; good && !next_is(r, close); first = false)
        good = (first || next_is(r, ',') || refuse(r, "neither a comma nor a bracket after a value")) && add(r, into);
    r->depth--;
    if (good)
        return into;
    json_decref(into);
    return NULL;
}

static json_t *read_text(reader *r)
{
    const size_t before = r->text.size;
    json_t *value = NULL;
    if (read_string(r))
        value = json_stringn_nocheck(r->text.bytes + before, r->text.size - before);
    at_buffer_cut(&r->text, before);
    return value;
}

static bool next_word(reader *r, const char *word)
{
    const size_t length = strlen(word);
    const bool found = (size_t)(r->end - r->at) >= length && memcmp(r->at, word, length) == 0;
    r->at += found ? length : 0;
    return found;
}

/* NULL with a fault, or without one if out of memory. */
static json_t *read_value(reader *r)
{
    if (next_is(r, '{'))
        return read_members(r, json_object(), '}', add_member);
    if (next_is(r, '['))
        return read_members(r, json_array(), ']', add_element);
    if (next_is(r, '"'))
        return read_text(r);
    if (next_word(r, "true"))
        return json_true();
    if (next_word(r, "false"))
        return json_false();
    return next_word(r, "null") ? json_null() : read_number(r);
}

json_t *at_json_read(const char *text, size_t size, const char *what, at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    reader r = {.start = text, .at = text, .end = text + size};
    const size_t clean = at_utf8_length(text, size);
    json_t *value = NULL;
    if (clean < size) {
        r.at += clean;
        refuse(&r, "bytes that are not UTF-8");
    } else {
        value = read_value(&r);
        if (value)
            skip_blanks(&r);
        if (value && r.at < r.end)
            refuse(&r, "more text after its end");
    }
    at_buffer_free(&r.text);
    if (value && !r.fault)
        return value;
    json_decref(value);
    if (r.fault)
        at_fail(error, AT_FORMAT, "%s is not JSON: it has %s at byte %zu", what, r.fault, (size_t)(r.at - r.start));
    else
        at_no_memory(error, "%s", what);
    return NULL;
}

/* ---- Writing ---------------------------------------------------------------------------------------------------- */

/* Jansson goes on after some of the failures, so the buffer remembers them. */
static int add_text(const char *bytes, size_t size, void *context)
{
    at_buffer *text = context;
    at_buffer_add(text, bytes, size);
    return text->failed ? -1 : 0;
}

char *at_json_text(const json_t *value, size_t flags)
{
    at_buffer text = {0};
    if (value && json_dump_callback(value, add_text, &text, flags) == 0 && !text.failed)
        return text.bytes;
    at_buffer_free(&text);
    return NULL;
}
