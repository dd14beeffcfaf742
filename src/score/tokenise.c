#include "score/tokenise_internal.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/grow.h"
#include "text/units.h"

/* ---- Characters ----------------------------------------------------------------------------------------------- */

bool at_is_blank(int32_t point)
{
    if (point < 0x80)
        return point == ' ' || (point >= '\t' && point <= '\r') || (point >= 0x1C && point <= 0x1F);
    return point == 0x85 || point == 0xA0 || point == 0x1680 || (point >= 0x2000 && point <= 0x200A) ||
           point == 0x2028 || point == 0x2029 || point == 0x202F || point == 0x205F || point == 0x3000;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Properties of Unicode (approximated by categories) that decide whether a sigma is final. */
static bool is_cased(int32_t point)
{
    utf8proc_category_t category = utf8proc_category(point);
    return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT;
}

static bool is_case_ignorable(int32_t point)
{
    static const int32_t within_words[] = {'\'',   '.',    ':',    0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                           0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
    for (size_t i = 0; i < sizeof within_words / sizeof *within_words; i++)
        if (point == within_words[i])
            return true;
    switch (utf8proc_category(point)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
        return true;
    default:
        return false;
    }
}

static int32_t point_at(at_line line, size_t at, size_t *length)
{
    int32_t point;
    bool broken;
    *length = at_point_read(line.text + at, line.size - at, &point, &broken);
    return point;
}

/* Whether the capital sigma at `at` ends a word: a cased letter precedes it and none follows, ignoring case-ignorable
 * characters (Unicode's Final_Sigma). */
static bool is_final_sigma(at_line line, size_t at)
{
    size_t length, back = at;
    int32_t point = 0;
    do {
        if (back == 0)
            return false;
        do
            back--;
        while (back > 0 && ((unsigned char)line.text[back] & 0xC0) == 0x80);
        point = point_at(line, back, &length);
    } while (is_case_ignorable(point));
    if (!is_cased(point))
        return false;
    for (at += 2; at < line.size; at += length) {
        point = point_at(line, at, &length);
        if (!is_case_ignorable(point))
            return !is_cased(point);
    }
    return true;
}

bool at_line_is_clean(at_line line)
{
    for (size_t at = 0; at < line.size;) {
        unsigned char byte = (unsigned char)line.text[at];
        if (byte == '\0' || byte == '\n')
            return false;
        if (byte < 0x80) {
            at++;
            continue;
        }
        int32_t point;
        bool broken;
        at += at_point_read(line.text + at, line.size - at, &point, &broken);
        if (broken)
            return false;
    }
    return true;
}

size_t at_line_clean(at_line line, bool lower, char *out)
{
    enum { DOTTED_I = 0x130, DOT = 0x307, SIGMA = 0x3A3, SMALL_SIGMA = 0x3C3, FINAL_SIGMA = 0x3C2 };
    size_t used = 0;
    for (size_t at = 0, length; at < line.size; at += length) {
        int32_t point = point_at(line, at, &length);
        if (line.text[at] == '\n')
            point = ' ';
        if (lower && point < 0x80)
            point += point >= 'A' && point <= 'Z' ? 'a' - 'A' : 0;
        else if (lower && point == DOTTED_I) /* the only letter that becomes two code points */
            out[used++] = 'i', point = DOT;
        else if (lower && point == SIGMA)
            point = is_final_sigma(line, at) ? FINAL_SIGMA : SMALL_SIGMA;
        else if (lower)
            point = utf8proc_tolower(point);
        if (point < 0x80)
            out[used++] = (char)point;
        else
            used += at_point_write(point, out + used);
    }
    return used;
}

/* ---- Rules ---------------------------------------------------------------------------------------------------- */

/* A rule reads bytes and writes others; `out` is large enough. Returns how many it wrote. Multi-byte characters are never
 * split, as the rules insert blanks only beside ASCII characters. */

static bool is_symbol(char c)
{
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= '!' && c <= '&') || (c >= '(' && c <= '+') ||
           (c >= ':' && c <= '@') || c == '/';
}

static bool is_stop(char c)
{
    return c == '.' || c == ',';
}

/* Puts blanks around every punctuation mark except . , - ' */
static size_t separate_symbols(const char *in, size_t size, char *out)
{
    char *to = out;
    for (size_t i = 0; i < size; i++) {
        bool apart = is_symbol(in[i]);
        *to = ' ';
        to += apart;
        *to++ = in[i];
        *to = ' ';
        to += apart;
    }
    return (size_t)(to - out);
}

/* Whether a rule applies to a pair of neighbours; pairs are found from the left and do not overlap. */
typedef bool pair_rule(char first, char second);

static bool stop_after_other(char first, char second)
{
    return !is_digit(first) && is_stop(second);
}

static bool stop_before_other(char first, char second)
{
    return is_stop(first) && !is_digit(second);
}

static bool dash_after_digit(char first, char second)
{
    return is_digit(first) && second == '-';
}

/* Writes "first blank second blank" for a pair, or "blank first blank second" if `before`. */
static inline size_t separate_pairs(const char *in, size_t size, char *out, pair_rule *rule, bool before)
{
    char *to = out;
    size_t i = 0;
    while (i + 1 < size) {
        if (!rule(in[i], in[i + 1])) {
            *to++ = in[i++];
            continue;
        }
        *to = ' ';
        to += before;
        *to++ = in[i++];
        *to++ = ' ';
        *to++ = in[i++];
        *to = ' ';
        to += !before;
    }
    if (i < size)
        *to++ = in[i];
    return (size_t)(to - out);
}

static size_t replace(const char *in, size_t size, char *out, const char *from, const char *with)
{
    size_t length = strlen(from), put = strlen(with), used = 0;
    while (size > 0) {
        const char *found = memmem(in, size, from, length);
        size_t before = found ? (size_t)(found - in) : size;
        memcpy(out + used, in, before);
        used += before;
        in += before;
        size -= before;
        if (found) {
            memcpy(out + used, with, put);
            used += put;
            in += length;
            size -= length;
        }
    }
    return used;
}

/* The characters that the Chinese tokeniser separates. As in sacreBLEU, U+2001 to U+2A6D stands for a range that was
 * meant to be the ideographs from U+20000 on: those are not separated, and dashes, quotation marks and arrows are. */
static bool is_chinese(int32_t point)
{
    static const int32_t range[][2] = {
        {0x2001, 0x2A6D}, {0x2E80, 0x2EFF}, {0x2F00, 0x2FDF}, {0x2FF0, 0x2FFF}, {0x3000, 0x303F}, {0x3100, 0x312F},
        {0x31A0, 0x31BF}, {0x31C0, 0x31EF}, {0x3200, 0x33FF}, {0x3400, 0x4DB5}, {0x4E00, 0x9FBB}, {0xF900, 0xFA2D},
        {0xFA30, 0xFA6A}, {0xFA70, 0xFAD9}, {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F}, {0xFF00, 0xFFEF}};
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        if (point >= range[i][0] && point <= range[i][1])
            return true;
    return false;
}

static size_t separate_ideographs(at_line line, char *out)
{
    size_t used = 0;
    for (size_t at = 0, length; at < line.size; at += length) {
        bool apart = is_chinese(point_at(line, at, &length));
        if (apart)
            out[used++] = ' ';
        memcpy(out + used, line.text + at, length);
        used += length;
        if (apart)
            out[used++] = ' ';
    }
    return used;
}

/* ---- Tokenisers ----------------------------------------------------------------------------------------------- */

void at_words_free(at_words *words)
{
    free(words->item);
    free(words->text[0]);
    free(words->text[1]);
    *words = (at_words){0};
}

/* The buffer that `present` is not, with room for `size` bytes: a rule reads from one and writes to the other. */
static char *other_text(at_words *words, const char *present, size_t size)
{
    int which = present == words->text[0];
    return AT_GROW(words->text[which], words->text_room[which], size) ? words->text[which] : NULL;
}

static bool add_word(at_words *words, const char *text, size_t size)
{
    if (!AT_GROW(words->item, words->room, (size_t)words->count + 1))
        return false;
    words->item[words->count++] = (at_line){text, size};
    return true;
}

/* Splits at white space; with `characters` also between all other characters. */
static bool split(at_words *words, at_line line, bool characters)
{
    size_t start = 0, length;
    for (size_t at = 0; at < line.size; at += length) {
        bool blank = at_is_blank(point_at(line, at, &length));
        if ((blank || characters) && at > start && !add_word(words, line.text + start, at - start))
            return false;
        if (blank || characters)
            start = blank ? at + length : at;
    }
    return start >= line.size || add_word(words, line.text + start, line.size - start);
}

/* Removes <skipped>, decodes entities, and adds a blank at each end. */
static bool unescape(at_words *words, at_line *line)
{
    static const char *const entity[][2] = {
        {"<skipped>", ""}, {"&quot;", "\""}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}};
    bool any = line->size > 0 && (memchr(line->text, '<', line->size) || memchr(line->text, '&', line->size));
    for (size_t i = 0; any && i < sizeof entity / sizeof *entity; i++) {
        char *out = other_text(words, line->text, line->size);
        if (!out)
            return false;
        *line = (at_line){out, replace(line->text, line->size, out, entity[i][0], entity[i][1])};
    }
    char *out = other_text(words, line->text, line->size + 2);
    if (!out)
        return false;
    out[0] = ' ';
    if (line->size > 0)
        memcpy(out + 1, line->text, line->size);
    out[line->size + 1] = ' ';
    *line = (at_line){out, line->size + 2};
    return true;
}

/* Strips white space at both ends: a full stop after a last digit is then part of the number. */
static at_line trimmed(at_line line)
{
    size_t length, end = 0;
    bool begun = false;
    size_t start = 0;
    for (size_t at = 0; at < line.size; at += length) {
        if (at_is_blank(point_at(line, at, &length)))
            continue;
        if (!begun)
            start = at;
        begun = true;
        end = at + length;
    }
    return (at_line){line.text + start, begun ? end - start : 0};
}

static bool western(at_words *words, at_line *line)
{
    char *out = other_text(words, line->text, 3 * line->size + 1);
    if (!out)
        return false;
    *line = (at_line){out, separate_symbols(line->text, line->size, out)};
    static pair_rule *const rules[] = {stop_after_other, stop_before_other, dash_after_digit};
    for (int i = 0; i < 3; i++) {
        if (!(out = other_text(words, line->text, 2 * line->size + 2)))
            return false;
        size_t size = i == 0   ? separate_pairs(line->text, line->size, out, rules[0], false)
                      : i == 1 ? separate_pairs(line->text, line->size, out, rules[1], true)
                               : separate_pairs(line->text, line->size, out, rules[2], false);
        *line = (at_line){out, size};
    }
    return true;
}

bool at_tokenise(at_words *words, at_tokeniser tokeniser, at_line line)
{
    words->count = 0;
    if (tokeniser == AT_TOKENISER_13A && (!unescape(words, &line) || !western(words, &line)))
        return false;
    if (tokeniser == AT_TOKENISER_ZH) {
        line = trimmed(line);
        char *out = other_text(words, line.text, 2 * line.size + 2);
        if (!out)
            return false;
        line = (at_line){out, separate_ideographs(line, out)};
        if (!western(words, &line))
            return false;
    }
    return split(words, line, tokeniser == AT_TOKENISER_CHAR);
}

/* ---- Names ---------------------------------------------------------------------------------------------------- */

static const char *const tokenisers[] = {
    [AT_TOKENISER_13A] = "13a", [AT_TOKENISER_NONE] = "none", [AT_TOKENISER_CHAR] = "char", [AT_TOKENISER_ZH] = "zh"};
enum { TOKENISERS = sizeof tokenisers / sizeof *tokenisers };

const char *at_tokeniser_name(int index)
{
    return index >= 0 && index < TOKENISERS ? tokenisers[index] : NULL;
}
