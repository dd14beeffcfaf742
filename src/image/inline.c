/* Pictures that are in the line itself: data:image/png;base64,... (RFC 2397). */
#include "image/pictures_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const char *const starts[] = {"data:image/png;base64,", "data:image/jpeg;base64,"};
static const char start[] = "data:image/";

bool at_picture_is_inline(const char *line, size_t length)
{
    return length >= sizeof start - 1 && memcmp(line, start, sizeof start - 1) == 0;
}

/* The bytes of its start; 0: it has none that is known. */
static size_t start_of(const char *line, size_t length)
{
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        const size_t size = strlen(starts[i]);
        if (length >= size && memcmp(line, starts[i], size) == 0)
            return size;
    }
    return 0;
}

/* -1: no digit of base64. */
static int digit(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

/* Digits in fours, with one or two = at the end: how many bytes they are; -1: they are not base64. */
static int64_t count_bytes(const char *text, size_t length)
{
    const size_t ends =
        length >= 4 ? (text[length - 1] == '=') + (text[length - 1] == '=' && text[length - 2] == '=') : 0;
    for (size_t i = 0; i + ends < length; i++)
        if (digit(text[i]) < 0)
            return -1;
    return length % 4 == 0 ? (int64_t)(length / 4 * 3 - ends) : -1;
}

static void decode(const char *text, unsigned char *bytes, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const char *four = text + i / 3 * 4 + i % 3;
        const int shift = 2 * (int)(i % 3) + 2;
        bytes[i] = (unsigned char)(digit(four[0]) << shift | digit(four[1]) >> (6 - shift));
    }
}

bool at_picture_is_whole(const char *line, size_t length)
{
    const size_t from = start_of(line, length);
    return from > 0 && count_bytes(line + from, length - from) > 0;
}

bool at_pictures_add_inline(at_pictures *pictures, const char *line, size_t length, at_error *error)
{
    enum { NAME = 16 }; /* data:image/jpeg: what messages call it */
    const size_t from = start_of(line, length);
    const int64_t count = from > 0 ? count_bytes(line + from, length - from) : -1;
    if (count < 0)
        return at_fail(
            error, AT_FORMAT,
            "a picture in a line is data:image/png;base64, or data:image/jpeg;base64, and its bytes in base64");
    if (pictures->form.features)
        return at_fail(error, AT_USAGE, "the line is a picture, and the model takes features");
    char name[NAME];
    const size_t named = strcspn(line, ";") < NAME ? strcspn(line, ";") : NAME - 1;
    memcpy(name, line, named);
    name[named] = '\0';
    unsigned char *bytes = malloc((size_t)count + 1);
    if (!bytes)
        return at_no_memory(error, "a picture");
    decode(line + from, bytes, count);
    at_image image = {0};
    const bool done = at_image_parse(bytes, (size_t)count, name, &image, error) &&
                      at_pictures_add_image(pictures, &image, name, error);
    at_image_free(&image);
    free(bytes);
    return done;
}
