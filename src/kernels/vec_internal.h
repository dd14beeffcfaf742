/* One vector of numbers, by the vector types of GCC and clang, so that one source compiles to AVX2 with FMA, to
 * AVX-512, to NEON and to plain code, in float and, for the gradient checks, in double. Included by the isa_*.c files only, which are
 * compiled once per instruction set. The transcendental functions are inlined polynomials with error bounds that a test
 * checks against libm; in double they are libm's own, since only exactness counts there. */
#ifndef AT_VEC_INTERNAL_H
#define AT_VEC_INTERNAL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/real.h"

#define INLINE static inline __attribute__((always_inline))

/* The bytes of a vector: those of a register of the instruction set, or wider vectors would go through memory. */
#ifndef AT_VECTOR_BYTES
#define AT_VECTOR_BYTES 32
#endif
enum { VECTOR_BYTES = AT_VECTOR_BYTES };
typedef at_real vec __attribute__((vector_size(VECTOR_BYTES)));
typedef at_real vec_unaligned __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(at_real)), may_alias));
#ifdef AT_DOUBLE
#define AT_LANES (AT_VECTOR_BYTES / 8)
typedef int64_t at_index; /* an integer as wide as a lane */
#else
#define AT_LANES (AT_VECTOR_BYTES / 4)
typedef int32_t at_index;
#endif
typedef at_index veci __attribute__((vector_size(VECTOR_BYTES)));
enum { LANES = AT_LANES };

/* name_plain, name_avx2, name_avx512 or name_neon: the symbols of this compilation. */
#define AT_JOIN_(a, b)    a##_##b
#define AT_JOIN(a, b)     AT_JOIN_(a, b)
#define AT_ISA_NAME(name) AT_JOIN(name, AT_ISA)

INLINE vec v_load(const at_real *p)
{
    return (vec) * (const vec_unaligned *)p;
}

INLINE void v_store(at_real *p, vec x)
{
    *(vec_unaligned *)p = (vec_unaligned)x;
}

/* n numbers, zeros after them: what is left at the end of a row, or LANES, a constant that leaves a plain load. */
INLINE vec v_load_first(const at_real *p, int64_t n)
{
    if (n == LANES)
        return v_load(p);
    at_real part[LANES] = {0};
    memcpy(part, p, (size_t)n * sizeof *p);
    return v_load(part);
}

INLINE void v_store_first(at_real *p, vec x, int64_t n)
{
    if (n == LANES) {
        v_store(p, x);
        return;
    }
    at_real part[LANES];
    v_store(part, x);
    memcpy(p, part, (size_t)n * sizeof *p);
}

INLINE vec v_set(at_real x)
{
    return x - (vec){0};
}

INLINE vec v_fma(vec a, vec b, vec c)
{
    return a * b + c; /* contracted to one rounding where the machine can */
}

/* Both are in registers at this place, and nothing that needs them moves across it. Only where there are just 16. */
INLINE void v_keep(vec *a, vec *b)
{
#if defined(__AVX2__) && AT_VECTOR_BYTES == 32
    __asm__ volatile("" : "+x"(*a), "+x"(*b));
#else
    (void)a, (void)b;
#endif
}

/* mask ? a : b, lane by lane; masks are all ones or all zeros */
INLINE vec v_pick(veci mask, vec a, vec b)
{
    return (vec)(((veci)a & mask) | ((veci)b & ~mask));
}

#if defined(__AVX2__)
#include <immintrin.h>
#if AT_VECTOR_BYTES == 64 && defined(AT_DOUBLE)
#define V_OF(name) _mm512_##name##_pd
typedef __m512d v_of;
#elif AT_VECTOR_BYTES == 64
#define V_OF(name) _mm512_##name##_ps
typedef __m512 v_of;
#elif defined(AT_DOUBLE)
#define V_OF(name) _mm256_##name##_pd
typedef __m256d v_of;
#else
#define V_OF(name) _mm256_##name##_ps
typedef __m256 v_of;
#endif
/* The larger; b if either is NaN, so put what may be NaN second to keep it. */
INLINE vec v_max(vec a, vec b)
{
    return (vec)V_OF(max)((v_of)a, (v_of)b);
}
INLINE vec v_min(vec a, vec b)
{
    return (vec)V_OF(min)((v_of)a, (v_of)b);
}
#else
INLINE vec v_max(vec a, vec b)
{
    return v_pick((veci)(a > b), a, b);
}
INLINE vec v_min(vec a, vec b)
{
    return v_pick((veci)(a < b), a, b);
}
#endif

INLINE vec v_abs(vec x)
{
    return v_max(-x, x);
}

/* Lanes 0,1,2,... as numbers. */
INLINE veci v_lanes(void)
{
    veci lanes;
#pragma GCC unroll 8
    for (int l = 0; l < LANES; l++)
        lanes[l] = l;
    return lanes;
}

/* Horizontal sum and maximum, always in the same order. */
INLINE at_real v_sum(vec x)
{
    at_real half[LANES];
    v_store(half, x);
#pragma GCC unroll 4
    for (int n = LANES / 2; n > 0; n /= 2)
#pragma GCC unroll 4
        for (int l = 0; l < n; l++)
            half[l] += half[l + n];
    return half[0];
}

INLINE at_real v_top(vec x)
{
    at_real top = x[0];
    for (int l = 1; l < LANES; l++)
        top = x[l] > top ? x[l] : top;
    return top;
}

#ifdef AT_DOUBLE

INLINE vec v_each(vec x, double (*f)(double))
{
    for (int l = 0; l < LANES; l++)
        x[l] = f(x[l]);
    return x;
}
INLINE vec v_exp(vec x)
{
    return v_each(x, exp);
}
INLINE vec v_exp2_times(vec x, vec unit)
{
    x *= unit;
    return v_pick((veci)(x > -126.5), v_each(x, exp2), v_pick((veci)(x == x), v_set(0), x));
}
INLINE vec v_exp2_below(vec x)
{
    return v_each(x, exp2);
}
INLINE vec v_tanh(vec x)
{
    return v_each(x, tanh);
}
INLINE vec v_normal_tail(vec t, vec e)
{
    (void)e;
    return v_each(t * M_SQRT1_2, erfc) / 2;
}

#else

/* e^x = 2^n e^r, n = round(x / ln 2), |r| <= ln(2)/2; e^r by a minimax polynomial of degree 6 (3e-9). The scaling is
 * done in two steps, so results down to the smallest denormal are right and overflow is infinity. At most 1.05 ulp
 * off everywhere, 1 at 0; NaN stays. */
INLINE vec v_exp(vec x)
{
    /* Adding 1.5 * 2^23 rounds to an integer in the low bits. The 254 is twice the bias of an exponent: half of the
     * bits is then the biased exponent of half of the scaling, and what is left is that of the other half. */
    const vec magic = v_set(12582912.0f + 254);
    vec clamped = v_min(v_set(89.0f), v_max(v_set(-105.0f), x));
    vec t = v_fma(clamped, v_set(1.44269504f), magic);
    vec n = t - magic;
    vec r = v_fma(n, v_set(-0.693359375f), clamped); /* ln 2 in two pieces: n times the first is exact */
    r = v_fma(n, v_set(2.12194440e-4f), r);
    vec p = v_set(0.0013814613f);
    p = v_fma(p, r, v_set(0.0083687099f));
    p = v_fma(p, r, v_set(0.0416683874f));
    p = v_fma(p, r, v_set(0.1666652069f));
    p = v_fma(p, r, v_set(0.4999999345f));
    p = v_fma(p, r * r, r) + 1.0f;
    veci half = (veci)t >> 1;
    return p * (vec)(half << 23) * (vec)(((veci)t - half) << 23);
}

/* 2^(x unit) for -127 <= x unit <= 0, exactly 0 below -126.5: see v_exp2_below. With fused multiply-adds the product
 * costs nothing and is not rounded. */
INLINE vec v_exp2_times(vec x, vec unit)
{
    const vec magic = v_set(12582912.0f + 127); /* as in v_exp, with the bias of one exponent */
    vec t = v_fma(x, unit, magic);
    vec f = v_fma(x, unit, magic - t);
    vec p = v_set(0.0013264727f);
    p = v_fma(p, f, v_set(0.0096715127f));
    p = v_fma(p, f, v_set(0.0555073374f));
    p = v_fma(p, f, v_set(0.2402224208f));
    p = v_fma(p, f, v_set(0.6931469776f));
    p = v_fma(p, f, v_set(1.0f));
    return p * (vec)((veci)t << 23);
}

/* 2^x for x <= 0, for sums where 2^-126 is nothing: exactly 0 from -127 down (so a masked -inf becomes 0), 1 at 0,
 * relative error below 2e-7 down to -126, NaN stays. Eleven instructions, half of what v_exp takes. */
INLINE vec v_exp2_below(vec x)
{
    return v_exp2_times(v_max(v_set(-127), x), v_set(1));
}

/* tanh x = x P(x^2) / Q(x^2), a minimax rational function of degrees 4 and 4 (2e-8) up to 9. From there on it rises
 * above 1, by more at 10 than rounding could take back, so cut off at 1 it is exactly 1 from 10 on. Below 6.5 ulp off
 * everywhere. */
INLINE vec v_tanh(vec x)
{
    vec c = v_min(v_set(10.0f), v_max(v_set(-10.0f), x));
    vec s = c * c;
    vec p = v_set(1.3354621944e-08f);
    p = v_fma(p, s, v_set(2.0609052817e-05f));
    p = v_fma(p, s, v_set(3.4955863057e-03f));
    p = v_fma(p, s, v_set(1.3381024097e-01f));
    p = v_fma(p, s, v_set(1.0f));
    vec q = v_set(7.7765418089e-07f);
    q = v_fma(q, s, v_set(3.2856318576e-04f));
    q = v_fma(q, s, v_set(2.5876975243e-02f));
    q = v_fma(q, s, v_set(4.6714339689e-01f));
    q = v_fma(q, s, v_set(1.0f));
    return v_min(v_set(1.0f), v_max(v_set(-1.0f), c * p / q));
}

/* The normal distribution below -t, for t >= 0 and e = e^(-t^2/2): e R(u), u = 1 / (1 + 0.3 t), R a minimax polynomial
 * of degree 8 (6e-8). */
INLINE vec v_normal_tail(vec t, vec e)
{
    vec u = 1 / v_fma(t, v_set(0.3f), v_set(1.0f));
    vec p = v_set(0.03833426673f);
    p = v_fma(p, u, v_set(-0.1689519538f));
    p = v_fma(p, u, v_set(0.2282172922f));
    p = v_fma(p, u, v_set(-0.07599957171f));
    p = v_fma(p, u, v_set(0.1421850393f));
    p = v_fma(p, u, v_set(0.09483298686f));
    p = v_fma(p, u, v_set(0.1218820522f));
    p = v_fma(p, u, v_set(0.119493064f));
    p = v_fma(p, u, v_set(6.852898095e-6f));
    return e * p;
}

#endif

/* 1 / (1 + e^-x), through e^-|x|, which never overflows and keeps small results right: below 2.5 ulp off everywhere. */
INLINE vec v_sigmoid(vec x)
{
    vec e = v_exp(-v_abs(x));
    return v_pick((veci)(x < 0), e, v_set(1)) / (1 + e);
}

/* Phi(x), the normal distribution below x, which keeps its digits far below 0; *e is e^(-x^2/2). */
INLINE vec v_normal(vec x, vec *e)
{
    *e = v_exp(x * x * (at_real)-0.5);
    vec tail = v_normal_tail(v_abs(x), *e);
    return v_pick((veci)(x < 0), tail, 1 - tail);
}

#endif
