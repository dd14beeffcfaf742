/* Shades in the terminal: colours, or characters where there are none. */
#ifndef AT_SHADE_INTERNAL_H
#define AT_SHADE_INTERNAL_H

#include "base/buffer.h"

/* How a map is coloured. */
typedef enum at_ink { AT_INK_NONE, AT_INK_INDEXED, AT_INK_FULL } at_ink;
at_ink at_ink_of(const at_heatmap *map);

/* From here on figures are written on this shade (0 to 1, or NaN), in black or white; and two shades over each other,
 * as one character. */
void at_shade_behind(at_buffer *text, at_ink ink, float shade);
void at_shade_pair(at_buffer *text, at_ink ink, float upper, float lower);
void at_shade_upper(at_buffer *text, at_ink ink, float shade); /* with nothing below it */
void at_shade_end(at_buffer *text, at_ink ink);

/* The character of a shade without colours. */
const char *at_shade_block(float shade);

#endif
