#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Cuts a message that was too long at a whole UTF-8 character: continuation bytes are 10xxxxxx. */
static void cut_whole(char *text, size_t size)
{
    size_t end = size - 1;
    while (end > 0 && ((unsigned char)text[end - 1] & 0xC0) == 0x80)
        end--;
    if (end > 0 && (unsigned char)text[end - 1] >= 0xC0)
        end--;
    text[end] = '\0';
}

static bool record(at_error *error, at_code code, const char *before, const char *format, va_list arguments)
{
    if (error->code != AT_OK)
        return false;
    error->code = code;
    const int start = snprintf(error->text, sizeof error->text, "%s", before);
    const size_t room = sizeof error->text - (size_t)start;
    if (vsnprintf(error->text + start, room, format, arguments) >= (int)room)
        cut_whole(error->text, sizeof error->text);
    return false;
}

bool at_fail(at_error *error, at_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    record(error, code, "", format, arguments);
    va_end(arguments);
    return false;
}

bool at_no_memory(at_error *error, const char *what, ...)
{
    va_list arguments;
    va_start(arguments, what);
    record(error, AT_MEMORY, "out of memory for ", what, arguments);
    va_end(arguments);
    return false;
}
