#include "text/tokens.h"

#include <string.h>
#include <strings.h>
#include <utf8proc.h>

#include "text/units.h"

const char *const at_tokens_names[3] = {"none", "moses-like", NULL};

/* ---- Characters ----------------------------------------------------------------------------------------------- */

/* What a character does in a word. */
typedef enum place { SPACE, LETTER, DIGIT, ALONE, EXTENDS, SIGN } place;

/* Chinese characters and kana. */
static bool stands_alone(int32_t c)
{
    return (c >= 0x3040 && c <= 0x30FF) || (c >= 0x31F0 && c <= 0x31FF) || (c >= 0x3400 && c <= 0x4DBF) ||
           (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x20000 && c <= 0x3FFFF);
}

static place place_of(int32_t c)
{
    if (at_is_white(c))
        return SPACE;
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_PC: /* the underscore */
        return stands_alone(c) ? ALONE : LETTER;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return DIGIT;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
        return EXTENDS;
    default:
        return SIGN;
    }
}

bool at_in_word(int32_t point)
{
    const place at = place_of(point);
    return at == LETTER || at == DIGIT || at == EXTENDS;
}

static bool is_apostrophe(int32_t c)
{
    return c == '\'' || c == 0x2019;
}

/* The character at `at`; 0 with no length at the end of the text. */
typedef struct character {
    int32_t point;
    size_t length;
    place place;
} character;

static character read_character(const char *text, size_t at, size_t end)
{
    character c = {0, 0, SPACE};
    bool broken;
    if (at >= end)
        return c;
    c.length = at_point_read(text + at, end - at, &c.point, &broken);
    c.place = place_of(c.point);
    return c;
}

static bool in_word(place p)
{
    return p == LETTER || p == DIGIT || p == EXTENDS;
}

/* ---- One token ------------------------------------------------------------------------------------------------ */

/* What a token is; it decides on which side of a seam the mark stands. */
typedef enum token_kind { WORD, BEFORE_WORD, AFTER_WORD, PUNCTUATION, LITERAL } token_kind;

typedef struct cutter {
    const char *text;
    size_t end;
    token_kind kind; /* of the last token */
} cutter;

/* Where the combining marks after `at` end. */
static size_t skip_marks(const cutter *c, size_t at)
{
    for (;;) {
        const character next = read_character(c->text, at, c->end);
        if (next.length == 0 || next.place != EXTENDS)
            return at;
        at += next.length;
    }
}

/* An apostrophe at `at`, then one or two letters that end the word: where these end; 0: there are none. */
static size_t short_ending(const cutter *c, size_t at)
{
    character next = read_character(c->text, at, c->end);
    if (!is_apostrophe(next.point))
        return 0;
    size_t end = skip_marks(c, at + next.length);
    for (int letters = 0;; letters++) {
        next = read_character(c->text, end, c->end);
        if (next.place != LETTER)
            return letters > 0 && !in_word(next.place) && !is_apostrophe(next.point) ? end : 0;
        if (letters == 2)
            return 0;
        end = skip_marks(c, end + next.length);
    }
}

/* Whether a sign between two characters of a word belongs to it. */
static bool connects(int32_t sign, place before, place after)
{
    const bool digits = before == DIGIT && after == DIGIT;
    const bool within = (before == LETTER || before == DIGIT) && (after == LETTER || after == DIGIT);
    switch (sign) {
    case '.':
    case '-':
    case '@':
    case 0x2010: /* hyphens */
    case 0x2011:
        return within;
    case ',':
    case ':':
    case '/':
        return digits;
    default:
        return false;
    }
}

/* Letters and digits, and the signs that connect them. */
static size_t word_end(cutter *c, size_t at)
{
    place last = SIGN;
    c->kind = WORD;
    for (;;) {
        const character here = read_character(c->text, at, c->end);
        const character next = read_character(c->text, at + here.length, c->end);
        if (here.length > 0 && in_word(here.place)) {
            last = here.place == EXTENDS ? last : here.place;
            at += here.length;
        } else if (here.length > 0 && connects(here.point, last, next.place)) {
            at += here.length;
        } else if (is_apostrophe(here.point) && last == LETTER && next.place == LETTER && !short_ending(c, at)) {
            c->kind = BEFORE_WORD; /* l' */
            return at + here.length;
        } else {
            return at;
        }
    }
}

/* The end of an address that begins at `at`, without the punctuation after it; 0: none does. */
static size_t address_end(const cutter *c, size_t at)
{
    static const char *const starts[] = {"http://", "https://", "ftp://", "www."};
    size_t length = 0;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        const size_t size = strlen(starts[i]);
        if (c->end - at > size && strncasecmp(c->text + at, starts[i], size) == 0)
            length = size;
    }
    if (length == 0)
        return 0;
    size_t end = at + length;
    while (end < c->end && c->text[end] > ' ' && c->text[end] < 0x7F && !strchr("<>\"", c->text[end]))
        end++;
    while (end > at + length && strchr(".,;:!?'()[]{}", c->text[end - 1]))
        end--;
    return end > at + length ? end : 0;
}

/* The end of the token at `at`, which is not white. `joined`: it follows the token before without a blank. */
static size_t token_end(cutter *c, size_t at, bool joined)
{
    const character first = read_character(c->text, at, c->end);
    const bool after_word = joined && c->kind == WORD;
    const size_t address = joined && c->kind != PUNCTUATION ? 0 : address_end(c, at);
    const size_t ending = after_word ? short_ending(c, at) : 0;
    if (first.point == AT_MARK_POINT) {
        c->kind = LITERAL;
        return at + first.length;
    }
    if (ending > 0) {
        c->kind = AFTER_WORD;
        return ending;
    }
    if (address > 0) {
        c->kind = WORD;
        return address;
    }
    if (in_word(first.place))
        return word_end(c, at);
    c->kind = first.place == ALONE ? WORD : PUNCTUATION;
    size_t end = skip_marks(c, at + first.length);
    for (;;) { /* ... */
        const character next = read_character(c->text, end, c->end);
        if (first.place == ALONE || next.length == 0 || next.point != first.point)
            return end;
        end = skip_marks(c, end + next.length);
    }
}

bool at_tokens_cut(const char *line, size_t size, at_take_token *take, void *context)
{
    cutter c = {line, size, WORD};
    bool joined = false;
    for (size_t at = 0; at < size;) {
        const character here = read_character(line, at, size);
        if (here.place == SPACE) {
            at += here.length;
            joined = false;
            continue;
        }
        const token_kind before = c.kind;
        at_token token = {.begin = at, .end = token_end(&c, at, joined), .literal = here.point == AT_MARK_POINT};
        const bool takes = before == LITERAL || c.kind == PUNCTUATION || c.kind == AFTER_WORD || c.kind == LITERAL ||
                           !(before == PUNCTUATION || before == BEFORE_WORD);
        token.marked = joined && takes;
        token.marks_before = joined && !takes;
        if (!take(context, &token))
            return false;
        at = token.end;
        joined = true;
    }
    return true;
}

/* ---- Joining -------------------------------------------------------------------------------------------------- */

static bool is_mark(const char *at, const char *end)
{
    return end - at >= AT_MARK_SIZE && memcmp(at, AT_MARK, AT_MARK_SIZE) == 0;
}

/* The result is never longer than the tokens, so it replaces them where they stand. */
void at_tokens_join(at_buffer *text, size_t start)
{
    if (text->failed || text->size == start)
        return;
    char *to = text->bytes + start;
    const char *at = to, *end = text->bytes + text->size;
    bool glue = true; /* at the beginning of the line */
    while (at < end) {
        const char *blank = memchr(at, ' ', (size_t)(end - at)), *stop = blank ? blank : end;
        const char *begin = at;
        int marks = 0;
        while (is_mark(begin, stop)) {
            begin += AT_MARK_SIZE;
            marks++;
        }
        const bool only_marks = begin == stop;
        const bool ends_in_mark = !only_marks && stop - begin >= AT_MARK_SIZE && is_mark(stop - AT_MARK_SIZE, stop);
        const bool literal = only_marks && marks >= 2;
        if (!glue && marks != 1 && !(literal && marks > 2) && at < stop)
            *to++ = ' ';
        const char *body = literal ? begin - AT_MARK_SIZE : begin,
                   *body_end = ends_in_mark ? stop - AT_MARK_SIZE : stop;
        memmove(to, body, (size_t)(body_end - body));
        to += body_end - body;
        glue = ends_in_mark || (only_marks && marks == 1);
        at = blank ? blank + 1 : end;
    }
    at_buffer_cut(text, (size_t)(to - text->bytes));
}
