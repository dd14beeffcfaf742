#include "text/placeholders_internal.h"

#include <string.h>
#include <strings.h>

enum { LONGEST = 100 }; /* bytes between brackets */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || ((unsigned char)c & 0x80);
}

/* How many bytes at the beginning of the text are among these. */
static size_t span(const char *at, const char *end, const char *among)
{
    size_t size = 0;
    while (at + size < end && at[size] && strchr(among, at[size]))
        size++;
    return size;
}

static size_t digits(const char *at, const char *end)
{
    return span(at, end, "0123456789");
}

/* Each returns the size of what begins at `at`, 0: nothing does. */

static size_t address(const char *at, const char *end)
{
    static const char *const starts[] = {"http://", "https://", "ftp://", "mailto:", "www."};
    size_t begins = 0;
    if (!strchr("hHfFmMwW", *at))
        return 0;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        const size_t size = strlen(starts[i]);
        if ((size_t)(end - at) > size && strncasecmp(at, starts[i], size) == 0)
            begins = size;
    }
    size_t size = begins;
    while (begins && at + size < end && (unsigned char)at[size] > ' ' && at[size] != 0x7F && !strchr("<>\"", at[size]))
        size++;
    while (size > begins && strchr(".,;:!?'()[]{}*", at[size - 1]))
        size--;
    return size > begins ? size : 0;
}

static size_t mail(const char *at, const char *end)
{
    static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._+";
    const size_t local = span(at, end, name);
    if (local < 1 || at + local >= end || at[local] != '@')
        return 0;
    size_t host = span(at + local + 1, end, name);
    while (host > 0 && strchr(".-_+", at[local + host]))
        host--;
    return memchr(at + local + 1, '.', host) ? local + 1 + host : 0;
}

/* From `open` to `close` without a bracket in between; blanks only where they are allowed. */
static size_t between(const char *at, const char *end, const char *open, const char *close, bool blanks, bool empty)
{
    const size_t head = strlen(open), tail = strlen(close);
    if ((size_t)(end - at) < head + tail || memcmp(at, open, head) != 0)
        return 0;
    for (size_t i = head; at + i + tail <= end && i <= LONGEST; i++) {
        if (memcmp(at + i, close, tail) == 0)
            return i > head || empty ? i + tail : 0;
        if (strchr("{}<>\n", at[i]) || (!blanks && at[i] == ' '))
            return 0;
    }
    return 0;
}

static size_t bracketed(const char *at, const char *end)
{
    size_t size = between(at, end, "{{", "}}", true, false);
    size = size ? size : between(at, end, "${", "}", true, false);
    return size ? size : between(at, end, "{", "}", false, true);
}

/* %[N$|(name)][flags][width][.precision][length]conversion, with no letter behind it; a blank is no flag here: "5% off". */
static size_t conversion(const char *at, const char *end)
{
    if (at + 1 >= end || at[0] != '%')
        return 0;
    if (at[1] == '%')
        return 2;
    size_t size = 1 + between(at + 1, end, "(", ")", false, false);
    const size_t number = digits(at + size, end);
    if (number > 0 && at + size + number < end && at[size + number] == '$')
        size += number + 1;
    size += span(at + size, end, "-+#0");
    size += digits(at + size, end);
    if (at + size < end && at[size] == '.')
        size += 1 + digits(at + size + 1, end);
    size += span(at + size, end, "hlzjtL");
    if (at + size >= end || !strchr("sdiufFeEgGxXopcaA@", at[size]))
        return 0;
    size++;
    return at + size < end && is_letter(at[size]) ? 0 : size;
}

static size_t character(const char *at, const char *end)
{
    if (at + 3 >= end || at[0] != '&')
        return 0;
    size_t size = at[1] == '#' ? 2 : 1;
    const size_t head = size;
    while (at + size < end && size < 32 && !((unsigned char)at[size] & 0x80) &&
           (is_letter(at[size]) || is_digit(at[size])))
        size++;
    return size > head && at + size < end && at[size] == ';' ? size + 1 : 0;
}

static size_t number_size(const char *at, const char *end)
{
    size_t size = digits(at, end);
    while (size > 0 && at + size + 1 < end && strchr(".,:/-", at[size]) && is_digit(at[size + 1]))
        size += 1 + digits(at + size + 1, end);
    return size > 0 && at + size < end && is_letter(at[size]) ? 0 : size;
}

/* What is known by its first byte. */
static size_t marked(const char *at, const char *end)
{
    switch (*at) {
    case '{':
    case '$':
        return bracketed(at, end);
    case '%':
        return conversion(at, end);
    case '&':
        return character(at, end);
    default:
        return (size_t)(end - at) >= strlen(AT_OBJECT) && memcmp(at, AT_OBJECT, strlen(AT_OBJECT)) == 0
                   ? strlen(AT_OBJECT)
                   : 0;
    }
}

bool at_placeholder_next(at_line line, size_t *from, at_line *found, bool *number)
{
    const char *const end = line.text + line.size;
    const bool mails = line.size > *from && memchr(line.text + *from, '@', line.size - *from);
    for (const char *at = line.text + *from; at < end; at++) {
        const bool in_word = at > line.text && (is_letter(at[-1]) || is_digit(at[-1]));
        size_t size = marked(at, end);
        if (!size && !in_word)
            size = address(at, end);
        if (!size && !in_word && mails)
            size = mail(at, end);
        *number = !size && is_digit(*at) && !in_word;
        if (*number)
            size = number_size(at, end);
        if (size) {
            *found = (at_line){at, size};
            *from = (size_t)(at - line.text) + size;
            return true;
        }
        if (*number) { /* digits beside letters are passed whole, so that their end is no number */
            while (at + 1 < end && (is_digit(at[1]) || is_letter(at[1])))
                at++;
        }
    }
    *from = line.size;
    return false;
}
