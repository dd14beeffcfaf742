/* What the SVG drawings share: their size, their colours, light and dark. */
#ifndef AT_SVG_INTERNAL_H
#define AT_SVG_INTERNAL_H

#include "attend_unstable.h"
#include "base/buffer.h"

/* Shades are the classes s0 to s50 of a style, so that they follow the theme; a NaN has the class nan. */
enum { AT_SVG_LEVELS = 50 };

/* The opening tag with the size, the title for those who do not see it, the style and the ground. */
void at_svg_begin(at_buffer *text, int width, int height, const char *title, at_theme theme);

/* The drawing of a map over its picture, as `text`, which may have failed. */
bool at_frames_svg(const at_drawing *drawing, at_buffer *text, at_error *error);

#endif
