/* Text as sacreBLEU reads it: white space and lower case as in Python, and its tokenisers. */
#ifndef AT_TOKENISE_INTERNAL_H
#define AT_TOKENISE_INTERNAL_H

#include "attend.h"

typedef enum at_tokeniser { AT_TOKENISER_13A, AT_TOKENISER_NONE, AT_TOKENISER_CHAR, AT_TOKENISER_ZH } at_tokeniser;

/* The words of one line. They point into the line or into text[], and are valid until the next line. */
typedef struct at_words {
    at_line *item;
    int64_t count;
    size_t room;
    char *text[2]; /* the output of the rules, alternately */
    size_t text_room[2];
} at_words;
void at_words_free(at_words *words);

/* Splits a line of valid UTF-8. False if out of memory. */
bool at_tokenise(at_words *words, at_tokeniser tokeniser, at_line line);

/* Whether a code point is white space to Python's str.split. */
bool at_is_blank(int32_t point);

/* Writes a line as valid UTF-8, with U+FFFD for invalid bytes and a blank for a newline, lower-cased if asked. `out` has
 * room for AT_CLEAN_GROWTH times its size. Returns the new size. */
enum { AT_CLEAN_GROWTH = 3 };
size_t at_line_clean(at_line line, bool lower, char *out);
/* Whether at_line_clean would not change the line. */
bool at_line_is_clean(at_line line);

#endif
