#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A sentence that was too long is cut at a whole UTF-8 character: continuation bytes are 10xxxxxx. */
static void cut_whole(char *text, size_t size)
{
    size_t end = size - 1;
    while (end > 0 && ((unsigned char)text[end - 1] & 0xC0) == 0x80)
        end--;
    if (end > 0 && (unsigned char)text[end - 1] >= 0xC0)
        end--;
    text[end] = '\0';
}

bool at_fail(at_error *error, int code, const char *format, ...)
{
    if (error->code != AT_OK)
        return false;
    error->code = code;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof error->text)
        cut_whole(error->text, sizeof error->text);
    return false;
}
