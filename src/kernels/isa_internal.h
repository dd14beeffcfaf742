/* The tables that each compilation of the isa_*.c files exports: "plain" everywhere, and the fast sets of the
 * machine. */
#ifndef AT_ISA_INTERNAL_H
#define AT_ISA_INTERNAL_H

#include "kernels/activate.h"
#include "kernels/isa.h"
#include "kernels/passes.h"
#include "kernels/patches.h"
#include "kernels/tile.h"
#include "kernels/update.h"

#define AT_ISA_TABLES(set)                                                                                             \
    extern const gemm_kernels at_gemm_kernels_##set;                                                                   \
    extern const narrow_kernels at_narrow_kernels_##set;                                                               \
    extern const row_kernels at_row_kernels_##set;                                                                     \
    extern const tile_kernels at_tile_kernels_##set;                                                                   \
    extern const pass_kernels at_pass_kernels_##set;                                                                   \
    extern const act_kernels at_act_kernels_##set;                                                                     \
    extern const update_kernels at_update_kernels_##set;                                                               \
    extern const patch_kernels at_patch_kernels_##set;
AT_ISA_TABLES(plain)
AT_ISA_TABLES(avx2)
AT_ISA_TABLES(neon)

/* All that differs from avx2. */
extern const gemm_kernels at_gemm_kernels_avx512;
extern const narrow_kernels at_narrow_kernels_avx512;
extern const patch_kernels at_patch_kernels_avx512;

#endif
