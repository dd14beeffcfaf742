/* What stands in a line and is not translated with it: tags of HTML, and placeholders, addresses and numbers that are kept.
 * They are taken out of the line, and put back into its translation by alignment. */
#ifndef AT_MARKS_H
#define AT_MARKS_H

#include "text/html.h"

/* ---- Tags by alignment (tags.c) --------------------------------------------------------------------------------- */

/* A tag inside a line, which does not contain it. */
typedef struct at_tag {
    at_piece_kind kind; /* open, close or void */
    size_t at;          /* the byte of the line that it stands before */
    at_line bytes;
    int64_t match;      /* the index among the tags of the line; -1: the other one stands elsewhere, or there is none */
    bool before, after; /* a blank stands before it, or after it */
    bool added;         /* neither, but the line has one in its place */
    bool kept;          /* it is no tag but text that is kept, */
    char previous, following; /* between these bytes */
} at_tag;

/* A unit of a translation: where it ends in it, and the byte of the line where the unit that it was translated from
 * begins; -1: not known. */
typedef struct at_place {
    int32_t end, source;
} at_place;

typedef struct at_answer {
    char *text;      /* NULL: there is none */
    at_place *place; /* [places] if they are wanted */
    int64_t places;
    double confidence; /* not a number if the model is not calibrated */
    int64_t units;
} at_answer;

/* Writes a translation, as HTML or as text, with each tag of its line once: an element around the words that come from its
 * words, or most of them that stand together, and nested as before. */
void at_tags_write(const at_tag *tags, int64_t count, at_line line, const at_answer *answer, bool html, at_buffer *out);

/* ---- What is kept as it is (keep.c) ----------------------------------------------------------------------------- */

/* What stood in a line and is not translated with it. */
typedef struct at_marks {
    at_line whole; /* the line with all that is kept, without tags, */
    at_tag *base;  /* [base_count] and the tags in it */
    int64_t base_count;
    at_tag *tag; /* [count] these and what is kept, in what is translated; not more than the first if nothing is kept */
    int64_t count;
    char *text; /* what is translated, if something is kept; NULL: the whole line */
    bool numbers;
} at_marks;
/* Takes out of the line what is to be kept, with or without its numbers; false if out of memory. */
bool at_marks_keep(at_marks *marks, bool numbers, at_line *line);
/* Whether nothing is left of the line but blanks and punctuation. */
bool at_marks_are_all(const at_marks *marks, at_line line);
/* Takes out of a translation what the model itself wrote of what is kept: it will be there once. */
void at_marks_erase(const at_marks *marks, at_answer *answer);
/* Whether the translation of the line has not the same numbers, which are not kept yet. */
bool at_marks_lost_numbers(const at_marks *marks, at_line line, at_line translation);

#endif
