#include "isa_internal.h"
#include "vec.h"
const tile_kernels AT_ISA_NAME(at_tile_kernels) = {0};
