#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* A message may quote what is in a file, or its name: control characters and bytes that are not UTF-8 are shown as \xNN,
 * and a message that is too long is cut between characters. */
static bool record(at_error *error, at_code code, const char *before, const char *format, va_list arguments)
{
    char
        text[sizeof error->text + 8]; /* what is longer is cut anyway, and so is its last character if that is broken */
    if (error->code != AT_OK)
        return false;
    error->code = code;
    const int start = snprintf(text, sizeof text, "%s", before);
    vsnprintf(text + start, sizeof text - (size_t)start, format, arguments);
    at_shown(text, error->text, sizeof error->text);
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

bool at_file_fail(at_error *error, const char *verb, const char *path, int reason)
{
    return reason == ENOMEM ? at_no_memory(error, "the file '%s'", path)
                            : at_fail(error, AT_FILE, "cannot %s '%s': %s", verb, path, strerror(reason));
}
