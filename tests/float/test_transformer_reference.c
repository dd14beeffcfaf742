/* The Transformer against PyTorch, in the product's float. */
#include "transformer_reference.h"
