#include "text/units.h"

#include <utf8proc.h>

/* The lowest and highest second byte that may follow a lead byte; what lies outside would be an overlong form, a
 * surrogate, or beyond U+10FFFF. */
static void second_byte(unsigned char lead, unsigned char *low, unsigned char *high)
{
    *low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    *high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
}

/* How many bytes of an invalid sequence belong together: the lead byte and those that could have followed it. One
 * replacement stands for them, as the Unicode standard recommends. */
static size_t broken_length(const unsigned char *text, size_t size)
{
    unsigned char lead = text[0], low, high;
    size_t full = lead < 0xC2 || lead > 0xF4 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    size_t length = 1;
    second_byte(lead, &low, &high);
    while (length < full && length < size && text[length] >= low && text[length] <= high) {
        length++;
        low = 0x80;
        high = 0xBF;
    }
    return length;
}

size_t at_point_read(const char *text, size_t size, int32_t *point, bool *broken)
{
    const unsigned char *bytes = (const unsigned char *)text;
    *broken = false;
    if (bytes[0] < 0x80) {
        *point = bytes[0];
        *broken = bytes[0] == '\0' || bytes[0] == '\n';
        if (*broken)
            *point = AT_REPLACEMENT;
        return 1;
    }
    utf8proc_int32_t found;
    utf8proc_ssize_t length = utf8proc_iterate(bytes, size < 4 ? (utf8proc_ssize_t)size : 4, &found);
    if (length > 0) {
        *point = found;
        return (size_t)length;
    }
    *point = AT_REPLACEMENT;
    *broken = true;
    return broken_length(bytes, size);
}

size_t at_point_write(int32_t point, char bytes[4])
{
    return (size_t)utf8proc_encode_char(point, (utf8proc_uint8_t *)bytes);
}

bool at_is_white(int32_t point)
{
    if (point < 0x80)
        return point == ' ' || (point >= '\t' && point <= '\r');
    utf8proc_category_t category = utf8proc_category(point);
    return point == 0x85 || category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
           category == UTF8PROC_CATEGORY_ZP;
}

bool at_units_next(at_units *units, at_unit *unit)
{
    *unit = (at_unit){.text = units->at};
    while (units->at < units->end) {
        int32_t point;
        bool broken;
        size_t length = at_point_read(units->at, (size_t)(units->end - units->at), &point, &broken);
        bool white = units->words && (*units->at == '\n' || at_is_white(point));
        if (white && unit->size > 0)
            break;
        units->at += length;
        if (white) {
            unit->text = units->at;
            continue;
        }
        unit->size += length;
        unit->broken += broken;
        if (!units->words)
            break;
    }
    return unit->size > 0;
}

int64_t at_word_numbers(at_line line, const int32_t *offsets, int64_t units, int64_t *words)
{
    at_units reader = {line.text, line.text + line.size, true};
    at_unit word = {0};
    int64_t count = 0;
    bool there = at_units_next(&reader, &word);
    for (int64_t u = 0; u < units; u++) {
        const char *begin = line.text + offsets[2 * u], *end = line.text + offsets[2 * u + 1];
        /* Units are in the order of the line: the first word that does not end before the unit begins. */
        while (there && word.text + word.size <= begin) {
            there = at_units_next(&reader, &word);
            count++;
        }
        bool within = there && (word.text < end || word.text == begin);
        words[u] = within ? count : -1;
    }
    for (; there; count++)
        there = at_units_next(&reader, &word);
    return count;
}
