/* A glossary: what the terms of a source line must, or must not, be called in its translation. */
#ifndef AT_GLOSSARY_H
#define AT_GLOSSARY_H

#include "attend_unstable.h"

enum {
    AT_TERM_BYTES = 1000, /* of a term, at most */
    AT_LINE_TERMS = 1000, /* that apply to one line, at most */
};

typedef struct at_term {
    at_line source; /* empty: the term applies to every line */
    at_line target;
    bool forbidden;
    int64_t number; /* of the line in the file, from 1 */
} at_term;

/* Which terms apply to a line: their indices in ascending order, [room] of them at most; returns how many apply. Of terms
 * that overlap in the line the first counts, and of those that begin at one place the longest. */
int64_t at_glossary_find(const at_glossary *glossary, at_line line, int64_t *found, int64_t room);
int64_t at_glossary_count(const at_glossary *glossary);
const at_term *at_glossary_term(const at_glossary *glossary, int64_t index);

/* Whether a text has the term, and not as a part of longer words. */
bool at_glossary_has(at_line text, at_line term);

/* Whether the first, or the last, character of a text can go on in a word. */
bool at_glossary_goes_on(at_line text, bool end);
/* Whether a word goes on from the character that ends at `at` to the one that begins there. */
bool at_glossary_inside(at_line text, size_t at);

#endif
