#include "text_file.h"

#include <stdlib.h>
#include <string.h>

/* Makes room for so many bytes and a NUL. */
static bool reserve(text_file *text, size_t size)
{
    const size_t least = 256, twice = text->room * 2, room = size < twice ? twice : size < least ? least : size + 1;
    if (size < text->room)
        return true;
    char *bytes = size < SIZE_MAX / 4 ? realloc(text->bytes, room) : NULL;
    if (!bytes)
        return false;
    text->bytes = bytes;
    text->room = room;
    return true;
}

/* What the stream prints; less than `size` is an error. */
static ssize_t add(void *cookie, const char *bytes, size_t size)
{
    text_file *text = cookie;
    if (!reserve(text, text->size + size))
        return 0;
    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
    text->bytes[text->size] = 0;
    return (ssize_t)size;
}

static bool no_memory(at_error *error)
{
    return fail(error, AT_MEMORY, "out of memory for a text");
}

bool text_open(text_file *text, at_error *error)
{
    *text = (text_file){0};
    if (reserve(text, 0)) {
        text->bytes[0] = 0;
        text->stream = fopencookie(text, "w", (cookie_io_functions_t){.write = add});
    }
    if (text->stream)
        return true;
    free(text->bytes);
    return no_memory(error);
}

char *text_take(text_file *text, at_error *error)
{
    const bool printed = !ferror(text->stream);
    if (fclose(text->stream) == 0 && printed)
        return text->bytes;
    free(text->bytes);
    no_memory(error);
    return NULL;
}

bool text_close(text_file *text, at_writer *writer, at_error *error)
{
    char *bytes = text_take(text, error);
    if (bytes && writer)
        at_writer_add(writer, bytes, text->size, error);
    free(bytes);
    return error->code == AT_OK;
}
