/* The pieces of HTML: text, tags that stand inside sentences, and all that ends a sentence. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/grow.h"
#include "text/html.h"

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

/* Behind the > of a tag, or NULL; one between quotes does not count. */
static const char *find_end(const char *at, const char *end)
{
    char quote = 0;
    for (; at < end; at++)
        if (quote)
            quote = *at == quote ? 0 : quote;
        else if (*at == '"' || *at == '\'')
            quote = *at;
        else if (*at == '>')
            return at + 1;
    return NULL;
}

static const char *after_tag(const char *at, const char *end)
{
    const char *found = find_end(at, end);
    return found ? found : end;
}

/* ---- Names ------------------------------------------------------------------------------------------------------ */

/* Elements that stand inside a sentence, a blank around each name; of others every tag ends the text before it. */
static const char inline_names[] = " a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark "
                                   "output q rp rt ruby s samp small "
                                   "span strike strong sub sup time tt u var ",
                  void_names[] = " br img input wbr ", untouched_names[] = " code pre ";

/* The name of a tag, with "</" before it or "<". */
static at_line name_of(at_line tag)
{
    const size_t from = tag.size > 1 && tag.text[1] == '/' ? 2 : 1;
    size_t to = from;
    while (to < tag.size && !strchr(" \t\n\f\r/>", tag.text[to]))
        to++;
    return (at_line){tag.text + from, to - from};
}

static bool is_one_of(at_line name, const char *names)
{
    char wanted[16];
    if (name.size < 1 || name.size + 3 > sizeof wanted)
        return false;
    for (size_t i = 0; i < name.size; i++)
        wanted[i + 1] = (char)(name.text[i] >= 'A' && name.text[i] <= 'Z' ? name.text[i] | 32 : name.text[i]);
    wanted[0] = wanted[name.size + 1] = ' ';
    wanted[name.size + 2] = 0;
    return strstr(names, wanted);
}

static bool same_name(at_line a, at_line b)
{
    return a.size == b.size && strncasecmp(a.text, b.text, a.size) == 0;
}

/* Whether the tag has the attribute translate="no". */
static bool says_no(at_line tag)
{
    static const char blank[] = " \t\n\f\r/";
    const at_line name = name_of(tag);
    const char *at = name.text + name.size, *const end = tag.text + tag.size;
    while (at < end) {
        while (at < end && strchr(blank, *at))
            at++;
        const char *attribute = at;
        while (at < end && *at != '=' && *at != '>' && !strchr(blank, *at))
            at++;
        const bool is_wanted = at - attribute == 9 && strncasecmp(attribute, "translate", 9) == 0;
        if (at >= end || *at != '=') {
            at += at < end && at == attribute; /* a sign that is part of no name */
            continue;
        }
        const char quote = at + 1 < end ? at[1] : 0;
        const bool quoted = quote == '"' || quote == '\'';
        const char *value = at + 1 + quoted;
        for (at = value; at < end && (quoted ? *at != quote : *at != '>' && !strchr(blank, *at));)
            at++;
        if (is_wanted)
            return at - value == 2 && strncasecmp(value, "no", 2) == 0;
        at += quoted && at < end;
    }
    return false;
}

/* ---- Pieces ----------------------------------------------------------------------------------------------------- */

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

/* By its own: the tags of every element open or close, until all are matched. */
static at_piece_kind kind_of(at_line markup)
{
    const at_line name = name_of(markup);
    const bool has_end = find_end(markup.text, markup.text + markup.size); /* else nothing may follow it */
    if (!has_end || markup.text[1] == '!' || markup.text[1] == '?' || name.size == 0 ||
        is_one_of(name, " script style "))
        return AT_PIECE_BREAK;
    if (is_one_of(name, void_names))
        return AT_PIECE_VOID;
    if (markup.text[1] == '/')
        return AT_PIECE_CLOSE;
    const bool ends_itself = markup.size > 3 && memcmp(markup.text + markup.size - 2, "/>", 2) == 0;
    return !ends_itself ? AT_PIECE_OPEN : is_one_of(name, inline_names) ? AT_PIECE_VOID : AT_PIECE_BREAK;
}

/* Cuts off the next piece, from `at` on. */
static at_piece next_piece(const char *at, const char *end)
{
    const bool markup = is_tag(at, end);
    const char *stop = markup ? after_markup(at, end) : at;
    while (!markup && stop < end && !is_tag(stop, end))
        stop++;
    at_piece piece = {.bytes = {at, (size_t)(stop - at)}, .match = -1};
    piece.kind = markup ? kind_of(piece.bytes) : AT_PIECE_TEXT;
    return piece;
}

/* A closing tag belongs to the last opening one of its name; those in between have none. Farther than 256 elements above
 * it no tag is looked for, so that the time is linear. */
static bool match(at_piece *pieces, int64_t count)
{
    enum { FARTHEST = 256 };
    int64_t *open = calloc((size_t)count + 1, sizeof *open), depth = 0;
    for (int64_t i = 0; open && i < count; i++) {
        if (pieces[i].kind == AT_PIECE_OPEN)
            open[depth++] = i;
        if (pieces[i].kind != AT_PIECE_CLOSE)
            continue;
        int64_t level = depth - 1;
        const int64_t least = depth > FARTHEST ? depth - FARTHEST : 0;
        while (level >= least && !same_name(name_of(pieces[open[level]].bytes), name_of(pieces[i].bytes)))
            level--;
        if (level < least)
            continue;
        pieces[i].match = open[level];
        pieces[open[level]].match = i;
        depth = level;
    }
    free(open);
    return open;
}

/* Elements that are not to be translated become one piece, and tags that do not stand inside sentences breaks. Returns how
 * many pieces are left. */
static int64_t join_untouched(at_piece *pieces, int64_t count)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        at_piece piece = pieces[i];
        const bool tag = piece.kind == AT_PIECE_OPEN || piece.kind == AT_PIECE_CLOSE;
        const at_line name = tag ? name_of(piece.bytes) : (at_line){"", 0};
        const bool within = is_one_of(name, inline_names);
        if (tag && !within)
            piece.kind = AT_PIECE_BREAK;
        if (tag && piece.match > i && (is_one_of(name, untouched_names) || says_no(piece.bytes))) {
            const at_line last = pieces[i = piece.match].bytes;
            piece = (at_piece){.kind = within ? AT_PIECE_VOID : AT_PIECE_BREAK,
                               .bytes = {piece.bytes.text, (size_t)(last.text + last.size - piece.bytes.text)},
                               .match = -1};
        } else if (piece.kind == AT_PIECE_OPEN && piece.match > i) {
            pieces[piece.match].match = kept;
        } else if (piece.kind == AT_PIECE_CLOSE && piece.match >= 0) {
            pieces[piece.match].match = kept; /* where the opening tag stands now */
        }
        pieces[kept++] = piece;
    }
    return kept;
}

bool at_html_split(at_line text, at_piece **pieces, int64_t *count)
{
    const char *at = text.text, *const end = text.text + text.size;
    size_t room = 0;
    *pieces = NULL;
    for (*count = 0; at < end; ++*count) {
        if (!AT_GROW(*pieces, room, (size_t)*count + 1))
            return false;
        (*pieces)[*count] = next_piece(at, end);
        at = (*pieces)[*count].bytes.text + (*pieces)[*count].bytes.size;
    }
    return true;
}

bool at_html_cut(at_line text, at_piece **pieces, int64_t *count)
{
    if (!at_html_split(text, pieces, count) || !match(*pieces, *count))
        return false;
    *count = join_untouched(*pieces, *count);
    return true;
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

void at_html_encode(at_line text, at_buffer *out)
{
    const char *at = text.text, *const end = at + text.size;
    while (at < end) {
        const char *stop = at;
        while (stop < end && *stop != '&' && *stop != '<' && *stop != '>')
            stop++;
        at_buffer_add(out, at, (size_t)(stop - at));
        if (stop < end)
            at_buffer_print(out, "%s", *stop == '&' ? "&amp;" : *stop == '<' ? "&lt;" : "&gt;");
        at = stop + 1;
    }
}
