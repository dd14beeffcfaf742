/* The text of HTML: what stands between tags. Tags, comments, scripts and style sheets are not translated. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "serve/serve_internal.h"

/* ---- Tags ------------------------------------------------------------------------------------------------------- */

static bool starts(const char *at, const char *end, const char *text)
{
    const size_t size = strlen(text);
    return (size_t)(end - at) >= size && strncasecmp(at, text, size) == 0;
}

/* A letter, / ! or ? follows the < of a tag; any other < is text. */
static bool is_tag(const char *at, const char *end)
{
    return end - at > 1 && at[0] == '<' && (((at[1] | 32) >= 'a' && (at[1] | 32) <= 'z') || strchr("/!?", at[1]));
}

/* Behind `text`, or the end if it is not there. */
static const char *after(const char *at, const char *end, const char *text)
{
    for (; at < end; at++)
        if (starts(at, end, text))
            return at + strlen(text);
    return end;
}

/* Behind the > of a tag; one between quotes does not count. */
static const char *after_tag(const char *at, const char *end)
{
    char quote = 0;
    for (; at < end; at++)
        if (quote)
            quote = *at == quote ? 0 : quote;
        else if (*at == '"' || *at == '\'')
            quote = *at;
        else if (*at == '>')
            return at + 1;
    return end;
}

/* Behind a tag, a comment, or an element whose content is no text. */
static const char *after_markup(const char *at, const char *end)
{
    static const char *const raw[][2] = {{"<script", "</script"}, {"<style", "</style"}};
    if (starts(at, end, "<!--"))
        return after(at + 4, end, "-->");
    for (size_t i = 0; i < sizeof raw / sizeof *raw; i++)
        if (starts(at, end, raw[i][0]))
            return after_tag(after(after_tag(at, end), end, raw[i][1]), end);
    return after_tag(at, end);
}

bool at_html_next(at_line text, size_t *from, at_line *node)
{
    const char *at = text.text + *from, *const end = text.text + text.size;
    while (is_tag(at, end))
        at = after_markup(at, end);
    const char *stop = at;
    while (stop < end && !is_tag(stop, end))
        stop++;
    *node = (at_line){at, (size_t)(stop - at)};
    *from = (size_t)(stop - text.text);
    return node->size > 0;
}

/* ---- Characters by name ----------------------------------------------------------------------------------------- */

/* Those of Latin-1, from U+00A0 on. */
static const char latin[] =
    "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute "
    "micro para "
    "middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil "
    "Egrave Eacute "
    "Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc "
    "Uuml "
    "Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute "
    "icirc iuml "
    "eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml ";
static const struct {
    const char *name;
    uint32_t character;
} others[] = {{"amp", '&'},      {"lt", '<'},       {"gt", '>'},       {"quot", '"'},      {"apos", '\''},
              {"ndash", 0x2013}, {"mdash", 0x2014}, {"lsquo", 0x2018}, {"rsquo", 0x2019},  {"sbquo", 0x201A},
              {"ldquo", 0x201C}, {"rdquo", 0x201D}, {"bdquo", 0x201E}, {"hellip", 0x2026}, {"euro", 0x20AC}};

/* 0: there is none of that name. */
static uint32_t named(const char *name, size_t size)
{
    uint32_t character = 0xA0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strlen(others[i].name) == size && memcmp(others[i].name, name, size) == 0)
            return others[i].character;
    for (const char *at = latin; *at; character++) {
        const size_t length = strcspn(at, " ");
        if (length == size && memcmp(at, name, size) == 0)
            return character;
        at += length + 1;
    }
    return 0;
}

/* "#228", "#xe4", "auml" */
static uint32_t character_of(const char *name, size_t size)
{
    char digits[10], *end;
    if (size < 2 || name[0] != '#' || size > sizeof digits)
        return named(name, size);
    const bool hexadecimal = (name[1] | 32) == 'x';
    const size_t skipped = hexadecimal ? 2 : 1;
    memcpy(digits, name + skipped, size - skipped);
    digits[size - skipped] = 0;
    if (strspn(digits, hexadecimal ? "0123456789abcdefABCDEF" : "0123456789") != size - skipped || size == skipped)
        return 0;
    const unsigned long number = strtoul(digits, &end, hexadecimal ? 16 : 10);
    return number < 32 || number > 0x10FFFF || (number >= 0xD800 && number < 0xE000) ? 0 : (uint32_t)number;
}

static size_t put(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    out[0] = (char)((0xF0 << (3 - more)) | c >> 6 * more);
    for (int i = 1; i <= more; i++)
        out[i] = (char)(0x80 | (c >> 6 * (more - i) & 0x3F));
    return (size_t)more + 1;
}

size_t at_html_decode(at_line text, char *out)
{
    enum { LONGEST = 10 };
    size_t size = 0;
    for (size_t at = 0; at < text.size;) {
        const size_t left = text.size - at - 1, most = left < LONGEST ? left : LONGEST;
        const char *name = text.text + at + 1;
        const char *stop = text.text[at] == '&' ? memchr(name, ';', most) : NULL;
        const uint32_t c = stop ? character_of(name, (size_t)(stop - name)) : 0;
        if (c) {
            size += put(out + size, c);
            at += (size_t)(stop - name) + 2;
        } else {
            out[size++] = text.text[at++];
        }
    }
    return size;
}

void at_html_encode(const char *text, at_buffer *out)
{
    for (size_t size; *text; text += size) {
        size = strcspn(text, "&<>");
        at_buffer_add(out, text, size);
        const char *name = text[size] == '&' ? "&amp;" : text[size] == '<' ? "&lt;" : text[size] == '>' ? "&gt;" : "";
        at_buffer_add(out, name, strlen(name));
        size += text[size] != 0;
    }
}
