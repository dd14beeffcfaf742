/* Weights of fewer bits, widened in registers (narrow.h). */
#ifndef AT_NARROW_INTERNAL_H
#define AT_NARROW_INTERNAL_H

#include "kernels/narrow.h"
#include "kernels/vec_internal.h"

#ifdef AT_DOUBLE
#include "io/dtype.h"

INLINE vec widen_f16(const uint16_t *from)
{
    vec x;
    for (int l = 0; l < LANES; l++)
        x[l] = at_float_of_half(from[l]);
    return x;
}
INLINE vec widen_int8(const int8_t *from)
{
    vec x;
    for (int l = 0; l < LANES; l++)
        x[l] = from[l];
    return x;
}
INLINE void widen_bf16(const uint16_t *from, vec *low, vec *high)
{
    for (int l = 0; l < LANES; l++) {
        (*low)[l] = at_float_of_bfloat(from[2 * l]);
        (*high)[l] = at_float_of_bfloat(from[2 * l + 1]);
    }
}

#else

/* A bfloat is the upper half of a float. Those of the columns j and j + LANES are the halves of one lane. */
INLINE void widen_bf16(const uint16_t *from, vec *low, vec *high)
{
    typedef veci unaligned __attribute__((aligned(2), may_alias));
    const veci both = (veci) * (const unaligned *)from;
    *low = (vec)(both << 16);
    *high = (vec)(both & (int32_t)0xffff0000);
}

#if AT_VECTOR_BYTES == 64

INLINE vec widen_f16(const uint16_t *from)
{
    return (vec)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i_u *)from));
}
INLINE vec widen_int8(const int8_t *from)
{
    return (vec)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i_u *)from)));
}

#elif defined(__AVX2__)

INLINE vec widen_f16(const uint16_t *from)
{
    return (vec)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)from));
}
INLINE vec widen_int8(const int8_t *from)
{
    return (vec)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i_u *)from)));
}

#else

typedef uint16_t lanes16 __attribute__((vector_size(2 * AT_LANES), aligned(2), may_alias));
typedef int8_t lanes8 __attribute__((vector_size(AT_LANES), aligned(1), may_alias));

/* Sign, exponent and fraction in their places of a float give h 2^-112, also where h is denormal. */
INLINE vec widen_f16(const uint16_t *from)
{
    const veci h = __builtin_convertvector(*(const lanes16 *)from, veci);
    const vec size = (vec)((h & 0x7fff) << 13) * 0x1p112f;
    return (vec)((veci)size | (h & 0x8000) << 16);
}
INLINE vec widen_int8(const int8_t *from)
{
    return __builtin_convertvector(__builtin_convertvector(*(const lanes8 *)from, veci), vec);
}

#endif
#endif

INLINE int number_size(const at_number_type type)
{
    return type == AT_NUMBERS_REAL ? (int)sizeof(at_real) : type == AT_NUMBERS_INT8 ? 1 : 2;
}

/* The 2 LANES numbers of a panel that belong to one k: at `from`. */
INLINE void widen(const at_number_type type, const void *from, vec *low, vec *high)
{
    switch (type) {
    case AT_NUMBERS_BF16:
        widen_bf16(from, low, high);
        break;
    case AT_NUMBERS_F16:
        *low = widen_f16(from);
        *high = widen_f16((const uint16_t *)from + LANES);
        break;
    case AT_NUMBERS_INT8:
        *low = widen_int8(from);
        *high = widen_int8((const int8_t *)from + LANES);
        break;
    default:
        *low = v_load(from);
        *high = v_load((const at_real *)from + LANES);
    }
}

#endif
