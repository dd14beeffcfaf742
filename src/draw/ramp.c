#include "draw/ramp_internal.h"

#include <math.h>

enum { COLOURS = 6, STEPS = COLOURS - 1 };

static const unsigned char ramps[][COLOURS][3] = {
    [AT_RAMP_DARK] = {{26, 24, 48}, {52, 52, 116}, {44, 98, 146}, {36, 148, 142}, {122, 196, 96}, {250, 226, 80}},
    [AT_RAMP_LIGHT] = {{245, 247, 249}, {205, 225, 238}, {139, 192, 214}, {62, 140, 184}, {24, 87, 148}, {10, 38, 84}},
};

void at_ramp_colour(at_ramp ramp, float shade, int rgb[3])
{
    const float position = isnan(shade) ? 0 : shade * STEPS;
    const int step = position >= STEPS ? STEPS - 1 : (int)position;
    const float part = position - (float)step;
    const unsigned char(*colour)[3] = &ramps[ramp][step];
    for (int c = 0; c < 3; c++)
        rgb[c] = isnan(shade) ? 96 : (int)lrintf((1 - part) * colour[0][c] + part * colour[1][c]);
}
