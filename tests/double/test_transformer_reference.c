/* The Transformer against PyTorch, in double, where rounding cannot hide an error. */
#include "transformer_reference.h"
