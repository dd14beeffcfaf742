/* Units of a line as bytes of it: code points or words. Any bytes are a line: what is not UTF-8 counts as U+FFFD, and so
 * do the NUL and the newline, which no line of text contains. */
#ifndef AT_UNITS_H
#define AT_UNITS_H

#include "attend.h"

enum { AT_REPLACEMENT = 0xFFFD };

/* The code point at the start of `text` (size > 0); returns how many bytes it takes. An invalid sequence, up to where it
 * goes wrong, is one AT_REPLACEMENT with *broken true. */
size_t at_point_read(const char *text, size_t size, int32_t *point, bool *broken);
/* A code point as UTF-8, 1 to 4 bytes; returns how many. */
size_t at_point_write(int32_t point, char bytes[4]);

bool at_is_white(int32_t point); /* the property White_Space of Unicode */

/* A unit: bytes of the line, and how many invalid sequences are among them. */
typedef struct at_unit {
    const char *text;
    size_t size;
    int64_t broken;
} at_unit;

/* Start from {line, line + size, words}; false at the line's end. Words are separated by white space, as Unicode defines
 * it. */
typedef struct at_units {
    const char *at, *end;
    bool words;
} at_units;
bool at_units_next(at_units *units, at_unit *unit);

#endif
