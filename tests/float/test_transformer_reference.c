/* The Transformer against PyTorch, in float. */
#include "transformer_reference.h"
