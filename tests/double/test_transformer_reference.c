/* The Transformer against PyTorch, in double, where rounding hides nothing. */
#include "transformer_reference.h"
