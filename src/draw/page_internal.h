/* Parts of the JSON in the page of the explorer. */
#ifndef AT_PAGE_INTERNAL_H
#define AT_PAGE_INTERNAL_H

#include "attend_unstable.h"
#include "base/buffer.h"

/* A string that cannot end the script it stands in. What is not UTF-8 becomes U+FFFD. */
void at_page_string(at_buffer *text, const char *string);
/* Adds the field "beam": the units of every step and where the hypotheses looked. Nothing if they are too many. */
void at_page_beams(at_buffer *text, const at_beams *beams);

#endif
