#include "base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

bool at_is_utf8(const char *text)
{
    const utf8proc_uint8_t *from = (const utf8proc_uint8_t *)text;
    while (*from != '\0') {
        utf8proc_int32_t point;
        utf8proc_ssize_t step = utf8proc_iterate(from, -1, &point);
        if (step < 1)
            return false;
        from += step;
    }
    return true;
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
