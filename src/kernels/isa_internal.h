/* The tables that each compilation of the isa_*.c files exports. */
#ifndef AT_ISA_INTERNAL_H
#define AT_ISA_INTERNAL_H

#include "kernels/isa.h"
#include "kernels/passes.h"
#include "kernels/tile.h"

extern const gemm_kernels at_gemm_kernels_plain, at_gemm_kernels_avx2;
extern const row_kernels at_row_kernels_plain, at_row_kernels_avx2;
extern const pass_kernels at_pass_kernels_plain, at_pass_kernels_avx2;
extern const act_kernels at_act_kernels_plain, at_act_kernels_avx2;
extern const update_kernels at_update_kernels_plain, at_update_kernels_avx2;
extern const tile_kernels at_tile_kernels_plain, at_tile_kernels_avx2;

#endif
