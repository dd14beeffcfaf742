#include "draw/label_internal.h"

#include <string.h>
#include <utf8proc.h>

#define ELLIPSIS "\xe2\x80\xa6"

/* The next character of a name and the columns it takes. */
typedef struct glyph {
    const char *bytes;
    int length, width;
    int step; /* bytes of the name that it shows */
} glyph;

static bool is_printable(utf8proc_int32_t point)
{
    bool is_direction_mark = point == 0x061c || point == 0x200e || point == 0x200f ||
                             (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
    utf8proc_category_t category = utf8proc_category(point);
    return !is_direction_mark && category != UTF8PROC_CATEGORY_CC && category != UTF8PROC_CATEGORY_ZL &&
           category != UTF8PROC_CATEGORY_ZP;
}

static glyph next(const char *at)
{
    utf8proc_int32_t point;
    int step = (int)utf8proc_iterate((const utf8proc_uint8_t *)at, -1, &point);
    if (step < 1 || !is_printable(point))
        return (glyph){"\xef\xbf\xbd", 3, 1, step < 1 ? 1 : step};
    return (glyph){at, step, utf8proc_charwidth(point), step};
}

/* Where to cut: at the end if the name fits, else where a column is left for the ellipsis. Accents that take no column
 * stay with their letter. */
static const char *fit(const char *name, int most, int *width)
{
    const char *cut = name;
    int cut_width = 0;
    *width = 0;
    for (const char *at = name; *at != '\0';) {
        glyph g = next(at);
        if (*width + g.width > most) {
            *width = cut_width;
            return cut;
        }
        *width += g.width;
        at += g.step;
        if (*width <= most - 1) {
            cut = at;
            cut_width = *width;
        }
    }
    return name + strlen(name);
}

int at_label_width(const char *name, int most)
{
    int width;
    const char *end = fit(name, most, &width);
    return width + (*end != '\0');
}

/* What stands for a character in markup; NULL: the character itself. */
static const char *escaped(glyph g)
{
    if (g.length == 1)
        return *g.bytes == '&'   ? "&amp;"
               : *g.bytes == '<' ? "&lt;"
               : *g.bytes == '>' ? "&gt;"
               : *g.bytes == '"' ? "&quot;"
                                 : NULL;
    const bool is_excluded =
        g.length == 3 && (memcmp(g.bytes, "\xef\xbf\xbe", 3) == 0 || memcmp(g.bytes, "\xef\xbf\xbf", 3) == 0);
    return is_excluded ? "\xef\xbf\xbd" : NULL; /* U+FFFE and U+FFFF are no characters of XML */
}

static int add(at_buffer *text, const char *name, int most, bool is_markup)
{
    int width;
    const char *end = fit(name, most, &width);
    for (const char *at = name; at < end;) {
        glyph g = next(at);
        const char *other = is_markup ? escaped(g) : NULL;
        at_buffer_add(text, other ? other : g.bytes, other ? strlen(other) : (size_t)g.length);
        at += g.step;
    }
    if (*end == '\0')
        return width;
    at_buffer_print(text, ELLIPSIS);
    return width + 1;
}

int at_label_add(at_buffer *text, const char *name, int most)
{
    return add(text, name, most, false);
}

int at_label_add_markup(at_buffer *text, const char *name, int most)
{
    return add(text, name, most, true);
}

int at_label_letters(const char *name, int most)
{
    int letters = 0;
    for (const char *at = name; *at != '\0';) {
        glyph g = next(at);
        letters += g.width > 0;
        at += g.step;
    }
    return letters < most ? letters : most;
}

int at_label_add_letter(at_buffer *text, const char *name, int index, int most)
{
    int letter = -1, width = 0;
    if (index == most - 1 && at_label_letters(name, most + 1) > most) {
        at_buffer_print(text, ELLIPSIS);
        return 1;
    }
    for (const char *at = name; *at != '\0' && letter <= index;) {
        glyph g = next(at);
        letter += g.width > 0;
        if (letter == index || (letter < 0 && index == 0)) { /* an accent before the first letter stays with it */
            at_buffer_add(text, g.bytes, (size_t)g.length);
            width += g.width;
        }
        at += g.step;
    }
    return width;
}
