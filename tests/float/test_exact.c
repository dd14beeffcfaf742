/* The promise of exactness, byte for byte: the same bits for any number of threads, whatever else is in the batch,
 * however long the padding, and one query at a time or all at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attend.h"
#include "base/rng.h"
#include "kernels/gemm.h"
#include "kernels/rows.h"

enum { H = 4, G = 2, D = 24, DV = 20, K_SHAW = 5 };

static float *numbers(uint64_t seed, int64_t count)
{
    at_rng rng = {.seed = seed};
    float *x = malloc((size_t)count * sizeof *x + 1);
    assert_non_null(x);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)at_rng_normal(&rng);
    return x;
}

/* One call with everything that comes out of it. */
typedef struct run {
    int64_t batch, queries, keys;
    float *out, *log_prob, *dq, *dk, *dv, *entropy, *key_sums, *dp[4];
    int32_t *argmax;
    size_t dp_bytes[4];
} run;

static void run_free(run *r)
{
    void *all[] = {r->out,      r->log_prob, r->dq,    r->dk,    r->dv,    r->entropy,
                   r->key_sums, r->argmax,   r->dp[0], r->dp[1], r->dp[2], r->dp[3]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

typedef struct setting {
    const char *score, *normaliser, *window, *position;
} setting;

static const setting settings[] = {
    {"scaled", "softmax", "global", "none"},
    {"scaled", "softmax", "causal", "none"},
    {"dot", "softmax", "sliding:9", "alibi"},
    {"scaled", "softmax", "causal", "shaw:5"},
    {"general", "sparsemax", "global", "t5"},
    {"scaled", "entmax15", "causal", "shaw:5"},
    {"additive", "softmax", "local-p:6", "none"},
    {"scaled", "sigmoid", "local-m:7", "rope"},
    {"scaled", "relu", "causal", "t5"},
    {"dot", "hard", "causal", "none"},
    {"additive:relu", "softmax", "causal", "none"},
    {"scaled", "softmax", "local-p:6", "shaw:5"},
};

/* q, k, v hold `batch` rows of `queries` and `keys`; lengths may be NULL. */
static run run_setting(const setting *s, int64_t batch, int64_t queries, int64_t keys, const float *q, const float *k,
                       const float *v, const float *g, const int64_t *lengths, int64_t start, bool backward,
                       bool summaries)
{
    run r = {.batch = batch, .queries = queries, .keys = keys};
    size_t rows = (size_t)(batch * H * queries);
    r.out = calloc(rows * DV + 1, sizeof(float));
    r.log_prob = calloc(rows + 1, sizeof(float));
    r.entropy = calloc(rows + 1, sizeof(float));
    r.argmax = calloc(rows + 1, sizeof(int32_t));
    r.key_sums = calloc((size_t)(batch * H * keys) + 1, sizeof(float));
    r.dq = calloc(rows * D + 1, sizeof(float));
    r.dk = calloc((size_t)(batch * keys * G * D) + 1, sizeof(float));
    r.dv = calloc((size_t)(batch * keys * G * DV) + 1, sizeof(float));
    int count = 0;
    struct {
        const char *name;
        int rank;
        int64_t dim[2];
        bool used;
    } all[] = {
        {"W", 2, {D, D}, strncmp(s->score, "general", 7) == 0},
        {"W", 2, {9, D}, strncmp(s->score, "additive", 8) == 0},
        {"U", 2, {9, D}, strncmp(s->score, "additive", 8) == 0},
        {"v", 1, {9, 0}, strncmp(s->score, "additive", 8) == 0},
        {"wK", 2, {2 * K_SHAW + 1, D}, strncmp(s->position, "shaw", 4) == 0},
        {"wV", 2, {2 * K_SHAW + 1, DV}, strncmp(s->position, "shaw", 4) == 0},
        {"bias", 2, {32, H}, strncmp(s->position, "t5", 2) == 0},
        {"Wp", 2, {6, D}, strncmp(s->window, "local-p", 7) == 0},
        {"vp", 1, {6, 0}, strncmp(s->window, "local-p", 7) == 0},
    };
    float *values[8] = {0};
    at_parameter list[8];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!all[i].used)
            continue;
        int64_t n = all[i].dim[0] * (all[i].rank == 2 ? all[i].dim[1] : 1);
        values[count] = numbers(900 + i, n);
        for (int64_t e = 0; e < n; e++)
            values[count][e] *= 0.3f;
        list[count] = (at_parameter){
            .name = all[i].name, .rank = all[i].rank, .dim = {all[i].dim[0], all[i].dim[1]}, .value = values[count]};
        count++;
    }
    at_settings names = {.score = s->score,
                         .normaliser = s->normaliser,
                         .window = s->window,
                         .position = s->position,
                         .heads = H,
                         .kv_heads = G};
    bool hard = strcmp(s->normaliser, "hard") == 0;
    at_call call = {.batch = batch,
                    .queries = queries,
                    .keys = keys,
                    .query_width = H * D,
                    .key_width = G * D,
                    .value_width = G * DV,
                    .query = q,
                    .key = k,
                    .value = v,
                    .lengths = lengths,
                    .query_start = start,
                    .parameters = list,
                    .parameter_count = count,
                    .out = r.out,
                    .argmax = summaries ? r.argmax : NULL,
                    .entropy = summaries ? r.entropy : NULL,
                    .key_sums = summaries ? r.key_sums : NULL,
                    .log_prob = hard ? r.log_prob : NULL};
    if (backward) {
        call.grad_out = g;
        call.grad_query = r.dq;
        call.grad_key = r.dk;
        call.grad_value = r.dv;
        for (int i = 0; i < count && i < 4; i++) {
            int64_t n = list[i].dim[0] * (list[i].rank == 2 ? list[i].dim[1] : 1);
            list[i].grad = r.dp[i] = calloc((size_t)n, sizeof(float));
            r.dp_bytes[i] = (size_t)n * sizeof(float);
        }
    }
    at_error error = {0};
    if (!at_attend(&names, &call, &error))
        fail_msg("%s/%s/%s/%s: %s", s->score, s->normaliser, s->window, s->position, error.text);
    for (int i = 0; i < count; i++)
        free(values[i]);
    return r;
}

static void same(const void *a, const void *b, size_t bytes, const setting *s, const char *what)
{
    if (memcmp(a, b, bytes) != 0)
        fail_msg("%s/%s/%s/%s: %s differs", s->score, s->normaliser, s->window, s->position, what);
}

static void same_run(const run *a, const run *b, const setting *s, const char *what)
{
    size_t rows = (size_t)(a->batch * H * a->queries);
    same(a->out, b->out, rows * DV * 4, s, what);
    same(a->argmax, b->argmax, rows * 4, s, what);
    same(a->entropy, b->entropy, rows * 4, s, what);
    same(a->key_sums, b->key_sums, (size_t)(a->batch * H * a->keys) * 4, s, what);
    same(a->dq, b->dq, rows * D * 4, s, what);
    same(a->dk, b->dk, (size_t)(a->batch * a->keys * G * D) * 4, s, what);
    same(a->dv, b->dv, (size_t)(a->batch * a->keys * G * DV) * 4, s, what);
}

#define EACH_SETTING for (const setting *s = settings; s < settings + sizeof settings / sizeof *settings; s++)

/* 1, 2, 3 and 5 threads; one batch row, so that heads are fewer than threads and get cut. */
static void test_threads(void **state)
{
    (void)state;
    for (int64_t batch = 1; batch <= 3; batch += 2) {
        int64_t n = batch == 1 ? 333 : 65;
        float *q = numbers(1, batch * n * H * D), *k = numbers(2, batch * n * G * D),
              *v = numbers(3, batch * n * G * DV);
        float *g = numbers(4, batch * n * H * DV);
        EACH_SETTING
        {
            at_threads_set(1);
            run one = run_setting(s, batch, n, n, q, k, v, g, NULL, 0, true, true);
            for (int threads = 2; threads <= 5; threads += threads == 3 ? 2 : 1) {
                at_threads_set(threads);
                run many = run_setting(s, batch, n, n, q, k, v, g, NULL, 0, true, true);
                same_run(&one, &many, s, "a run on several threads");
                for (int i = 0; i < 4 && one.dp[i]; i++)
                    same(one.dp[i], many.dp[i], one.dp_bytes[i], s, "a parameter's gradient on several threads");
                run_free(&many);
            }
            run_free(&one);
        }
        free(q);
        free(k);
        free(v);
        free(g);
    }
    at_threads_set(0);
}

/* A batch row alone, and the same row among others with padding full of NaN. */
static void test_neighbours_and_padding(void **state)
{
    (void)state;
    enum { B = 3, N = 37, PAD = 300, ROW = 1 };
    float *q = numbers(5, N * H * D), *k = numbers(6, N * G * D), *v = numbers(7, N * G * DV),
          *g = numbers(8, N * H * DV);
    float *q3 = numbers(9, B * N * H * D), *k3 = numbers(10, B * PAD * G * D), *v3 = numbers(11, B * PAD * G * DV);
    float *g3 = numbers(12, B * N * H * DV);
    for (int64_t i = 0; i < PAD * G * D; i++)
        k3[ROW * PAD * G * D + i] = i < N * G * D ? k[i] : (float)(0.0 / 0.0);
    for (int64_t i = 0; i < PAD * G * DV; i++)
        v3[ROW * PAD * G * DV + i] = i < N * G * DV ? v[i] : (float)(0.0 / 0.0);
    memcpy(q3 + ROW * N * H * D, q, N * H * D * sizeof *q);
    memcpy(g3 + ROW * N * H * DV, g, N * H * DV * sizeof *g);
    int64_t lengths[B] = {PAD, N, 0}, alone[1] = {N};
    EACH_SETTING
    {
        run one = run_setting(s, 1, N, N, q, k, v, g, alone, 0, true, true);
        run three = run_setting(s, B, N, PAD, q3, k3, v3, g3, lengths, 0, true, true);
        same(one.out, three.out + ROW * N * H * DV, N * H * DV * 4, s, "out among neighbours");
        same(one.dq, three.dq + ROW * N * H * D, N * H * D * 4, s, "dq among neighbours");
        same(one.dk, three.dk + ROW * PAD * G * D, N * G * D * 4, s, "dk among neighbours");
        same(one.dv, three.dv + ROW * PAD * G * DV, N * G * DV * 4, s, "dv among neighbours");
        for (int64_t i = N * G * D; i < PAD * G * D; i++)
            assert_true(three.dk[ROW * PAD * G * D + i] == 0);
        for (int64_t i = 0; i < N * H * DV; i++)
            assert_true(three.out[2 * N * H * DV + i] == 0); /* no keys: zeros */
        run_free(&one);
        run_free(&three);
    }
    free(q), free(k), free(v), free(g), free(q3), free(k3), free(v3), free(g3);
}

/* Step-wise decoding: query i alone, at its position, has the bits it has among all. */
static void test_one_at_a_time(void **state)
{
    (void)state;
    enum { N = 290 };
    float *q = numbers(13, N * H * D), *k = numbers(14, N * G * D), *v = numbers(15, N * G * DV);
    static const int64_t places[] = {0, 1, 2, 15, 16, 17, 95, 96, 97, 200, 255, 256, 257, N - 3};
    EACH_SETTING
    {
        run all = run_setting(s, 1, N, N, q, k, v, NULL, NULL, 0, false, true);
        for (size_t p = 0; p < sizeof places / sizeof *places; p++)
            for (int64_t count = 1; count <= 3; count += 2) {
                int64_t i = places[p];
                run some = run_setting(s, 1, count, N, q + i * H * D, k, v, NULL, NULL, i, false, count > 1);
                same(all.out + i * H * DV, some.out, (size_t)(count * H * DV) * 4, s, "a query by itself");
                run_free(&some);
            }
        run_free(&all);
    }
    free(q), free(k), free(v);
}

/* A product's row has the same bits whatever the number of rows, its place, the layout of B and the threads. */
static void test_gemm_rows(void **state)
{
    (void)state;
    enum { M = 131, N = 77, K = 519 };
    float *a = numbers(16, M * K), *b = numbers(17, K * N), *bt = malloc(K * N * 4), *at = malloc(M * K * 4);
    float *bias = numbers(18, N), *whole = malloc(M * N * 4), *part = malloc(M * N * 4);
    for (int64_t p = 0; p < K; p++)
        for (int64_t j = 0; j < N; j++)
            bt[j * K + p] = b[p * N + j];
    for (int64_t i = 0; i < M; i++)
        for (int64_t p = 0; p < K; p++)
            at[p * M + i] = a[i * K + p];
    void *packed = NULL;
    assert_int_equal(posix_memalign(&packed, AT_ALIGN, (size_t)at_gemm_packed_size(K, N) * 4), 0);
    at_arena *arena = at_arena_new();
    static const char *const sets[] = {"plain", "avx2"};
    for (int set = 0; set < 2; set++) {
        if (!at_kernels_choose(sets[set]))
            continue;
        at_gemm_pack(b, N, 1, K, N, packed);
        at_gemm g = {.m = M,
                     .n = N,
                     .k = K,
                     .a = a,
                     .a_row = K,
                     .a_col = 1,
                     .b = b,
                     .b_row = N,
                     .b_col = 1,
                     .c = whole,
                     .c_row = N,
                     .bias = bias,
                     .act = AT_ACT_TANH};
        at_threads_set(1);
        assert_true(at_gemm_run(&g, arena));
        for (int64_t m = 1; m <= M; m += m < 14 ? 1 : 39)
            for (int64_t from = 0; from + m <= M; from += 29)
                for (int form = 0; form < 4; form++)
                    for (int threads = 1; threads <= 3; threads += 2) {
                        at_gemm h = g;
                        h.m = m;
                        h.a = a + from * K;
                        h.c = part;
                        if (form == 1) {
                            h.b = bt;
                            h.b_row = 1;
                            h.b_col = K;
                        } else if (form == 2) {
                            h.packed = packed;
                        } else if (form == 3) {
                            h.a = at + from;
                            h.a_row = 1;
                            h.a_col = M;
                        }
                        at_threads_set(threads);
                        assert_true(at_gemm_run(&h, arena));
                        assert_memory_equal(part, whole + from * N, (size_t)(m * N) * 4);
                    }
    }
    at_kernels_choose(NULL);
    at_threads_set(0);
    at_arena_free(arena);
    free(packed), free(a), free(b), free(bt), free(at), free(bias), free(whole), free(part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_neighbours_and_padding),
        cmocka_unit_test(test_one_at_a_time),
        cmocka_unit_test(test_gemm_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
