/* Large scores: the fused path in float against the plain path in double. */
#include "large_scores.h"
