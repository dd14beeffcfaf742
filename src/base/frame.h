/* Pages: a frame of HTML with names in it, filled with the texts of a language. */
#ifndef AT_FRAME_H
#define AT_FRAME_H

#include "attend.h"

typedef struct at_frame_value {
    const char *name, *text;
} at_frame_value;
/* {{name}} becomes the text of that name among the values [count], or else in the table, a JSON object; what is filled in
 * is not read again. `what` names the page in messages. Release it with free. */
char *at_frame_fill(const char *frame, const char *table, const at_frame_value *values, int count, const char *what,
                    at_error *error);

#endif
