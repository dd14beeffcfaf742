/* Words of raw text: punctuation is split off, and can be joined again exactly.
 *
 * The tokens of a line have blanks between them. Where the line had none, the mark U+FFED stands at the token that was
 * split off: "Hello, (dear) world!" is "Hello ￭, (￭ dear ￭) world ￭!". A U+FFED of the line itself is the token of two
 * marks. So joining restores every line whose white space is single blanks between words, whatever else it holds. */
#ifndef AT_TOKENS_H
#define AT_TOKENS_H

#include "base/buffer.h"

/* `moses-like`, in words:
 *   - letters and digits of all scripts stay together, with . - @ between them (example.com, well-known, a@b.org) and
 *     with , : / between digits (1,000 12:30 1/2);
 *   - Chinese characters and kana are tokens of their own, as there are no blanks between words;
 *   - an apostrophe between letters goes with the one or two letters after it (it ￭'s), else with the word before it
 *     (l'￭ homme);
 *   - addresses that begin with http://, https://, ftp:// or www. stay whole;
 *   - every other character is a token, several equal ones (...) are one. */
typedef enum at_tokens { AT_TOKENS_NONE, AT_TOKENS_MOSES_LIKE } at_tokens;
extern const char *const at_tokens_names[3]; /* "none", "moses-like", NULL */

/* Gets the tokens of a line one after the other: bytes [begin, end) of it, and which marks and whether a blank stand
 * before it. False: stop. */
typedef struct at_token {
    size_t begin, end;
    bool marks_before; /* the token before it gets a mark at its end */
    bool marked;       /* it gets a mark at its beginning */
    bool literal;      /* it is a U+FFED of the line, written as two marks */
} at_token;
typedef bool at_take_token(void *context, const at_token *token);
bool at_tokens_cut(const char *line, size_t size, at_take_token *take, void *context);

/* Whether a character is part of a word together with its neighbours: letters, digits and marks of all scripts, but not
 * Chinese characters and kana, which have no blanks between words. */
bool at_in_word(int32_t point);

/* The inverse: the text from byte `start` on, tokens with blanks between, becomes the line again. */
void at_tokens_join(at_buffer *text, size_t start);

#define AT_MARK "\xef\xbf\xad" /* U+FFED */
enum { AT_MARK_POINT = 0xFFED, AT_MARK_SIZE = 3 };

#endif
