/* The table is the trie's size in bytes (32 bits, little-endian), the trie, then texts that end in a NUL each.
 *
 * A unit of the trie is 32 bits: label in bits 0-7 with bit 31, "has a value" in bit 8, offset in bits 10-30, times
 * 256 if bit 9 is set. From a unit at index p a reader goes to base = p xor offset; the value, if there is one, is
 * there, in bits 0-30; the child for a byte b is at base xor b if its label is b. A reader tests any byte, so base
 * xor 0 .. 255 must all lie in the trie. SentencePiece keeps the values of at most 32 prefixes. */
#include "text/spm_charsmap_internal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text/units.h"

enum { MOST_VALUES = 31, LONGEST_TEXT = 256 };

enum { NEW, OPEN, DONE };

typedef struct trie {
    const unsigned char *units;
    size_t count;
    const char *texts;
    size_t text_size;
    unsigned char *state;  /* [count] NEW; OPEN: on the current path; DONE: everything below it is valid */
    unsigned char *values; /* [count] the most values on a path down from here */
} trie;

/* A unit on the current path, and the byte whose child is visited next. */
typedef struct step {
    uint32_t unit;
    uint32_t byte;
} step;

static uint32_t unit_at(const trie *t, size_t index)
{
    const unsigned char *u = t->units + 4 * index;
    return (uint32_t)u[0] | (uint32_t)u[1] << 8 | (uint32_t)u[2] << 16 | (uint32_t)u[3] << 24;
}

static size_t base_of(size_t at, uint32_t unit)
{
    return at ^ ((size_t)(unit >> 10) << ((unit & 1u << 9) >> 6));
}

/* A value is the offset of a text, which must be short valid UTF-8 and end in a NUL. */
static const char *text_fault(const trie *t, uint32_t value)
{
    if (value >= t->text_size)
        return "its normaliser's table points beyond its texts";
    const char *text = t->texts + value;
    size_t left = t->text_size - value;
    const char *end = memchr(text, '\0', left > LONGEST_TEXT ? LONGEST_TEXT : left);
    if (!end)
        return "a text of its normaliser's table has no end";
    while (text < end) {
        int32_t point;
        bool broken;
        text += at_point_read(text, (size_t)(end - text), &point, &broken);
        if (broken)
            return "a text of its normaliser's table is not UTF-8";
    }
    return NULL;
}

/* What is wrong with a unit itself. */
static const char *unit_fault(const trie *t, size_t at)
{
    uint32_t unit = unit_at(t, at);
    size_t base = base_of(at, unit);
    if ((base | 255) >= t->count)
        return "its normaliser's table points outside itself";
    return at != 0 && unit >> 8 & 1 ? text_fault(t, unit_at(t, base) & 0x7fffffff) : NULL;
}

/* Visits every unit that a reader can reach. Paths may join, since equal suffixes are stored once, but there must be no
 * cycle. */
static const char *visit_all(trie *t, step *path)
{
    const char *wrong = unit_fault(t, 0);
    size_t length = 0;
    path[length++] = (step){0, 1};
    t->state[0] = OPEN;
    while (length > 0 && !wrong) {
        step *here = &path[length - 1];
        uint32_t unit = unit_at(t, here->unit);
        if (here->byte == 256) {
            t->values[here->unit] += unit >> 8 & 1;
            t->state[here->unit] = DONE;
            if (t->values[here->unit] > MOST_VALUES)
                return "more than 31 entries of its normaliser's table are prefixes of one text";
            length--;
            continue;
        }
        size_t child = base_of(here->unit, unit) ^ here->byte;
        bool is_child = (unit_at(t, child) & 0x800000ff) == here->byte;
        if (is_child && t->state[child] == OPEN)
            return "its normaliser's table has a cycle";
        if (is_child && t->state[child] == NEW) { /* this byte is visited again when the child is done */
            wrong = unit_fault(t, child);
            t->state[child] = OPEN;
            path[length++] = (step){(uint32_t)child, 1};
            continue;
        }
        if (is_child && t->values[child] > t->values[here->unit])
            t->values[here->unit] = t->values[child];
        here->byte++;
    }
    return wrong;
}

const char *at_charsmap_fault(const unsigned char *table, size_t size, bool *checked)
{
    *checked = true;
    if (size == 0)
        return NULL;
    if (size <= 4)
        return "its normaliser's table is truncated";
    size_t bytes = (size_t)table[0] | (size_t)table[1] << 8 | (size_t)table[2] << 16 | (size_t)table[3] << 24;
    if (bytes == 0 || bytes % 4 != 0 || bytes >= size - 4)
        return "the size of its normaliser's table is wrong";
    trie t = {.units = table + 4, .count = bytes / 4, .texts = (const char *)table + 4 + bytes};
    t.text_size = size - 4 - bytes;
    t.state = calloc(t.count, 1);
    t.values = calloc(t.count, 1);
    step *path = malloc(t.count * sizeof *path); /* no unit occurs in it twice */
    *checked = t.state && t.values && path;
    const char *wrong = *checked ? visit_all(&t, path) : NULL;
    free(path);
    free(t.values);
    free(t.state);
    return wrong;
}
