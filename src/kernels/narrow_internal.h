/* Weights of fewer bits, widened in registers (narrow.h). */
#ifndef AT_NARROW_INTERNAL_H
#define AT_NARROW_INTERNAL_H

#include "kernels/narrow.h"
#include "kernels/vec_internal.h"

#ifdef AT_DOUBLE
#include "io/dtype.h"

INLINE vec widen_bf16(const uint16_t *from)
{
    vec x;
    for (int l = 0; l < LANES; l++)
        x[l] = at_float_of_bfloat(from[l]);
    return x;
}
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

#elif defined(__AVX2__)

/* A bfloat is the upper half of a float. */
INLINE vec widen_bf16(const uint16_t *from)
{
    return (vec)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i_u *)from)), 16);
}
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

INLINE vec widen_bf16(const uint16_t *from)
{
    return (vec)(__builtin_convertvector(*(const lanes16 *)from, veci) << 16);
}
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

INLINE int number_size(const at_number_type type)
{
    return type == AT_NUMBERS_REAL ? (int)sizeof(at_real) : type == AT_NUMBERS_INT8 ? 1 : 2;
}

/* LANES numbers of a panel, from number `at` on. */
INLINE vec widen(const at_number_type type, const void *numbers, int64_t at)
{
    switch (type) {
    case AT_NUMBERS_BF16:
        return widen_bf16((const uint16_t *)numbers + at);
    case AT_NUMBERS_F16:
        return widen_f16((const uint16_t *)numbers + at);
    case AT_NUMBERS_INT8:
        return widen_int8((const int8_t *)numbers + at);
    default:
        return v_load((const at_real *)numbers + at);
    }
}

#endif
