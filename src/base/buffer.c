#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* Makes room for `more` bytes and the NUL. */
static bool reserve(at_buffer *buffer, size_t more)
{
    const size_t need = buffer->size + more + 1;
    if (!buffer->failed && (need <= buffer->size || !AT_GROW(buffer->bytes, buffer->room, need)))
        buffer->failed = true;
    return !buffer->failed;
}

void at_buffer_add(at_buffer *buffer, const void *bytes, size_t size)
{
    if (!reserve(buffer, size))
        return;
    if (size > 0)
        memcpy(buffer->bytes + buffer->size, bytes, size);
    buffer->size += size;
    buffer->bytes[buffer->size] = '\0';
}

void at_buffer_print(at_buffer *buffer, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (length < 0) {
        buffer->failed = true;
        return;
    }
    if (!reserve(buffer, (size_t)length))
        return;
    va_start(list, format);
    vsnprintf(buffer->bytes + buffer->size, (size_t)length + 1, format, list);
    va_end(list);
    buffer->size += (size_t)length;
}

void at_buffer_cut(at_buffer *buffer, size_t size)
{
    if (buffer->failed || size >= buffer->size)
        return;
    buffer->size = size;
    buffer->bytes[size] = '\0';
}

void at_buffer_free(at_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (at_buffer){0};
}
