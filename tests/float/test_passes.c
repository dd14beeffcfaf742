/* The passes over rows, of every set of kernels, against loops in double written from their formulas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/activate.h"
#include "kernels/isa.h"
#include "kernels/passes.h"
#include "kernels/rows.h"

static const char *const kernels[] = {"plain", AT_FAST_KERNELS};
#define EACH_KERNELS for (int set = 0; set < 2 && at_kernels_choose(kernels[set]); set++)

enum { MOST = 700 };
static const int64_t sizes[] = {1, 7, 8, 9, 31, 256, 300, MOST};
enum { SIZES = sizeof sizes / sizeof *sizes };

static int back_to_the_best(void **state)
{
    (void)state;
    at_kernels_choose(NULL);
    return 0;
}

static void numbers(float *x, int64_t count, uint64_t seed)
{
    at_rng rng = {.seed = seed};
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)at_rng_normal(&rng);
}

#define NEAR(is, should_be, tolerance)                                                                                 \
    do {                                                                                                               \
        double is_ = (is), should_ = (should_be);                                                                      \
        if (!(fabs(is_ - should_) <= (tolerance) * (1 + fabs(should_))))                                               \
            fail_msg("%s, line %d: %.9g where %.9g should be", kernels[set], __LINE__, is_, should_);                  \
    } while (0)

/* Any part of a mask, also where a lane's counter exceeds 32 bits, comes from Philox. */
static void masks_are_philox(void **state)
{
    (void)state;
    const int64_t firsts[] = {0, 1, 30, 33, ((int64_t)1 << 34) - 40, ((int64_t)1 << 34) + 5};
    const uint64_t seed = 0x123456789abcdef0u, counter = 0xfedcba9876543210u;
    EACH_KERNELS
    for (int f = 0; f < 6; f++)
        for (int s = 0; s < SIZES; s++) {
            float mask[MOST + 1], x[MOST], y[MOST];
            mask[sizes[s]] = 77;
            at_isa()->passes->mask(mask, seed, counter, firsts[f], sizes[s], 0.7f);
            assert_true(mask[sizes[s]] == 77);
            numbers(x, sizes[s], 1);
            x[0] = NAN; /* dropped values may be anything */
            numbers(y, sizes[s], 2);
            at_isa()->passes->masked(y, x, mask, sizes[s], true);
            float before[MOST];
            numbers(before, sizes[s], 2);
            for (int64_t i = 0; i < sizes[s]; i++) {
                uint32_t word[4];
                int64_t at = firsts[f] + i;
                at_philox(seed, counter, (uint64_t)(at / 4), word);
                bool stays = word[at % 4] < (uint32_t)((double)0.7f * 0x1p32);
                assert_true(mask[i] == (stays ? 1 / 0.7f : 0));
                if (stays && i == 0)
                    assert_true(isnan(y[i]));
                else
                    NEAR(y[i], before[i] + (stays ? x[i] / (double)0.7f : 0), 1e-6);
            }
        }
}

static void norms(void **state)
{
    (void)state;
    EACH_KERNELS
    for (int s = 1; s < SIZES; s++) {
        int64_t n = sizes[s];
        float x[MOST], y[MOST], mask[MOST], gain[MOST], bias[MOST], sum[MOST], out[MOST];
        numbers(x, n, 1);
        numbers(y, n, 2);
        numbers(gain, n, 3);
        numbers(bias, n, 4);
        at_isa()->passes->mask(mask, 1, 2, 0, n, 0.5f);
        for (int64_t i = 0; i < n; i++)
            x[i] += 100; /* a mean far from 0 must not reduce the accuracy of the variance */
        norm_row row = {.size = n, .x = x, .y = y, .mask = mask, .gain = gain, .bias = bias, .eps = 1e-5f};
        row.sum = sum;
        row.out = out;
        at_isa()->passes->norm(&row);
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < n; i++)
            mean += (x[i] + (double)(y[i] * mask[i])) / (double)n;
        for (int64_t i = 0; i < n; i++)
            variance += pow(x[i] + (double)(y[i] * mask[i]) - mean, 2) / (double)n;
        for (int64_t i = 0; i < n; i++) {
            NEAR(sum[i], x[i] + (double)(y[i] * mask[i]), 1e-6);
            NEAR(out[i], gain[i] * (x[i] + (double)(y[i] * mask[i]) - mean) / sqrt(variance + 1e-5) + bias[i], 5e-5);
        }
    }
}

static void softmaxes(void **state)
{
    (void)state;
    EACH_KERNELS
    for (int s = 0; s < SIZES; s++) {
        int64_t n = sizes[s];
        float z[MOST], to[MOST];
        numbers(z, n, 1);
        for (int64_t i = 0; i < n; i++)
            z[i] = 5 * z[i] - 300; /* all below zero: the padding of a vector must not be the maximum */
        log_sum_row row = at_isa()->passes->log_sum(z, n);
        double sum = 0, total = 0;
        float max = z[0];
        for (int64_t i = 0; i < n; i++)
            max = z[i] > max ? z[i] : max;
        for (int64_t i = 0; i < n; i++) {
            sum += exp((double)z[i] - max);
            total += z[i];
        }
        assert_true(row.max == max);
        NEAR(row.sum, sum, 1e-6);
        assert_true(row.total == total || fabs(row.total / total - 1) < 1e-6);
        for (int add = 0; add < 2; add++) {
            numbers(to, n, 2);
            at_isa()->passes->softmax_back(add ? to : memcpy(to, z, sizeof to), z, n, max, (float)(2 / sum), 0.01f,
                                           add);
            float before[MOST];
            numbers(before, n, 2);
            for (int64_t i = 0; i < n; i++)
                NEAR(to[i], (add ? before[i] : 0) + 2 * exp((double)z[i] - max) / sum - 0.01f, 1e-6);
        }
        const float not_finite[] = {NAN, INFINITY, -INFINITY}, finite = z[n / 2];
        for (int i = 0; i < 3; i++) {
            z[n / 2] = not_finite[i];
            assert_true(isnan(at_isa()->passes->log_sum(z, n).sum));
        }
        for (int64_t i = 0; i < n; i++)
            z[i] = -FLT_MAX; /* finite, although their sum is not */
        NEAR(at_isa()->passes->log_sum(z, n).sum, (double)n, 1e-6);
        z[n / 2] = finite;
        NEAR(at_isa()->passes->log_sum(z, n).sum, 1, 1e-6);
    }
}

/* gelu and swish are accurate far below zero, too; the error of the slopes is relative to 1. */
static void activations(void **state)
{
    (void)state;
    EACH_KERNELS
    for (int k = -1400; k <= 1400; k += 7) {
        float x[9], y[9], gx[9], g[9];
        for (int i = 0; i < 9; i++) {
            x[i] = (float)(k + i * 0.7) / 100;
            g[i] = 2;
            gx[i] = 3;
        }
        at_isa()->acts->gelu(y, x, 9);
        at_isa()->acts->gelu_back(gx, g, x, 9);
        for (int i = 0; i < 9; i++) {
            double v = x[i], below = erfc(-v * M_SQRT1_2) / 2, right = v * below;
            if (!(fabs(y[i] - right) <= 1e-5 * fabs(right) + 1e-37) || (v > -3 && fabs(y[i] - right) > 3e-7 * fabs(v)))
                fail_msg("%s: gelu of %.9g is %.9g and should be %.9g", kernels[set], v, y[i], right);
            NEAR(gx[i], 3 + 2 * (below + v * exp(-v * v / 2) / sqrt(2 * M_PI)), 3e-7);
            gx[i] = 3;
        }
        at_isa()->acts->swish(y, x, 9);
        at_isa()->acts->swish_back(gx, g, x, 9);
        for (int i = 0; i < 9; i++) {
            double v = x[i], sigmoid = 1 / (1 + exp(-v));
            if (!(fabs(y[i] - v * sigmoid) <= 1e-6 * fabs(v * sigmoid)))
                fail_msg("%s: swish of %.9g is %.9g", kernels[set], v, y[i]);
            NEAR(gx[i], 3 + 2 * (sigmoid + v * sigmoid * (1 - sigmoid)), 3e-7);
        }
    }
}

/* Rows in groups of four and the remainder, columns in vectors and the remainder. */
static void activations_of_products(void **state)
{
    (void)state;
    EACH_KERNELS
    for (int act = AT_ACT_NONE; act <= AT_ACT_RELU; act++)
        for (int64_t rows = 1; rows < 10; rows++)
            for (int64_t size = 1; size < 20; size += 6) {
                float g[200], y[200], before[200], sums[20];
                numbers(g, 200, 1);
                numbers(before, 200, 1);
                numbers(y, 200, 2);
                for (int i = 0; i < 20; i++)
                    sums[i] = (float)i;
                at_isa()->acts->back(g, y, rows, size, (at_act)act, sums);
                for (int64_t j = 0; j < 20; j++) {
                    double sum = (double)j;
                    for (int64_t i = 0; j < size && i < rows; i++) {
                        double v = y[i * size + j], slopes[] = {1, 1 - v * v, v * (1 - v), v > 0};
                        NEAR(g[i * size + j], before[i * size + j] * slopes[act], 1e-6);
                        sum += before[i * size + j] * slopes[act];
                    }
                    NEAR(sums[j], sum, 2e-6);
                }
                assert_memory_equal(g + rows * size, before + rows * size, (size_t)(200 - rows * size) * sizeof *g);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(masks_are_philox, back_to_the_best),
        cmocka_unit_test_teardown(norms, back_to_the_best),
        cmocka_unit_test_teardown(softmaxes, back_to_the_best),
        cmocka_unit_test_teardown(activations, back_to_the_best),
        cmocka_unit_test_teardown(activations_of_products, back_to_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
