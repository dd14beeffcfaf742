/* Names fitted into columns, as those of a terminal, where a Chinese character takes two and a combining accent none. */
#ifndef AT_LABEL_INTERNAL_H
#define AT_LABEL_INTERNAL_H

#include "base/buffer.h"

/* How many columns the name takes when cut to `most`. */
int at_label_width(const char *name, int most);

/* Adds the name, cut to `most` columns with an ellipsis if it is longer. Characters that would move the cursor or
 * change the writing direction, and invalid UTF-8, become U+FFFD. Returns the columns it took. */
int at_label_add(at_buffer *text, const char *name, int most);
/* The same as text of XML and HTML. */
int at_label_add_markup(at_buffer *text, const char *name, int most);

/* The same letter by letter, for names that are written downwards: how many letters there are, `most` at most, the last
 * an ellipsis if there are more; and one of them, with its accents. */
int at_label_letters(const char *name, int most);
int at_label_add_letter(at_buffer *text, const char *name, int index, int most);

#endif
