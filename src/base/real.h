/* The one number type. float in the product; double in the test build of the same source (-DAT_DOUBLE), because a
 * error of 0.05% in a gradient is lost in the rounding errors of float and obvious in double. */
#ifndef AT_REAL_H
#define AT_REAL_H

#ifdef AT_DOUBLE
typedef double at_real;
#define AT_REAL(name) name /* the libm function of our type: AT_REAL(exp)(x) */
#else
typedef float at_real;
#define AT_REAL(name) name##f
#endif

#define AT_LOG2E ((at_real)1.4426950408889634) /* e^x is 2^(x log2 e), and 2^x the cheaper one */

#endif
