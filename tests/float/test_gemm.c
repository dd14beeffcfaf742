/* The matrix product against a scalar loop, bit by bit, on every instruction set of this CPU. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "kernels/gemm.h"
#include "kernels/rows.h"

static const char *const sets[] = {"plain", AT_FAST_KERNELS, AT_WIDE_KERNELS};

static float numbers[70000];

static int fill(void **state)
{
    (void)state;
    at_rng rng = {.seed = 3};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        numbers[i] = (float)at_rng_normal(&rng);
    return 0;
}

/* One chain over p = 0, 1, 2, ...: as gemm.h specifies it, bit by bit. */
static float chain(const at_gemm *g, float start, bool fused, int64_t i, int64_t j)
{
    float sum = start;
    for (int64_t p = 0; p < g->k; p++) {
        const float a = g->a[i * g->a_row + p * g->a_col], b = g->b[p * g->b_row + j * g->b_col];
        volatile float product = a * b; /* keeps the compiler from fusing the two */
        sum = fused ? fmaf(a, b, sum) : sum + product;
    }
    return sum;
}

/* Whether a set of kernels rounds a multiply-add once. */
static bool fuses(const char *set)
{
#if defined(__x86_64__)
    return strcmp(set, "plain") != 0;
#else
    (void)set;
    return true;
#endif
}

static void check_product(at_gemm g, bool fused, bool packs, at_arena *arena)
{
    static float c[97 * 133], before[97 * 133], packed[257 * 160] __attribute__((aligned(64)));
    memcpy(before, numbers + 1000, sizeof before);
    memcpy(c, before, sizeof c);
    g.c = c;
    g.c_row = g.n + 3;
    assert_true(at_gemm_packed_size(g.k, g.n) <= (int64_t)(sizeof packed / sizeof *packed));
    if (packs)
        at_gemm_pack(g.b, g.b_row, g.b_col, g.k, g.n, packed);
    at_gemm run = g;
    run.packed = packs ? packed : NULL;
    assert_true(at_gemm_run(&run, arena));
    for (int64_t i = 0; i < g.m; i++)
        for (int64_t j = 0; j < g.c_row; j++) {
            const float has = c[i * g.c_row + j], was = before[i * g.c_row + j];
            float wanted = j < g.n ? chain(&g, g.accumulate ? was : 0, fused, i, j) + (g.bias ? g.bias[j] : 0) : was;
            if (g.act == AT_ACT_RELU && j < g.n)
                wanted = wanted > 0 ? wanted : 0;
            if (has != wanted)
                fail_msg(
                    "[%d,%d] x [%d,%d], transposed %d %d, packed %d, accumulate %d: element %d,%d is %.9g and not %.9g",
                    (int)g.m, (int)g.k, (int)g.k, (int)g.n, g.a_col != 1, g.b_col != 1, packs, g.accumulate, (int)i,
                    (int)j, (double)has, (double)wanted);
        }
}

/* Sizes below and above the block sizes of the kernels: rows of 6 and 96, columns of 8, 16, 32 and 128, a depth of 256. */
static void test_products(void **state)
{
    (void)state;
    static const int64_t rows[] = {1, 2, 3, 6, 7, 13, 97}, columns[] = {1, 7, 8, 9, 16, 31, 33, 130},
                         depths[] = {0, 1, 2, 7, 256, 257};
    for (int set = 0; set < 3; set++) {
        if (!at_kernels_choose(sets[set]))
            continue;
        const bool fused = fuses(sets[set]);
        at_arena *arena = at_arena_new();
        for (size_t x = 0; x < 7 * 8 * 6; x++) {
            const int64_t m = rows[x % 7], n = columns[x / 7 % 8], k = depths[x / 56];
            const int step = k < 256 ? 1 : 5; /* the long sums only in some variants, to save time */
            for (int variant = 0; variant < 64; variant += step) {
                const bool transpose_a = variant & 1, transpose_b = variant & 2;
                at_gemm g = {.m = m,
                             .n = n,
                             .k = k,
                             .a = numbers + 7,
                             .a_row = transpose_a ? 1 : k + 2,
                             .a_col = transpose_a ? m + 2 : 1,
                             .b = numbers + 20000,
                             .b_row = transpose_b ? 1 : n + 1,
                             .b_col = transpose_b ? k + 1 : 1,
                             .accumulate = variant & 8,
                             .bias = variant & 16 ? numbers + 60000 : NULL,
                             .act = variant & 32 ? AT_ACT_RELU : AT_ACT_NONE};
                check_product(g, fused, variant & 4, arena);
                at_arena_reset(arena);
            }
        }
        at_arena_free(arena);
    }
    at_kernels_choose(NULL);
}

/* Sizes beyond the largest blocks (96 rows, 1024 or 2048 columns, a depth of 4 x 256), where partial sums are stored and
 * continued: the bits of one chain, and the same for each layout of A and B. */
static void test_large_products(void **state)
{
    (void)state;
    enum { M = 100, N = 2065, K = 1031 };
    float *a = malloc(2 * M * K * sizeof *a), *b = malloc(2 * K * N * sizeof *b), *a_transposed = a + M * K,
          *b_transposed = b + K * N;
    float *expected = malloc(2 * M * N * sizeof *expected), *c = expected + M * N, *packed = NULL;
    assert_true(a && b && expected);
    for (int64_t i = 0; i < M * K; i++)
        a[i] = a_transposed[i % K * M + i / K] = numbers[i % 60013];
    for (int64_t i = 0; i < K * N; i++)
        b[i] = b_transposed[i % N * K + i / N] = numbers[i % 65537];
    for (int set = 0; set < 3; set++) {
        if (!at_kernels_choose(sets[set]))
            continue;
        at_arena *arena = at_arena_new();
        int64_t size = at_gemm_packed_size(K, N);
        assert_int_equal(posix_memalign((void **)&packed, 64, (size_t)size * sizeof *packed), 0);
        for (int variant = 0; variant < 6; variant++) {
            const bool transpose_a = variant & 1, transpose_b = variant & 2;
            at_gemm g = {.m = M,
                         .n = N,
                         .k = K,
                         .a = transpose_a ? a_transposed : a,
                         .a_row = transpose_a ? 1 : K,
                         .a_col = transpose_a ? M : 1,
                         .b = transpose_b ? b_transposed : b,
                         .b_row = transpose_b ? 1 : N,
                         .b_col = transpose_b ? K : 1,
                         .c = variant == 0 ? expected : c,
                         .c_row = N,
                         .bias = numbers};
            if (variant >= 4) {
                at_gemm_pack(g.b, g.b_row, g.b_col, K, N, packed);
                g.packed = packed;
            }
            assert_true(at_gemm_run(&g, arena));
            for (int64_t i = 0; variant == 0 && i < M * N; i += 331)
                assert_true(expected[i] == chain(&g, 0, fuses(sets[set]), i / N, i % N) + g.bias[i % N]);
            if (variant > 0)
                assert_memory_equal(c, expected, M * N * sizeof *c);
        }
        free(packed);
        at_arena_free(arena);
    }
    at_kernels_choose(NULL);
    free(a);
    free(b);
    free(expected);
}

/* The activations are applied after the sum and the bias, and a batch equals its products one by one. */
static void test_batches_and_activations(void **state)
{
    (void)state;
    enum { COUNT = 3, M = 5, N = 19, K = 11 };
    static const at_act acts[] = {AT_ACT_TANH, AT_ACT_SIGMOID};
    float plain[COUNT * M * N], out[COUNT * M * N];
    at_arena *arena = at_arena_new();
    for (int set = 0; set < 3; set++) {
        if (!at_kernels_choose(sets[set]))
            continue;
        for (int act = 0; act < 2; act++) {
            at_gemm g = {.m = M,
                         .n = N,
                         .k = K,
                         .a = numbers,
                         .a_row = K,
                         .a_col = 1,
                         .b = numbers + 5000,
                         .b_row = N,
                         .b_col = 1,
                         .c_row = N,
                         .bias = numbers + 9000};
            for (int i = 0; i < COUNT; i++) {
                at_gemm one = g;
                one.a += i * M * K;
                one.c = plain + i * M * N;
                assert_true(at_gemm_run(&one, arena));
            }
            g.act = acts[act];
            g.c = out;
            assert_true(at_gemm_batch(&g, COUNT, M * K, 0, M * N, arena));
            for (int i = 0; i < COUNT * M * N; i++) {
                const double x = (double)plain[i];
                assert_float_equal(out[i], acts[act] == AT_ACT_TANH ? tanh(x) : 1 / (1 + exp(-x)), 1e-6);
            }
        }
    }
    at_arena_free(arena);
    at_kernels_choose(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_large_products),
        cmocka_unit_test(test_batches_and_activations),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
