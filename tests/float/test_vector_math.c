/* exp, tanh, sigmoid and the softmax's power of two, compared with libm in double, for every set of kernels. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "kernels/rows.h"

void probe_exp2_below_plain(float *out, const float *x, int64_t count);
#if defined(__aarch64__)
#define probe_exp2_below_fast probe_exp2_below_neon
#elif defined(__x86_64__)
#define probe_exp2_below_fast probe_exp2_below_avx2
#else
#define probe_exp2_below_fast probe_exp2_below_plain
#endif
void probe_exp2_below_fast(float *out, const float *x, int64_t count);

typedef void row_loop(float *out, const float *x, int64_t count);

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* A function, its reference, and the error bounds that vec.h states. */
static const struct function {
    const char *name;
    row_loop *loop;
    double (*truth)(double);
    double ulps;
} functions[] = {
    {"exp", at_rows_exp, exp, 1.05}, {"tanh", at_rows_tanh, tanh, 6.5}, {"sigmoid", at_rows_sigmoid, sigmoid, 2.5}};
enum { FUNCTIONS = sizeof functions / sizeof *functions, BLOCK = 512 };

typedef void with_kernels(const char *kernels, const struct function *f);

static void for_each(with_kernels *check)
{
    const char *kernels[] = {"plain", AT_FAST_KERNELS};
    for (int s = 0; s < 2; s++)
        for (int f = 0; f < FUNCTIONS && at_kernels_choose(kernels[s]); f++)
            check(kernels[s], &functions[f]);
    at_kernels_choose(NULL);
}

static float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float one(row_loop *loop, float x)
{
    loop(&x, &x, 1);
    return x;
}

/* ---- Error ---- */

/* The distance of adjacent floats at y. */
static double ulp_at(double y)
{
    int exponent;
    frexp(y, &exponent);
    return fabs(y) < (double)FLT_MIN ? 0x1p-149 : ldexp(1, exponent - 24);
}

static void check_block(const char *kernels, const struct function *f, const float *x)
{
    float y[BLOCK];
    f->loop(y, x, BLOCK);
    for (int i = 0; i < BLOCK; i++) {
        double truth = f->truth((double)x[i]);
        if (truth > (double)FLT_MAX ? y[i] != INFINITY : !(fabs((double)y[i] - truth) <= f->ulps * ulp_at(truth)))
            fail_msg("%s, %s: f(%a) is %a, should be %a: %.3f ulp off", f->name, kernels, (double)x[i], (double)y[i],
                     truth, fabs((double)y[i] - truth) / ulp_at(truth));
    }
}

/* Every exponent of either sign, denormals among them, with random mantissas. */
static void all_exponents(const char *kernels, const struct function *f)
{
    at_rng rng = {.seed = 5};
    float x[BLOCK];
    for (uint32_t exponent = 0; exponent < 255; exponent++)
        for (uint32_t sign = 0; sign < 2; sign++) {
            for (int i = 0; i < BLOCK; i++)
                x[i] = of_bits(sign << 31 | exponent << 23 | (uint32_t)(at_rng_uniform(&rng) * 0x1p23));
            check_block(kernels, f, x);
        }
}

/* Where results are neither 0 nor 1 nor infinite. */
static void the_middle(const char *kernels, const struct function *f)
{
    at_rng rng = {.seed = 6};
    const float reach[] = {1, 4, 12, 110};
    float x[BLOCK];
    for (int round = 0; round < 600; round++) {
        for (int i = 0; i < BLOCK; i++)
            x[i] = reach[round % 4] * (2 * (float)at_rng_uniform(&rng) - 1);
        check_block(kernels, f, x);
    }
}

/* The neighbours of every point where the range reduction changes interval, or the results become denormal, 0,
 * infinity or 1. */
static void edges(const char *kernels, const struct function *f)
{
    float x[BLOCK];
    for (int edge = -320; edge <= 280; edge++) {
        float at = (float)(edge / 2.0 * 0.6931471805599453);
        for (int i = 0; i < BLOCK; i++)
            x[i] = of_bits(bits_of(at) + (uint32_t)i - (at == 0 ? 0 : BLOCK / 2));
        check_block(kernels, f, x);
    }
    const float others[] = {88.72284f, 89, -87.33655f, -103.9721f, -105, 9, -9, 10, -10, 16.63553f, 17.32868f};
    for (size_t edge = 0; edge < sizeof others / sizeof *others; edge++) {
        for (int i = 0; i < BLOCK; i++)
            x[i] = of_bits(bits_of(others[edge]) + (uint32_t)i - BLOCK / 2);
        check_block(kernels, f, x);
    }
}

static void near_libm(void **state)
{
    (void)state;
    for_each(all_exponents);
    for_each(the_middle);
    for_each(edges);
}

/* ---- Exact ---- */

static void nan_stays(const char *kernels, const struct function *f)
{
    at_rng rng = {.seed = 7};
    for (int i = 0; i < 2000; i++) {
        uint32_t payload = 1 + (uint32_t)(at_rng_uniform(&rng) * (0x1p23 - 2));
        float y = one(f->loop, of_bits((uint32_t)(i % 2) << 31 | 0x7f800000 | payload));
        if (y == y)
            fail_msg("%s, %s: NaN with payload %#x becomes %a", f->name, kernels, payload, (double)y);
    }
}

static void exact_values(void **state)
{
    (void)state;
    for_each(nan_stays);
    const char *kernels[] = {"plain", AT_FAST_KERNELS};
    for (int s = 0; s < 2 && at_kernels_choose(kernels[s]); s++) {
        assert_true(one(at_rows_exp, 0) == 1 && one(at_rows_exp, -0.0f) == 1);
        assert_true(one(at_rows_exp, INFINITY) == INFINITY && bits_of(one(at_rows_exp, -INFINITY)) == 0);
        assert_true(bits_of(one(at_rows_tanh, 0)) == 0 && bits_of(one(at_rows_tanh, -0.0f)) == 0x80000000);
        assert_true(one(at_rows_tanh, INFINITY) == 1 && one(at_rows_tanh, -INFINITY) == -1);
        assert_true(one(at_rows_sigmoid, 0) == 0.5f && one(at_rows_sigmoid, -0.0f) == 0.5f);
        assert_true(one(at_rows_sigmoid, INFINITY) == 1 && bits_of(one(at_rows_sigmoid, -INFINITY)) == 0);
        for (uint32_t bits = 1; bits < 0x00800000; bits += 4099) /* a denormal is its own tanh */
            assert_true(bits_of(one(at_rows_tanh, of_bits(bits))) == bits);
    }
    at_kernels_choose(NULL);
}

/* Saturated results stay saturated up to the largest number, and earlier results do not exceed the limit. */
static void saturation(void **state)
{
    (void)state;
    const char *kernels[] = {"plain", AT_FAST_KERNELS};
    for (int s = 0; s < 2 && at_kernels_choose(kernels[s]); s++) {
        for (float x = 88.8f; x < INFINITY; x *= 1.01f)
            assert_true(one(at_rows_exp, x) == INFINITY);
        for (float x = 104; x < INFINITY; x *= 1.01f)
            assert_true(one(at_rows_exp, -x) == 0 && one(at_rows_sigmoid, -x) == 0);
        for (float x = 10; x < INFINITY; x *= 1.01f)
            assert_true(one(at_rows_tanh, x) == 1 && one(at_rows_tanh, -x) == -1);
        for (float x = 18; x < INFINITY; x *= 1.01f)
            assert_true(one(at_rows_sigmoid, x) == 1);
        float last = 0;
        for (float x = -104; x < 90; x += 0.001f) {
            float e = one(at_rows_exp, x), t = one(at_rows_tanh, x), p = one(at_rows_sigmoid, x);
            assert_true(e >= last && t >= -1 && t <= 1 && p >= 0 && p <= 1 && t == -one(at_rows_tanh, -x));
            last = e;
        }
    }
    at_kernels_choose(NULL);
}

/* ---- The same bits anywhere ---- */

static void index_does_not_matter(const char *kernels, const struct function *f)
{
    enum { LONG = 200, MOST = 33 };
    at_rng rng = {.seed = 8};
    float x[LONG], whole[LONG];
    for (int i = 0; i < LONG; i++)
        x[i] = 6 * (float)at_rng_normal(&rng);
    f->loop(whole, x, LONG);
    for (int from = 60; from < 60 + 17; from++)
        for (int count = 0; count <= MOST; count++) {
            float out[MOST + 1], same[MOST + 1];
            for (int i = 0; i <= MOST; i++)
                out[i] = same[i] = 77;
            memcpy(same, x + from, (size_t)count * sizeof *x);
            f->loop(out, x + from, count);
            f->loop(same, same, count);
            if (memcmp(out, whole + from, (size_t)count * sizeof *x) != 0)
                fail_msg("%s, %s: %d numbers from %d on differ from the same in a long row", f->name, kernels, count,
                         from);
            if (memcmp(out, same, sizeof out) != 0)
                fail_msg("%s, %s: %d numbers computed in place differ", f->name, kernels, count);
            for (int i = count; i <= MOST; i++)
                if (out[i] != 77)
                    fail_msg("%s, %s: %d numbers, and number %d is written to", f->name, kernels, count, i);
        }
}

static void tails_and_indices(void **state)
{
    (void)state;
    for_each(index_does_not_matter);
}

/* ---- 2^x for x <= 0, as the softmax takes it ---- */

static void check_power(row_loop *power)
{
    at_rng rng = {.seed = 9};
    float x[BLOCK], y[BLOCK];
    for (int round = 0; round < 1200; round++) {
        for (int i = 0; i < BLOCK; i++)
            switch (round % 4) {
            case 0: /* the whole range */
                x[i] = -126 * (float)at_rng_uniform(&rng);
                break;
            case 1: /* around the halves, where the rounding to an integer changes */
                x[i] = of_bits(bits_of(-(float)(round / 4 % 126) - 0.5f) + (uint32_t)i - BLOCK / 2);
                break;
            case 2: /* around the integers, and near 0 */
                x[i] = round / 4 % 127 == 0
                           ? -(float)i * 0x1p-149f
                           : of_bits(bits_of(-(float)(round / 4 % 126)) - (uint32_t)(i % 256) * (round / 4 % 126 != 0));
                break;
            default: /* every exponent */
                x[i] = -ldexpf(1 + (float)at_rng_uniform(&rng), round / 4 % 155 - 149);
                x[i] = x[i] < -126 ? -126 : x[i];
            }
        power(y, x, BLOCK);
        for (int i = 0; i < BLOCK; i++) {
            double truth = exp2((double)x[i]);
            if (!(fabs((double)y[i] - truth) <= 2e-7 * truth))
                fail_msg("2^%a is %a, should be %a: %.3g off", (double)x[i], (double)y[i], truth,
                         fabs((double)y[i] - truth) / truth);
        }
    }
    /* Between -127 and -126 it is right or 0. */
    for (int i = 0; i < BLOCK; i++)
        x[i] = -127 + (float)i / BLOCK;
    power(y, x, BLOCK);
    for (int i = 0; i < BLOCK; i++)
        assert_true(y[i] == 0 || fabs((double)y[i] - exp2((double)x[i])) <= 0x1p-148);
    for (int i = 0; i < BLOCK; i++)
        x[i] = i == 0 ? -INFINITY : -127 * powf(2, (float)i / 5);
    power(y, x, BLOCK);
    for (int i = 0; i < BLOCK; i++)
        assert_true(bits_of(y[i]) == 0);
    for (int i = 0; i < BLOCK; i++)
        x[i] = i % 2 == 0 ? (i % 4 == 0 ? 0 : -0.0f) : of_bits((uint32_t)(i % 4) << 30 | 0x7fc00000 | (uint32_t)i);
    power(y, x, BLOCK);
    for (int i = 0; i < BLOCK; i++)
        assert_true(i % 2 == 0 ? y[i] == 1 : y[i] != y[i]);
}

static void powers_of_two(void **state)
{
    (void)state;
    check_power(probe_exp2_below_plain);
    if (at_kernels_choose(AT_FAST_KERNELS))
        check_power(probe_exp2_below_fast);
    at_kernels_choose(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_libm),         cmocka_unit_test(exact_values),  cmocka_unit_test(saturation),
        cmocka_unit_test(tails_and_indices), cmocka_unit_test(powers_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
