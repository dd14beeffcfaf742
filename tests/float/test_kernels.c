/* Every set of kernels against the same product in double loops, and attention with one set against the other. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attend_unstable.h"
#include "base/rng.h"
#include "kernels/gemm.h"
#include "kernels/rows.h"

static const char *const kernels[] = {"plain", AT_FAST_KERNELS, AT_WIDE_KERNELS};

#define EACH_KERNELS for (int set = 0; set < 3 && at_kernels_choose(kernels[set]); set++)

static at_arena *arena;

static int make_arena(void **state)
{
    (void)state;
    arena = at_arena_new();
    return arena == NULL;
}

static int free_arena(void **state)
{
    (void)state;
    at_kernels_choose(NULL);
    at_arena_free(arena);
    return 0;
}

static float *numbers(uint64_t seed, int64_t count)
{
    at_rng rng = {.seed = seed};
    float *x = malloc((size_t)count * sizeof *x + 1);
    assert_non_null(x);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)at_rng_normal(&rng);
    return x;
}

/* ---- A product and what it should be ---- */

/* GAP numbers separate a row from the next; they are NaN, so that reading one is noticed. */
enum { GAP = 3 };

typedef struct problem {
    int64_t m, n, k;
    float *a, *b, *before, *bias; /* [m,k], [k,n], [m,n], [n] */
    double *sum, *size;           /* [m,n]: A B, and |A| |B|, by which errors are measured */
} problem;

static problem problem_new(int64_t m, int64_t n, int64_t k)
{
    problem p = {.m = m, .n = n, .k = k};
    p.a = numbers(1, m * k);
    p.b = numbers(2, k * n);
    p.before = numbers(3, m * n);
    p.bias = numbers(4, n);
    p.sum = calloc((size_t)(m * n), sizeof *p.sum);
    p.size = calloc((size_t)(m * n), sizeof *p.size);
    for (int64_t i = 0; i < m; i++)
        for (int64_t e = 0; e < k; e++)
            for (int64_t j = 0; j < n; j++) {
                double product = (double)p.a[i * k + e] * (double)p.b[e * n + j];
                p.sum[i * n + j] += product;
                p.size[i * n + j] += fabs(product);
            }
    return p;
}

static void problem_free(problem *p)
{
    void *all[] = {p->a, p->b, p->before, p->bias, p->sum, p->size};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* x [rows, columns] stored row-major or, transposed, column-major, with gaps, in a block of exactly that size. */
static float *lay_out(const float *x, int64_t rows, int64_t columns, bool transposed, int64_t *row, int64_t *column)
{
    *row = transposed ? 1 : columns + GAP;
    *column = transposed ? rows + GAP : 1;
    int64_t count = rows > 0 && columns > 0 ? (rows - 1) * *row + (columns - 1) * *column + 1 : 0;
    float *to = malloc((size_t)count * sizeof *to + 1);
    for (int64_t i = 0; i < count; i++)
        to[i] = NAN;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[i * *row + j * *column] = x[i * columns + j];
    return to;
}

/* One variant of a product. */
typedef struct variant {
    bool turn_a, turn_b, accumulate, bias, packed;
    at_act act;
} variant;

static variant variant_of(unsigned bits)
{
    return (variant){bits & 1, bits & 2, bits & 4, bits & 8, bits & 16, (at_act)(bits >> 5 & 3)};
}

/* C [m, n + GAP] of p, the gaps 77. */
static float *product(const problem *p, variant how)
{
    at_gemm g = {.m = p->m, .n = p->n, .k = p->k, .accumulate = how.accumulate, .act = how.act, .c_row = p->n + GAP};
    float *a = lay_out(p->a, p->m, p->k, how.turn_a, &g.a_row, &g.a_col);
    float *b = lay_out(p->b, p->k, p->n, how.turn_b, &g.b_row, &g.b_col);
    float *c = malloc((size_t)(p->m * g.c_row) * sizeof *c), *packed = NULL;
    for (int64_t i = 0; i < p->m * g.c_row; i++)
        c[i] = i % g.c_row >= p->n ? 77 : how.accumulate ? p->before[i / g.c_row * p->n + i % g.c_row] : NAN;
    g.a = a, g.b = b, g.c = c;
    if (how.bias)
        g.bias = p->bias;
    if (how.packed) {
        size_t bytes = (size_t)at_gemm_packed_size(p->k, p->n) * sizeof *packed;
        packed = aligned_alloc(AT_ALIGN, (bytes + AT_ALIGN) / AT_ALIGN * AT_ALIGN);
        at_gemm_pack(b, g.b_row, g.b_col, p->k, p->n, packed);
        g.packed = packed;
        g.b = NULL;
    }
    assert_true(at_gemm_run(&g, arena));
    free(a);
    free(b);
    free(packed);
    return c;
}

static double activated(double x, at_act act)
{
    switch (act) {
    case AT_ACT_TANH:
        return tanh(x);
    case AT_ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case AT_ACT_RELU:
        return x < 0 ? 0 : x;
    default:
        return x;
    }
}

/* The error of k + 1 roundings, the few ulps of the activation, and nothing written outside. */
static void check_product(const problem *p, variant how)
{
    float *c = product(p, how);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n + GAP; j++) {
            float is = c[i * (p->n + GAP) + j];
            if (j >= p->n) {
                assert_true(is == 77);
                continue;
            }
            int64_t at = i * p->n + j;
            double before = how.accumulate ? (double)p->before[at] : 0, bias = how.bias ? (double)p->bias[j] : 0;
            double truth = activated(p->sum[at] + before + bias, how.act);
            double bound = (p->size[at] + fabs(before) + fabs(bias)) * (double)(p->k + 2) * 0x1p-24 + 5e-7 * how.act;
            if (!(fabs((double)is - truth) <= bound))
                fail_msg("%s, [%d,%d] x [%d,%d], A transposed %d, B transposed %d, accumulate %d, bias %d, packed %d, "
                         "act %d: "
                         "c[%d,%d] is %.9g, should be %.9g",
                         at_kernels_name(), (int)p->m, (int)p->k, (int)p->k, (int)p->n, how.turn_a, how.turn_b,
                         how.accumulate, how.bias, how.packed, (int)how.act, (int)i, (int)j, (double)is, truth);
        }
    free(c);
}

/* Sizes around those of vectors, panels and groups of rows; every layout, with the other options varying. */
static void small_products(void **state)
{
    (void)state;
    const int64_t sizes[] = {1, 2, 3, 5, 6, 7, 15, 16, 17, 63, 64, 65};
    unsigned options = 0;
    for (int x = 0; x < 12; x++)
        for (int y = 0; y < 12; y++)
            for (int z = 0; z < 12; z++) {
                problem p = problem_new(sizes[x], sizes[y], sizes[z]);
                for (unsigned layout = 0; layout < 4; layout++)
                    for (int more = 0; more < 3; more++, options += 7) /* 7 and 32 are coprime */
                        EACH_KERNELS
                check_product(&p, variant_of(layout | options % 32 << 2));
                problem_free(&p);
            }
}

/* Sizes around those of the blocks, and every choice. */
static void large_products(void **state)
{
    (void)state;
    const int64_t sizes[][3] = {{1, 300, 257},  {2, 257, 1025}, {3, 96, 1100}, {97, 65, 257},
                                {100, 300, 33}, {7, 17, 2050},  {13, 64, 64},  {193, 31, 300}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        problem p = problem_new(sizes[i][0], sizes[i][1], sizes[i][2]);
        for (unsigned bits = (unsigned)i % 3; bits < 128; bits += 3)
            EACH_KERNELS
        check_product(&p, variant_of(bits));
        problem_free(&p);
    }
}

/* An empty sum: the previous value or 0, the bias, the activation. */
static void no_depth(void **state)
{
    (void)state;
    const int64_t sizes[][2] = {{1, 1}, {1, 40}, {3, 17}, {7, 16}, {20, 65}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        problem p = problem_new(sizes[i][0], sizes[i][1], 0);
        for (unsigned bits = 0; bits < 128; bits++)
            EACH_KERNELS
        check_product(&p, variant_of(bits));
        problem_free(&p);
    }
}

/* ---- NaN and infinity ---- */

/* A value in A that is not finite affects only its row, one in B only its column. */
static void not_finite(void **state)
{
    (void)state;
    const int64_t sizes[][3] = {{1, 33, 9}, {3, 70, 17}, {7, 17, 5}, {65, 64, 63}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        problem p = problem_new(sizes[i][0], sizes[i][1], sizes[i][2]);
        const int64_t m = p.m, n = p.n, k = p.k, c_row = n + GAP, row = m / 2, column = n - 2, e = k / 2;
        for (unsigned bits = 0; bits < 128; bits++)
            EACH_KERNELS
            {
                variant how = variant_of(bits);
                float *clean = product(&p, how), a = p.a[row * k + e], b = p.b[e * n + column];
                p.a[row * k + e] = NAN;
                float *with_a = product(&p, how);
                p.a[row * k + e] = a;
                p.b[e * n + column] = NAN;
                float *with_b = product(&p, how);
                p.b[e * n + column] = b;
                p.a[row * k + e] = INFINITY;
                float *endless = product(&p, how);
                p.a[row * k + e] = a;
                for (int64_t r = 0; r < m; r++)
                    for (int64_t j = 0; j < n; j++) {
                        int64_t at = r * c_row + j;
                        double limit = activated(p.b[e * n + j] > 0 ? INFINITY : -INFINITY, how.act);
                        if (!(r == row ? isnan(with_a[at]) : with_a[at] == clean[at]) ||
                            !(j == column ? isnan(with_b[at]) : with_b[at] == clean[at]) ||
                            !(r == row ? (double)endless[at] == limit : endless[at] == clean[at]))
                            fail_msg("%s, %d x %d x %d, choices %#x: c[%d,%d] is %g with NaN in A, %g with NaN in B, "
                                     "%g with infinity in A",
                                     at_kernels_name(), (int)m, (int)n, (int)k, bits, (int)r, (int)j,
                                     (double)with_a[at], (double)with_b[at], (double)endless[at]);
                    }
                free(clean);
                free(with_a);
                free(with_b);
                free(endless);
            }
        problem_free(&p);
    }
}

/* ---- Batches ---- */

/* A batch of products has the bits of each alone, with B of its own or shared. */
static void batches(void **state)
{
    (void)state;
    enum { MOST = 5 };
    const int64_t sizes[][3] = {{1, 20, 9}, {2, 17, 33}, {7, 33, 5}, {30, 40, 50}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int64_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
        float *a = numbers(1, MOST * m * k), *b = numbers(2, MOST * k * n), *bias = numbers(3, n);
        float *together = malloc((size_t)(MOST * m * n) * sizeof *a), *alone = malloc((size_t)(m * n) * sizeof *a);
        for (int count = 1; count <= MOST; count += 2)
            for (int layout = 0; layout < 8; layout++)
                EACH_KERNELS
                {
                    at_gemm g = {.m = m, .n = n, .k = k, .a = a, .b = b, .c = together, .c_row = n};
                    g.a_row = layout & 1 ? 1 : k, g.a_col = layout & 1 ? m : 1;
                    g.b_row = layout & 2 ? 1 : n, g.b_col = layout & 2 ? k : 1;
                    g.bias = bias, g.act = AT_ACT_TANH;
                    const int64_t b_step = layout & 4 ? 0 : k * n;
                    at_threads_set(1 + count % 3);
                    assert_true(at_gemm_batch(&g, count, m * k, b_step, m * n, arena));
                    at_threads_set(1);
                    for (int each = 0; each < count; each++) {
                        at_gemm one = g;
                        one.a += each * m * k, one.b += each * b_step, one.c = alone;
                        assert_true(at_gemm_run(&one, arena));
                        assert_memory_equal(alone, together + each * m * n, (size_t)(m * n) * sizeof *alone);
                    }
                }
        at_threads_set(0);
        free(a);
        free(b);
        free(bias);
        free(together);
        free(alone);
    }
}

/* ---- Attention ---- */

enum { B = 2, Q = 19, K = 37, H = 4, G = 2, D = 24, DV = 20, A = 9 };
enum {
    OUT = B * Q * H * DV,
    DQ = B * Q * H * D,
    DK = B * K * G * D,
    DVALUE = B * K * G * DV,
    ALL = OUT + DQ + DK + DVALUE
};

/* The output and the gradients, one after the other. */
static float *attend(const at_settings *settings)
{
    float *q = numbers(1, DQ), *k = numbers(2, DK), *v = numbers(3, DVALUE), *g = numbers(4, OUT);
    float *w = numbers(5, A * D), *u = numbers(6, A * D), *x = numbers(7, A), *result = numbers(8, ALL);
    for (int i = 0; i < A * D; i++)
        w[i] *= 0.3f, u[i] *= 0.3f; /* small scores, otherwise their rounding would show in the weights */
    at_parameter parameters[] = {{.name = "W", .rank = 2, .dim = {A, D}, .value = w},
                                 {.name = "U", .rank = 2, .dim = {A, D}, .value = u},
                                 {.name = "v", .rank = 1, .dim = {A}, .value = x}};
    at_call call = {.batch = B,
                    .queries = Q,
                    .keys = K,
                    .query_width = H * D,
                    .key_width = G * D,
                    .value_width = G * DV,
                    .query = q,
                    .key = k,
                    .value = v,
                    .lengths = (const int64_t[]){K, 21},
                    .query_start = 15,
                    .parameters = parameters,
                    .parameter_count = strncmp(settings->score, "additive", 8) == 0 ? 3 : 0,
                    .out = result,
                    .grad_out = g,
                    .grad_query = result + OUT,
                    .grad_key = result + OUT + DQ,
                    .grad_value = result + OUT + DQ + DK};
    at_error error = {0};
    if (!at_attend(settings, &call, &error))
        fail_msg("%s", error.text);
    float *all[] = {q, k, v, g, w, u, x};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    return result;
}

static void attention_on_either(void **state)
{
    (void)state;
    const at_settings settings[] = {
        {.score = "scaled"},
        {.score = "scaled", .window = "causal", .position = "rope"},
        {.score = "dot", .normaliser = "sigmoid", .position = "alibi"},
        {.score = "scaled", .normaliser = "sparsemax", .window = "sliding:9"},
        {.score = "scaled", .normaliser = "entmax15"},
        {.score = "scaled", .normaliser = "relu", .window = "causal"},
        {.score = "additive", .window = "causal"},
        {.score = "additive:sigmoid", .normaliser = "entmax15"},
        {.score = "additive:relu"},
        {.score = "scaled", .plain = true},
    };
    if (!at_kernels_choose(AT_FAST_KERNELS))
        return;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        at_settings s = settings[i];
        s.heads = H, s.kv_heads = G;
        at_kernels_choose("plain");
        float *plain = attend(&s);
        at_kernels_choose(AT_FAST_KERNELS);
        float *fast = attend(&s);
        for (int j = 0; j < ALL; j++)
            if (!(fabsf(plain[j] - fast[j]) <= 1e-5f * (1 + fabsf(plain[j]))))
                fail_msg("%s %s: number %d is %.8g with plain kernels, %.8g with fast ones", s.score,
                         s.normaliser ? s.normaliser : "softmax", j, (double)plain[j], (double)fast[j]);
        free(plain);
        free(fast);
    }
}

/* ATTEND_ISA names the first choice; an unknown name changes nothing. */
static void chosen_by_environment(void **state)
{
    (void)state;
    const char *before = getenv("ATTEND_ISA");
    char *kept = before ? strdup(before) : NULL;
    unsetenv("ATTEND_ISA");
    at_kernels_choose(NULL);
    char fastest[16];
    snprintf(fastest, sizeof fastest, "%s", at_kernels_name());
    static const char *const names[] = {"plain", "nonsense", ""};
    for (int i = 0; i < 3; i++) {
        setenv("ATTEND_ISA", names[i], 1);
        at_kernels_choose(NULL);
        assert_string_equal(at_kernels_name(), i == 0 ? "plain" : fastest);
    }
    /* What the command says instead of ignoring it. */
    at_error error = {0};
    assert_false(at_kernels_set("nonsense", &error));
    assert_int_equal(error.code, AT_USAGE);
    assert_memory_equal(error.text, "no instruction set 'nonsense'; there are 'plain'", 48);
    assert_string_equal(at_kernels_name(), fastest);
    error = (at_error){0};
    assert_true(at_kernels_set("plain", &error));
    assert_string_equal(at_kernels_name(), "plain");
    unsetenv("ATTEND_ISA");
    if (kept)
        setenv("ATTEND_ISA", kept, 1);
    free(kept);
    at_kernels_choose(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_products),
        cmocka_unit_test(large_products),
        cmocka_unit_test(no_depth),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(batches),
        cmocka_unit_test(attention_on_either),
        cmocka_unit_test(chosen_by_environment),
    };
    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
