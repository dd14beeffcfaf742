/* Passes over the whole block of parameters, written as plain loops for the compiler to lay out in vectors. */
#include "kernels/isa_internal.h"
#include "kernels/update.h"
#include "kernels/vec_internal.h"

/* Moments of what has no gradient any more fade until they are denormal, and there they would stay, at several times
 * the cost of any other number. On this pass they are zeros, read and written. */
#if defined(__SSE2__)
#include <immintrin.h>
INLINE unsigned fade_to_zero(void)
{
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040); /* flush to zero, denormals are zeros */
    return before;
}
INLINE void as_before(unsigned before)
{
    _mm_setcsr(before);
}
#else
INLINE unsigned fade_to_zero(void)
{
    return 0;
}
INLINE void as_before(unsigned before)
{
    (void)before;
}
#endif

/* m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2,  w = shrink w - step m / (sqrt(correct v) + epsilon) */
INLINE void adam_stretch(const adam_pass *p, at_real *restrict w, at_real *restrict grad, at_real *restrict m,
                         at_real *restrict v, int64_t count)
{
    const at_real scale = p->scale, b1 = p->beta1, b2 = p->beta2, epsilon = p->epsilon, shrink = p->shrink;
    const at_real step = p->step, correct = p->correct, c1 = 1 - b1, c2 = 1 - b2;
    for (int64_t i = 0; i < count; i++) {
        at_real g = scale * grad[i];
        at_real mean = b1 * m[i] + c1 * g, square = b2 * v[i] + c2 * (g * g);
        m[i] = mean;
        v[i] = square;
        w[i] = shrink * w[i] - step * mean / (AT_REAL(sqrt)(square * correct) + epsilon);
        grad[i] = 0;
    }
}

static void adam(const adam_pass *p, at_real *w, at_real *grad, at_real *m, at_real *v, at_real *average, int64_t count)
{
    enum { STRETCH = 1024 }; /* the average finds the new parameters in the L1 cache */
    const at_real keep = p->keep;
    unsigned before = fade_to_zero();
    for (int64_t at = 0; at < count; at += STRETCH) {
        int64_t n = count - at < STRETCH ? count - at : STRETCH;
        adam_stretch(p, w + at, grad + at, m + at, v + at, n);
        for (int64_t i = at; average && i < at + n; i++)
            average[i] = keep * average[i] + (1 - keep) * w[i];
    }
    as_before(before);
}

/* In double, where the square of no float overflows: not finite means that some number was not. */
static double squares(const at_real *x, int64_t count)
{
    enum { AT_ONCE = 16 };
    double lane[AT_ONCE] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + AT_ONCE <= count; i += AT_ONCE)
        for (int l = 0; l < AT_ONCE; l++)
            lane[l] += (double)x[i + l] * (double)x[i + l];
    for (; i < count; i++)
        sum += (double)x[i] * (double)x[i];
    for (int l = 0; l < AT_ONCE; l++)
        sum += lane[l];
    return sum;
}

const update_kernels AT_ISA_NAME(at_update_kernels) = {adam, squares};
