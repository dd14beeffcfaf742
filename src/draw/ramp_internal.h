/* The colours of values between 0 and 1. */
#ifndef AT_RAMP_INTERNAL_H
#define AT_RAMP_INTERNAL_H

/* From dark blue over green to yellow, for dark grounds and the terminal; from nearly white over blue to navy, for light
 * grounds and paper. The brightness of either changes monotonically, so that both can be read without seeing colours. */
typedef enum at_ramp { AT_RAMP_DARK, AT_RAMP_LIGHT } at_ramp;

/* The colour of a shade; grey for a NaN. */
void at_ramp_colour(at_ramp ramp, float shade, int rgb[3]);

#endif
