/* HTML as text and tags. */
#ifndef AT_HTML_H
#define AT_HTML_H

#include "base/buffer.h"

/* Tags of elements that stand inside sentences, such as <b>, open or close; one without content is void, as <br>, and so is
 * a whole element inside a sentence that is not to be translated. All other markup is a break. */
typedef enum at_piece_kind {
    AT_PIECE_TEXT,
    AT_PIECE_OPEN,
    AT_PIECE_CLOSE,
    AT_PIECE_VOID,
    AT_PIECE_BREAK
} at_piece_kind;
typedef struct at_piece {
    at_piece_kind kind;
    at_line bytes;
    int64_t match; /* of a tag that opens or closes: the index of the other one; -1: there is none */
} at_piece;
/* The tags and texts of a text, in order and without a byte between them, no tag with its match; to be released with free,
 * also after false: out of memory. */
bool at_html_split(at_line text, at_piece **pieces, int64_t *count);
/* The same with matches, and an element that is not to be translated as one piece. */
bool at_html_cut(at_line text, at_piece **pieces, int64_t *count);
/* &auml; and the like become characters, never longer than their names; returns the size. And what must be written by
 * name, &, < and >. */
size_t at_html_decode(at_line text, char *out);
void at_html_encode(at_line text, at_buffer *out);

#endif
