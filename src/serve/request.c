/* What a request says: JSON, or a form as browsers send it (urlencoded or multipart), or the query of the address. The
 * forms are read here: the reader of libmicrohttpd 0.9.75 has known faults. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "serve/serve_internal.h"

bool at_refuse(at_refusal *refusal, int status, const char *format, ...)
{
    if (refusal->status)
        return false;
    va_list values;
    va_start(values, format);
    vsnprintf(refusal->text, sizeof refusal->text, format, values);
    va_end(values);
    refusal->text[at_utf8_length(refusal->text, strlen(refusal->text))] = 0; /* not cut inside a character */
    refusal->status = status;
    return false;
}

static bool no_memory(at_refusal *refusal)
{
    return at_refuse(refusal, 500, "out of memory for a request");
}

int64_t at_characters(at_line text)
{
    int64_t count = 0;
    for (size_t i = 0; i < text.size; i++)
        count += ((unsigned char)text.text[i] & 0xC0) != 0x80;
    return count;
}

/* ---- Forms ------------------------------------------------------------------------------------------------------ */

/* A field of a form. The first value of a name counts; `text` ends in a NUL. */
typedef struct form {
    at_request *request;
    const char *q;
    size_t q_size;
} form;

static void take(form *f, const char *name, const char *text, size_t size)
{
    at_request *r = f->request;
    const struct {
        const char *name;
        const char **value;
    } fields[] = {{"source", &r->source}, {"target", &r->target},
                  {"format", &r->format}, {"alternatives", &r->alternatives},
                  {"api_key", &r->key},   {"translation", &r->translation},
                  {"start", &r->start},   {"confidence", &r->confidence}};
    if (strcmp(name, "q") == 0 && !f->q) {
        f->q = text;
        f->q_size = size;
    }
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(name, fields[i].name) == 0 && !*fields[i].value)
            *fields[i].value = text;
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* "+" is a blank and "%41" an A; decoded in place, and what is no such number stays. Returns the size. */
static size_t decode(char *text, size_t size)
{
    size_t to = 0;
    for (size_t from = 0; from < size; from++, to++) {
        text[to] = text[from] == '+' ? ' ' : text[from];
        if (text[from] == '%' && size - from > 2 && digit_of(text[from + 1]) >= 0 && digit_of(text[from + 2]) >= 0) {
            text[to] = (char)(16 * digit_of(text[from + 1]) + digit_of(text[from + 2]));
            from += 2;
        }
    }
    return to;
}

/* name=value&name=value; there is a byte after the last that may be changed. */
static void read_urlencoded(form *f, char *text, size_t size)
{
    char *const end = text + size;
    while (text < end) {
        char *pair_end = memchr(text, '&', (size_t)(end - text));
        pair_end = pair_end ? pair_end : end;
        char *value = memchr(text, '=', (size_t)(pair_end - text));
        char *name_end = value ? value : pair_end;
        value = value ? value + 1 : pair_end;
        text[decode(text, (size_t)(name_end - text))] = 0;
        const size_t value_size = decode(value, (size_t)(pair_end - value));
        value[value_size] = 0;
        take(f, text, value, value_size);
        text = pair_end + 1;
    }
}

/* Of a header's line the value of a parameter, without its quotes: boundary=x, name="q". Empty if it has none. */
static at_line parameter(at_line header, const char *name)
{
    const size_t length = strlen(name);
    const char *const end = header.text + header.size;
    for (const char *at = memchr(header.text, ';', header.size); at; at = memchr(at, ';', (size_t)(end - at))) {
        for (at++; at < end && (*at == ' ' || *at == '\t');)
            at++;
        if ((size_t)(end - at) <= length || strncasecmp(at, name, length) != 0 || at[length] != '=')
            continue;
        at += length + 1;
        const bool quoted = at < end && *at == '"';
        at += quoted;
        const char *stop = at;
        while (stop < end && (quoted ? *stop != '"' : *stop != ';' && *stop != ' '))
            stop++;
        return (at_line){at, (size_t)(stop - at)};
    }
    return (at_line){"", 0};
}

/* The name of a part, from its headers; a part that is a file has none that counts. */
static at_line part_name(char *headers, size_t size)
{
    static const char wanted[] = "content-disposition:";
    char *const end = headers + size;
    for (char *line = headers; line < end;) {
        char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        const at_line header = {line, (size_t)(stop - line)};
        if (header.size > sizeof wanted && strncasecmp(line, wanted, sizeof wanted - 1) == 0)
            return parameter(header, "filename").size > 0 ? (at_line){"", 0} : parameter(header, "name");
        line = stop + 1;
    }
    return (at_line){"", 0};
}

/* --boundary, headers, an empty line, the value, --boundary, ..., --boundary--, with CR LF after each line. */
static bool read_multipart(form *f, char *text, size_t size, at_line boundary, at_refusal *refusal)
{
    enum { MOST = 70 }; /* RFC 2046 */
    char mark[MOST + 5];
    char name[32];
    if (boundary.size < 1 || boundary.size > MOST)
        return at_refuse(refusal, 400, "Invalid request: a multipart form needs a boundary of 1 to 70 characters");
    const size_t length = (size_t)snprintf(mark, sizeof mark, "\r\n--%.*s", (int)boundary.size, boundary.text);
    if (length != boundary.size + 4)
        return at_refuse(refusal, 400, "Invalid request: the boundary of the multipart form is no text");
    char *const end = text + size;
    char *at = size >= length - 2 && memcmp(text, mark + 2, length - 2) == 0 ? text + length - 2 : NULL;
    while (at && end - at >= 2 && memcmp(at, "\r\n", 2) == 0) {
        char *headers = at + 2;
        char *value = memmem(at, (size_t)(end - at), "\r\n\r\n", 4);
        char *stop = value ? memmem(value + 2, (size_t)(end - value - 2), mark, length) : NULL;
        if (!stop || stop < value + 4)
            break;
        const at_line named = value > headers ? part_name(headers, (size_t)(value - headers)) : (at_line){"", 0};
        snprintf(name, sizeof name, "%.*s", (int)(named.size < sizeof name ? named.size : 0), named.text);
        *stop = 0;
        take(f, name, value + 4, (size_t)(stop - value - 4));
        at = stop + length;
    }
    if (!at || end - at < 2 || memcmp(at, "--", 2) != 0)
        return at_refuse(refusal, 400, "Invalid request: the multipart form is truncated or damaged");
    return true;
}

/* The text of a form: one kind of line end, as browsers send CR LF, and none after the last line; U+FFFD for what is not
 * UTF-8 and for NUL. */
static char *plain_text(const char *text, size_t size, size_t *plain_size)
{
    static const char unknown[] = "\xEF\xBF\xBD";
    at_buffer out = {0};
    at_buffer_add(&out, "", 0);
    for (size_t at = 0, valid = 0; at < size;) { /* up to `valid` it is UTF-8 */
        if (at >= valid)
            valid = at + at_utf8_length(text + at, size - at);
        size_t stop = at;
        while (stop < valid && text[stop] != '\r' && text[stop] != 0)
            stop++;
        at_buffer_add(&out, text + at, stop - at);
        at = stop;
        if (at < valid && text[at] == '\r') {
            at_buffer_add(&out, "\n", 1);
            at += at + 1 < size && text[at + 1] == '\n' ? 2 : 1;
        } else if (at < size) {
            at_buffer_add(&out, unknown, sizeof unknown - 1);
            at++;
        }
    }
    if (out.size > 0 && out.bytes[out.size - 1] == '\n')
        at_buffer_cut(&out, out.size - 1);
    *plain_size = out.size;
    if (!out.failed)
        return out.bytes;
    at_buffer_free(&out);
    return NULL;
}

static bool set_texts(at_request *request, int64_t count, at_refusal *refusal)
{
    request->text = calloc((size_t)count + 1, sizeof *request->text);
    request->count = count;
    return request->text || no_memory(refusal);
}

static char *copy_of(const char *bytes, size_t size)
{
    char *copy = malloc(size + 1);
    if (copy) {
        memcpy(copy, bytes, size);
        copy[size] = 0;
    }
    return copy;
}

/* The fields of a form are text; those that are cut short by a NUL or are not UTF-8 name nothing. */
static const char *checked(const char *value)
{
    return value && !at_is_utf8(value) ? "?" : value;
}

static bool read_form(at_request *r, const char *type, const char *query, const char *body, size_t size,
                      at_refusal *refusal)
{
    static const char urlencoded[] = "application/x-www-form-urlencoded", multipart[] = "multipart/form-data";
    form f = {.request = r};
    const size_t query_size = query ? strlen(query) : 0;
    r->bytes[0] = copy_of(query ? query : "", query_size);
    r->bytes[1] = copy_of(body, size);
    if (!r->bytes[0] || !r->bytes[1])
        return no_memory(refusal);
    read_urlencoded(&f, r->bytes[0], query_size);
    if (type && strncasecmp(type, urlencoded, sizeof urlencoded - 1) == 0)
        read_urlencoded(&f, r->bytes[1], size);
    else if (type && strncasecmp(type, multipart, sizeof multipart - 1) == 0 &&
             !read_multipart(&f, r->bytes[1], size, parameter((at_line){type, strlen(type)}, "boundary"), refusal))
        return false;
    r->source = checked(r->source);
    r->target = checked(r->target);
    r->format = checked(r->format);
    r->alternatives = checked(r->alternatives);
    r->translation = checked(r->translation);
    r->start = checked(r->start);
    r->confidence = checked(r->confidence);
    if (!f.q)
        return true;
    size_t plain;
    r->bytes[2] = plain_text(f.q, f.q_size, &plain);
    if (!r->bytes[2] || !set_texts(r, 1, refusal))
        return no_memory(refusal);
    r->text[0] = (at_line){r->bytes[2], plain};
    return true;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static const char *field(const at_request *r, const char *name)
{
    const json_t *value = json_object_get(r->json, name);
    return json_is_string(value) ? json_string_value(value) : !value || json_is_null(value) ? NULL : "?";
}

static bool read_json(at_request *r, const char *body, size_t size, at_refusal *refusal)
{
    at_error error = {0};
    r->json = at_json_read(body, size, "the body", &error);
    if (error.code == AT_MEMORY)
        return no_memory(refusal);
    if (!json_is_object(r->json))
        return at_refuse(refusal, 400, "Invalid JSON format");
    r->source = field(r, "source");
    r->target = field(r, "target");
    r->format = field(r, "format");
    r->key = field(r, "api_key");
    r->translation = field(r, "translation");
    r->start = field(r, "start");
    r->confidence = json_is_true(json_object_get(r->json, "confidence")) ? "true" : field(r, "confidence");
    const json_t *alternatives = json_object_get(r->json, "alternatives");
    if (json_is_integer(alternatives))
        r->alternative_count = json_integer_value(alternatives);
    else
        r->alternatives = field(r, "alternatives");
    const json_t *q = json_object_get(r->json, "q");
    r->batch = json_is_array(q);
    if (!q || json_is_null(q))
        return true;
    if (!set_texts(r, r->batch ? (int64_t)json_array_size(q) : 1, refusal))
        return false;
    for (int64_t i = 0; i < r->count; i++) {
        const json_t *text = r->batch ? json_array_get(q, (size_t)i) : q;
        if (!json_is_string(text)) {
            r->count = 0; /* the page shows the text that it refuses */
            return at_refuse(refusal, 400, "Invalid request: q parameter is not a text or an array of texts");
        }
        r->text[i] = (at_line){json_string_value(text), json_string_length(text)};
    }
    return true;
}

/* application/json, and application/vnd.x+json */
static bool is_json(const char *type)
{
    if (!type || strncasecmp(type, "application/", 12) != 0)
        return false;
    const char *kind = type + 12;
    const size_t length = strcspn(kind, "; \t");
    return (length == 4 && strncasecmp(kind, "json", 4) == 0) ||
           (length > 5 && strncasecmp(kind + length - 5, "+json", 5) == 0);
}

/* ---- Both ------------------------------------------------------------------------------------------------------- */

bool at_request_read(at_request *request, const char *type, const char *query, const char *body, size_t size,
                     at_refusal *refusal)
{
    return is_json(type) ? read_json(request, body, size, refusal)
                         : read_form(request, type, query, body, size, refusal);
}

void at_request_free(at_request *request)
{
    free(request->text);
    json_decref(request->json);
    for (size_t i = 0; i < sizeof request->bytes / sizeof *request->bytes; i++)
        free(request->bytes[i]);
    *request = (at_request){0};
}

static bool too_large(int64_t size, int64_t most, at_refusal *refusal)
{
    return size > most && !at_refuse(refusal, 400, "Invalid request: request (%lld) exceeds text limit (%lld)",
                                     (long long)size, (long long)most);
}

static bool count_alternatives(const at_request *request, int64_t most, int64_t *count, at_refusal *refusal)
{
    const char *text = request->alternatives;
    char *end = "";
    const long long number = text && *text ? strtoll(text, &end, 10) : request->alternative_count;
    if (text && (!*text || *end))
        return at_refuse(refusal, 400, "Invalid request: alternatives parameter is not a number");
    if (number > most)
        return at_refuse(refusal, 400, "Invalid request: alternatives parameter must be <= %lld", (long long)most);
    *count = number > 0 ? number : 0;
    return true;
}

static bool is_missing(const char *name, const char *value, at_refusal *refusal)
{
    return (!value || !*value) && !at_refuse(refusal, 400, "Invalid request: missing %s parameter", name);
}

bool at_request_check(const at_request *r, const at_server_settings *limits, bool translates, int64_t *alternatives,
                      at_refusal *refusal)
{
    *alternatives = 0;
    if (is_missing("q", r->count < 1 ? NULL : r->batch ? "an array" : r->text[0].text, refusal))
        return false;
    if (translates && (is_missing("source", r->source, refusal) || is_missing("target", r->target, refusal) ||
                       !count_alternatives(r, limits->max_alternatives, alternatives, refusal)))
        return false;
    if (too_large(r->count, limits->max_texts, refusal))
        return false;
    for (int64_t i = 0; i < r->count; i++)
        if (too_large(at_characters(r->text[i]), limits->max_characters, refusal))
            return false;
    return true;
}
