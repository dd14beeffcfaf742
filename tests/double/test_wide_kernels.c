/* The widest kernels against the fast ones, in double. */
#include "wide_kernels.h"
