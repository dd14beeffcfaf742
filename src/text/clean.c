#include "text/clean.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/grow.h"
#include "text/units.h"

const char *const at_form_names[4] = {"none", "nfc", "nfkc", NULL};

enum { MOST_POINTS = 512 }; /* of a character with its marks, decomposed; longer sequences of marks are split */

/* Bytes of the line that become one part of the text. */
typedef struct span {
    int32_t begin, end;
} span;

static bool add(at_clean *clean, const char *bytes, size_t size, span from)
{
    size_t start = clean->text.size;
    at_buffer_add(&clean->text, bytes, size);
    if (clean->text.failed)
        return false;
    if (!AT_GROW(clean->origin, clean->room, 2 * clean->text.size))
        return false;
    for (size_t i = start; i < clean->text.size; i++) {
        clean->origin[2 * i] = from.begin;
        clean->origin[2 * i + 1] = from.end;
    }
    return true;
}

/* The decomposition of a code point, in lower case if set; returns its length. */
static int decompose(at_cleaning cleaning, int32_t point, utf8proc_int32_t *points, int room)
{
    int boundary = UTF8PROC_BOUNDCLASS_START, count = 1;
    int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (cleaning.form == AT_FORM_NFKC ? UTF8PROC_COMPAT : 0);
    points[0] = point;
    if (cleaning.form != AT_FORM_NONE)
        count = (int)utf8proc_decompose_char(point, points, room, (utf8proc_option_t)options, &boundary);
    for (int i = 0; cleaning.lowercase && i < count && i < room; i++)
        points[i] = utf8proc_tolower(points[i]);
    return count;
}

/* Whether a code point, the first of a decomposition, may combine with the one before it: marks do, and the vowels and
 * finals of Hangul that are written as single jamo. */
static bool joins(at_cleaning cleaning, int32_t first)
{
    utf8proc_category_t category = utf8proc_category(first);
    bool mark =
        category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ME;
    bool jamo = (first >= 0x1160 && first <= 0x11FF) || (first >= 0xD7B0 && first <= 0xD7FF);
    return cleaning.form != AT_FORM_NONE && (mark || jamo);
}

/* Canonical order, composition, UTF-8. */
static bool add_points(at_clean *clean, at_cleaning cleaning, utf8proc_int32_t *points, int count, span from)
{
    if (cleaning.form != AT_FORM_NONE) {
        for (int i = 1; i < count; i++) /* marks sorted by their classes, stably */
            for (int j = i; j > 0; j--) {
                int left = utf8proc_get_property(points[j - 1])->combining_class;
                int right = utf8proc_get_property(points[j])->combining_class;
                if (right == 0 || left <= right)
                    break;
                utf8proc_int32_t moved = points[j];
                points[j] = points[j - 1];
                points[j - 1] = moved;
            }
        count = (int)utf8proc_normalize_utf32(points, count, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    }
    for (int i = 0; i < count; i++) {
        char bytes[4];
        if (!add(clean, bytes, at_point_write(points[i], bytes), from))
            return false;
    }
    return true;
}

/* ASCII followed by ASCII is its own normal form; this is the common case. */
static bool add_ascii(at_clean *clean, at_cleaning cleaning, const char *line, size_t at, size_t size, bool *taken)
{
    unsigned char byte = (unsigned char)line[at];
    bool last = at + 1 == size || (unsigned char)line[at + 1] < 0x80;
    *taken = byte < 0x80 && byte != '\0' && byte != '\n' && (last || cleaning.form == AT_FORM_NONE);
    if (!*taken)
        return true;
    char lower = (char)(cleaning.lowercase && byte >= 'A' && byte <= 'Z' ? byte + 'a' - 'A' : byte);
    return add(clean, &lower, 1, (span){(int32_t)at, (int32_t)at + 1});
}

/* ---- Tokens --------------------------------------------------------------------------------------------------- */

/* Adds tokens to `to` from the text of `from`. */
typedef struct token_job {
    at_clean to;
    const at_clean *from;
    span last; /* the bytes of the line that the last byte came from */
} token_job;

static span origin_of(const at_clean *clean, size_t byte)
{
    return (span){clean->origin[2 * byte], clean->origin[2 * byte + 1]};
}

static bool add_token(void *context, const at_token *token)
{
    token_job *j = context;
    const span first = origin_of(j->from, token->begin);
    const int marks = token->literal + token->marked; /* the literal's own character is one of its two */
    if ((token->marks_before && !add(&j->to, AT_MARK, AT_MARK_SIZE, j->last)) ||
        (j->to.text.size > 0 && !add(&j->to, " ", 1, first)))
        return false;
    for (int i = 0; i < marks; i++)
        if (!add(&j->to, AT_MARK, AT_MARK_SIZE, first))
            return false;
    for (size_t at = token->begin; at < token->end; at++)
        if (!add(&j->to, j->from->text.bytes + at, 1, origin_of(j->from, at)))
            return false;
    j->last = origin_of(j->from, token->end - 1);
    return true;
}

static bool cut_tokens(at_clean *clean)
{
    token_job j = {.from = clean, .to.replaced = clean->replaced};
    at_buffer_add(&j.to.text, "", 0);
    const bool done = at_tokens_cut(clean->text.bytes, clean->text.size, add_token, &j) && !j.to.text.failed;
    if (!done) {
        at_clean_free(&j.to);
        return false;
    }
    at_clean_free(clean);
    *clean = j.to;
    return true;
}

bool at_clean_line(at_clean *clean, at_cleaning cleaning, const char *line, size_t size)
{
    utf8proc_int32_t points[MOST_POINTS];
    clean->text.size = 0;
    clean->replaced = 0;
    at_buffer_add(&clean->text, "", 0);
    for (size_t at = 0; at < size;) {
        bool taken;
        if (!add_ascii(clean, cleaning, line, at, size, &taken))
            return false;
        if (taken) {
            at++;
            continue;
        }
        span from = {(int32_t)at, (int32_t)at};
        int count = 0;
        do { /* one code point, then those that join it */
            utf8proc_int32_t one[32];
            int32_t point;
            bool broken;
            size_t length = at_point_read(line + at, size - at, &point, &broken);
            int more = decompose(cleaning, point, one, 32);
            if (more < 1 || more > 32) { /* no code point has so many */
                one[0] = point;
                more = 1;
            }
            if (count > 0 && (!joins(cleaning, one[0]) || count + more > MOST_POINTS))
                break;
            memcpy(points + count, one, (size_t)more * sizeof *one);
            count += more;
            clean->replaced += broken;
            at += length;
        } while (at < size);
        from.end = (int32_t)at;
        if (!add_points(clean, cleaning, points, count, from))
            return false;
    }
    return !clean->text.failed && (cleaning.tokens == AT_TOKENS_NONE || cut_tokens(clean));
}

void at_clean_free(at_clean *clean)
{
    at_buffer_free(&clean->text);
    free(clean->origin);
    *clean = (at_clean){0};
}
