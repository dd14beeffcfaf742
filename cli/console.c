#include "console.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

bool fail(at_error *error, at_code code, const char *format, ...)
{
    if (error->code != AT_OK)
        return false;
    error->code = code;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return false;
}

bool fail_under(at_error *error, const char *prefix)
{
    size_t length = strlen(prefix) + 2, capacity = sizeof error->text;
    if (error->code == AT_OK || length >= capacity)
        return false;
    memmove(error->text + length, error->text, capacity - length);
    memcpy(error->text, prefix, length - 2);
    memcpy(error->text + length - 2, ": ", 2);
    error->text[capacity - 1] = 0;
    return false;
}

int exit_code(const at_error *error)
{
    switch (error->code) {
    case AT_OK:
        return EXIT_DONE;
    case AT_USAGE:
        return EXIT_USAGE;
    case AT_INTERRUPTED:
        return EXIT_INTERRUPTED;
    default:
        return EXIT_FAILED;
    }
}

/* The length of a setting's name in backquotes, as the library writes them; 0: there is none at `text`. */
static size_t setting_length(const char *text)
{
    const size_t length = *text == '`' ? strspn(text + 1, "abcdefghijklmnopqrstuvwxyz0123456789-") : 0;
    return length > 0 && text[1 + length] == '`' ? length : 0;
}

void dash_settings(const char *text, char *out, size_t size)
{
    size_t used = 0;
    while (*text && used + 1 < size) {
        const size_t setting = setting_length(text);
        const int more = setting ? snprintf(out + used, size - used, "--%.*s", (int)setting, text + 1) : 1;
        if (!setting)
            out[used] = *text;
        used += (size_t)more;
        text += setting ? setting + 2 : 1;
    }
    out[used < size ? used : size - 1] = 0;
}

void print_plain(FILE *stream, const char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        utf8proc_int32_t character;
        utf8proc_ssize_t length =
            utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)(size - at), &character);
        const bool plain = length > 0 && utf8proc_category(character) != UTF8PROC_CATEGORY_CC;
        for (utf8proc_ssize_t i = 0; i < (length > 0 ? length : 1); i++, at++)
            fprintf(stream, plain ? "%c" : "\\x%02x", (unsigned char)text[at]);
    }
}

/* A name in the message may come from a file that wants to colour the terminal or clear it. The library's `heads` is
 * --heads here. */
int report(const at_error *error)
{
    if (error->code == AT_OK)
        return EXIT_DONE;
    if (!at_process_speaks()) { /* one of several processes says it for all: mpirun ends it as soon as another fails */
        sleep(1);
        return exit_code(error);
    }
    fputs("attend: ", stderr);
    for (const char *at = error->text; *at;) {
        const size_t setting = setting_length(at), plain = 1 + strcspn(at + 1, "`");
        if (setting > 0)
            fprintf(stderr, "--%.*s", (int)setting, at + 1);
        else
            print_plain(stderr, at, plain);
        at += setting > 0 ? setting + 2 : plain;
    }
    fputc('\n', stderr);
    return exit_code(error);
}

int text_part_width(const char *text, size_t size)
{
    int width = 0;
    utf8proc_int32_t character;
    for (size_t at = 0; at < size;) {
        utf8proc_ssize_t length =
            utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)(size - at), &character);
        width += length > 0 ? utf8proc_charwidth(character) : 1;
        at += length > 0 ? (size_t)length : 1; /* an invalid byte counts as one character */
    }
    return width;
}

int text_width(const char *text)
{
    return text_part_width(text, strlen(text));
}

void print_padded(FILE *stream, const char *text, int width)
{
    int blanks = width - text_width(text);
    fprintf(stream, "%s%*s", text, blanks > 0 ? blanks : 0, "");
}

void print_wrapped(FILE *stream, const char *text, int left, int right, int column)
{
    bool first = true; /* no space before the first word of a line */
    while (*text) {
        if (*text == '\n') {
            fprintf(stream, "\n%*s", text[1] && text[1] != '\n' ? left : 0, "");
            column = left;
            first = true;
            text++;
            continue;
        }
        size_t length = strcspn(text, " \n");
        const int width = text_part_width(text, length);
        if (!first && column + 1 + width > right) {
            fprintf(stream, "\n%*s", left, "");
            column = left;
            first = true;
        }
        column += fprintf(stream, "%s", first ? "" : " ") + width;
        fwrite(text, 1, length, stream);
        first = false;
        text += length;
        if (*text == ' ')
            text++;
    }
    fputc('\n', stream);
}

bool colour_wanted(void)
{
    const char *never = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(never && *never) && !(terminal && strcmp(terminal, "dumb") == 0);
}

/* 24-bit colours are the terminal's promise in COLORTERM; without it the palette of 256 is. */
static bool has_all_colours(void)
{
    const char *promise = getenv("COLORTERM");
    return promise && (strcmp(promise, "truecolor") == 0 || strcmp(promise, "24bit") == 0);
}

int terminal_width_of(int descriptor)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    if (columns && atoi(columns) > 0)
        return atoi(columns);
    if (!isatty(descriptor))
        return 0;
    return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

int terminal_width(void)
{
    return terminal_width_of(STDOUT_FILENO);
}

static void print_within(FILE *stream, const char *line, int width)
{
    print_wrapped(stream, line, 2, width > 0 ? width : INT_MAX, 0);
}

void print_fitted(const char *line)
{
    print_within(stdout, line, terminal_width());
}

void tell_line(const char *format, ...)
{
    const int width = isatty(STDERR_FILENO) ? terminal_width_of(STDERR_FILENO) : 0;
    char text[2000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print_within(stderr, text, width);
}

void fit_terminal(at_heatmap *map, int indent)
{
    const int width = terminal_width();
    map->colour = colour_wanted();
    map->indexed = !has_all_colours();
    map->width = width > indent ? width - indent : width;
}

void print_heading(const char *text)
{
    bool colour = colour_wanted();
    printf("%s%s%s\n", colour ? "\033[1m" : "", text, colour ? "\033[0m" : "");
}
