#include "draw/shade_internal.h"

#include "draw/ramp_internal.h"

#include <math.h>
#include <stdlib.h>

at_ink at_ink_of(const at_heatmap *map)
{
    return !map->colour ? AT_INK_NONE : map->indexed ? AT_INK_INDEXED : AT_INK_FULL;
}

static void colour_of(float shade, int rgb[3])
{
    at_ramp_colour(AT_RAMP_DARK, shade, rgb);
}

/* The nearest colour of the 6 x 6 x 6 cube that begins at number 16 of the terminal's palette. */
static int index_of(const int rgb[3])
{
    static const int levels[] = {0, 95, 135, 175, 215, 255};
    int index = 0;
    for (int c = 0; c < 3; c++) {
        int best = 0;
        for (int i = 1; i < 6; i++)
            if (abs(levels[i] - rgb[c]) < abs(levels[best] - rgb[c]))
                best = i;
        index = 6 * index + best;
    }
    return 16 + index;
}

enum { FOREGROUND = 38, BACKGROUND = 48 };

static void set_colour(at_buffer *text, at_ink ink, int where, const int rgb[3])
{
    if (ink == AT_INK_INDEXED)
        at_buffer_print(text, "\x1b[%d;5;%dm", where, index_of(rgb));
    else
        at_buffer_print(text, "\x1b[%d;2;%d;%d;%dm", where, rgb[0], rgb[1], rgb[2]);
}

void at_shade_behind(at_buffer *text, at_ink ink, float shade)
{
    static const int black[] = {0, 0, 0}, white[] = {240, 240, 240};
    int rgb[3];
    colour_of(shade, rgb);
    /* Luma (ITU-R BT.601): black text on the brighter half. */
    const bool bright = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] > 128;
    set_colour(text, ink, BACKGROUND, rgb);
    set_colour(text, ink, FOREGROUND, bright ? black : white);
}

void at_shade_pair(at_buffer *text, at_ink ink, float upper, float lower)
{
    int above[3], below[3];
    colour_of(upper, above);
    colour_of(lower, below);
    set_colour(text, ink, FOREGROUND, above);
    set_colour(text, ink, BACKGROUND, below);
    at_buffer_print(text, "▀");
}

void at_shade_upper(at_buffer *text, at_ink ink, float shade)
{
    int rgb[3];
    colour_of(shade, rgb);
    at_buffer_print(text, "\x1b[49m");
    set_colour(text, ink, FOREGROUND, rgb);
    at_buffer_print(text, "▀");
}

void at_shade_end(at_buffer *text, at_ink ink)
{
    if (ink != AT_INK_NONE)
        at_buffer_print(text, "\x1b[0m");
}

const char *at_shade_block(float shade)
{
    static const char *const blocks[] = {" ", "░", "▒", "▓", "█"};
    return isnan(shade) ? "?" : blocks[lrintf(shade * 4)];
}
