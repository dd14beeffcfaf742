/* The widest kernels against the fast ones, in float. */
#include "wide_kernels.h"
