/* What of a line is to be kept as it is: addresses, the places in a text where a program puts a value, characters by their
 * names, and numbers. */
#ifndef AT_PLACEHOLDERS_INTERNAL_H
#define AT_PLACEHOLDERS_INTERNAL_H

#include "attend.h"

/* U+FFFC stands for something that is no text and is kept, too. */
#define AT_OBJECT "\xef\xbf\xbc"

/* The next one, from byte *from on, which it moves behind it; false after the last. *number tells whether it is a number.
 *   https://example.com/a?b  www.example.com  mail@example.com
 *   {} {name} {0:.2f} {{name}} ${name} %s %-5.2f %1$s %(name)s %%  &amp; &#228;
 *   12  1,000.50  12:30  2024-01-31  1/2; not digits beside letters, such as mp3 */
bool at_placeholder_next(at_line line, size_t *from, at_line *found, bool *number);

#endif
