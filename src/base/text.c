#include "base/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { WORD = 64 }; /* longer words than any name there is are not worth comparing */

static int least(int a, int b)
{
    return a < b ? a : b;
}

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* How many single letters have to be put in, left out, changed or swapped with their neighbour to get from a to b,
 * capitals counting as small letters:
 *   d[i][j] = min(d[i-1][j] + 1, d[i][j-1] + 1, d[i-1][j-1] + (a_i != b_j), d[i-2][j-2] + 1 if swapped) */
static int distance(const char *a, const char *b)
{
    int n = (int)strlen(a), m = (int)strlen(b);
    int rows[3][WORD + 1];
    int *before = rows[0], *last = rows[1], *now = rows[2];
    for (int j = 0; j <= m; j++)
        now[j] = j;
    for (int i = 1; i <= n; i++) {
        int *free_row = before;
        before = last;
        last = now;
        now = free_row;
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            bool equal = same(a[i - 1], b[j - 1]);
            now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + !equal);
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                now[j] = least(now[j], before[j - 2] + 1);
        }
    }
    return now[m];
}

/* The distance if the name is near enough to be meant: within a third of the longer word, and never all of it. */
static int near(const char *word, const char *name)
{
    size_t n = strlen(word), m = strlen(name);
    size_t longer = n > m ? n : m;
    if (longer > WORD)
        return -1;
    int most = longer < 3 ? 1 : (int)(longer / 3);
    int d = distance(word, name);
    return d <= most && d < (int)longer ? d : -1;
}

static bool seen_before(const char *const *names, int index)
{
    for (int i = 0; i < index; i++)
        if (strcmp(names[i], names[index]) == 0)
            return true;
    return false;
}

/* Fits in whole or is cut; gives what snprintf gives for the whole. */
static size_t put(char *out, size_t size, size_t used, const char *before, const char *name, const char *after)
{
    size_t start = used < size ? used : size;
    return used + (size_t)snprintf(out + start, size - start, "%s%s%s", before, name, after);
}

void at_nearest(const char *word, const char *const *names, int count, char *out, size_t size)
{
    if (size == 0)
        return;
    out[0] = '\0';
    int best = -1, ties = 0;
    for (int i = 0; i < count; i++) {
        int d = near(word, names[i]);
        if (d < 0 || (best >= 0 && d > best) || seen_before(names, i))
            continue;
        ties = d == best ? ties + 1 : 1;
        best = d;
    }
    size_t used = 0;
    int named = 0;
    for (int i = 0; i < count && named < ties; i++) {
        if (near(word, names[i]) != best || seen_before(names, i))
            continue;
        const char *before = named == 0 ? "; did you mean '" : named == ties - 1 ? " or '" : ", '";
        used = put(out, size, used, before, names[i], ++named == ties ? "'?" : "'");
    }
    if (used >= size)
        out[0] = '\0';
}

uint64_t at_hash_text(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    return hash;
}

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
    size_t used = 0, cut = 0; /* cut: where an ellipsis still fits behind what is there */
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

/* Room for `more` bytes and a closing NUL, which is always kept. */
static bool grow(at_buffer *buffer, size_t more)
{
    if (buffer->failed)
        return false;
    size_t need = buffer->size + more + 1;
    if (need <= buffer->size) {
        buffer->failed = true;
        return false;
    }
    if (need <= buffer->room)
        return true;
    size_t room = buffer->room < SIZE_MAX / 2 && need < buffer->room * 2 ? buffer->room * 2 : need;
    char *bytes = realloc(buffer->bytes, room < 64 ? 64 : room);
    if (bytes == NULL) {
        buffer->failed = true;
        return false;
    }
    buffer->bytes = bytes;
    buffer->room = room < 64 ? 64 : room;
    return true;
}

void at_buffer_add(at_buffer *buffer, const void *bytes, size_t size)
{
    if (!grow(buffer, size))
        return;
    if (size > 0)
        memcpy(buffer->bytes + buffer->size, bytes, size);
    buffer->size += size;
    buffer->bytes[buffer->size] = '\0';
}

void at_buffer_print(at_buffer *buffer, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (length < 0) {
        buffer->failed = true;
        return;
    }
    if (!grow(buffer, (size_t)length))
        return;
    va_start(list, format);
    vsnprintf(buffer->bytes + buffer->size, (size_t)length + 1, format, list);
    va_end(list);
    buffer->size += (size_t)length;
}

void at_buffer_cut(at_buffer *buffer, size_t size)
{
    if (buffer->failed || size >= buffer->size)
        return;
    buffer->size = size;
    buffer->bytes[size] = '\0';
}

void at_buffer_free(at_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (at_buffer){0};
}
