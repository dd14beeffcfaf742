/* Large scores in double: both paths, and the numbers that the float test reads. */
#include "large_scores.h"
