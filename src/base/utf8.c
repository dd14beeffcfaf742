#include "base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

size_t at_utf8_length(const char *text, size_t size)
{
    size_t at = 0;
    while (at < size) {
        utf8proc_int32_t point;
        const utf8proc_ssize_t left = (utf8proc_ssize_t)(size - at);
        const utf8proc_ssize_t step = utf8proc_iterate((const utf8proc_uint8_t *)text + at, left, &point);
        if (step < 1)
            break;
        at += (size_t)step;
    }
    return at;
}

bool at_is_utf8(const char *text)
{
    const size_t size = strlen(text);
    return at_utf8_length(text, size) == size;
}

char *at_shown(const char *name, char *out, size_t size)
{
    static const char ellipsis[] = "\xe2\x80\xa6";
    const utf8proc_uint8_t *from = (const utf8proc_uint8_t *)name;
    size_t used = 0, cut = 0; /* cut: the last position where an ellipsis still fits */
    while (*from != '\0') {
        utf8proc_int32_t point;
        utf8proc_ssize_t step = utf8proc_iterate(from, -1, &point);
        char piece[8];
        int length = (int)step;
        if (step < 1 || utf8proc_category(point) == UTF8PROC_CATEGORY_CC) {
            length = snprintf(piece, sizeof piece, "\\x%02x", *from);
            step = 1;
        } else {
            memcpy(piece, from, (size_t)length);
        }
        if (used + sizeof ellipsis <= size)
            cut = used;
        if (used + (size_t)length >= size) {
            used = cut;
            if (used + sizeof ellipsis <= size) {
                memcpy(out + used, ellipsis, sizeof ellipsis - 1);
                used += sizeof ellipsis - 1;
            }
            break;
        }
        memcpy(out + used, piece, (size_t)length);
        used += (size_t)length;
        from += step;
    }
    if (size > 0)
        out[used] = '\0';
    return out;
}
