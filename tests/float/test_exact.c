/* Exactness: the same bits for any number of threads, whatever else is in the batch, however long the padding, and
 * one query at a time or all at once. Settings come from a list and from the catalogue, so that a new score or
 * normaliser is checked as soon as it is listed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attend.h"
#include "attention/attention.h"
#include "base/rng.h"
#include "kernels/gemm.h"
#include "kernels/rows.h"

enum { H = 4, G = 2, D = 24, DV = 20, A = 9, MOST_SETTINGS = 200, MOST_PARAMETERS = AT_AXES * AT_MOST_PARAMETERS };

static float *numbers(uint64_t seed, int64_t count)
{
    at_rng rng = {.seed = seed};
    float *x = malloc((size_t)count * sizeof *x + 1);
    assert_non_null(x);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)at_rng_normal(&rng);
    return x;
}

/* ---- Settings ---- */

typedef struct setting {
    const char *score, *normaliser, *window, *position;
    bool plain;
} setting;

static const char *const chosen[][AT_AXES] = {
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
enum { CHOSEN = sizeof chosen / sizeof *chosen };

static setting settings[MOST_SETTINGS];
static int setting_count;

/* "shaw:5", "additive": the entry's name and, where it needs a number, one. */
static const char *text_of(const at_entry *entry)
{
    static char text[MOST_SETTINGS][40];
    static int used;
    const bool number = entry->argument[0] && entry->argument[0] != '[';
    assert_true(used < MOST_SETTINGS);
    snprintf(text[used], sizeof text[used], number ? "%s:5" : "%s", entry->name);
    return text[used++];
}

/* The list, then each entry of the catalogue with the defaults of the other axes; all of it on both paths. */
static int collect(void **state)
{
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        for (int i = 0; i < CHOSEN; i++) {
            assert_true(setting_count < MOST_SETTINGS);
            settings[setting_count++] = (setting){chosen[i][0], chosen[i][1], chosen[i][2], chosen[i][3], plain};
        }
        for (int i = 0; at_catalogue(i); i++) {
            const at_entry *entry = at_catalogue(i);
            setting s = {"scaled", "softmax", "causal", "none", plain};
            const char **axis = strcmp(entry->axis, "score") == 0        ? &s.score
                                : strcmp(entry->axis, "normaliser") == 0 ? &s.normaliser
                                : strcmp(entry->axis, "window") == 0     ? &s.window
                                                                         : &s.position;
            *axis = text_of(entry);
            assert_true(setting_count < MOST_SETTINGS);
            settings[setting_count++] = s;
        }
    }
    return 0;
}

/* ---- One call ---- */

/* The arrays hold `batch` rows of `queries` and `keys`. */
typedef struct inputs {
    int64_t batch, queries, keys;
    const float *q, *k, *v;
    const float *g;         /* dL/d out, NULL: no backward pass */
    const int64_t *lengths; /* may be NULL */
    int64_t start;
    bool summaries;
} inputs;

/* All results of a call. */
typedef struct run {
    int64_t batch, queries, keys;
    float *out, *log_prob, *dq, *dk, *dv, *entropy, *key_sums;
    int32_t *argmax;
    int parameters;
    float *dp[MOST_PARAMETERS];
    size_t dp_bytes[MOST_PARAMETERS];
} run;

static void run_free(run *r)
{
    void *all[] = {r->out, r->log_prob, r->dq, r->dk, r->dv, r->entropy, r->key_sums, r->argmax};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    for (int i = 0; i < r->parameters; i++)
        free(r->dp[i]);
}

static run run_make(const inputs *in)
{
    run r = {.batch = in->batch, .queries = in->queries, .keys = in->keys};
    size_t rows = (size_t)(in->batch * H * in->queries);
    r.out = calloc(rows * DV + 1, sizeof(float));
    r.log_prob = calloc(rows + 1, sizeof(float));
    r.entropy = calloc(rows + 1, sizeof(float));
    r.argmax = calloc(rows + 1, sizeof(int32_t));
    r.key_sums = calloc((size_t)(in->batch * H * in->keys) + 1, sizeof(float));
    r.dq = calloc(rows * D + 1, sizeof(float));
    r.dk = calloc((size_t)(in->batch * in->keys * G * D) + 1, sizeof(float));
    r.dv = calloc((size_t)(in->batch * in->keys * G * DV) + 1, sizeof(float));
    return r;
}

/* Values for every parameter that the settings declare, and memory for its gradient. */
static void make_parameters(const at_attention *attention, run *r, at_parameter *list)
{
    for (int axis = 0; axis < AT_AXES; axis++)
        for (int i = 0; i < attention->declared_count[axis]; i++) {
            const at_shape shape = at_parameter_shape(attention, axis, i, false, A, D, DV);
            const int64_t n = at_shape_count(shape);
            if (shape.rank == 0)
                continue;
            float *values = numbers((uint64_t)(900 + r->parameters), n);
            for (int64_t e = 0; e < n; e++)
                values[e] *= 0.3f;
            r->dp[r->parameters] = calloc((size_t)n, sizeof(float));
            r->dp_bytes[r->parameters] = (size_t)n * sizeof(float);
            at_parameter *p = &list[r->parameters];
            *p = (at_parameter){.name = attention->declared[axis][i].name,
                                .rank = shape.rank,
                                .value = values,
                                .grad = r->dp[r->parameters]};
            memcpy(p->dim, shape.dim, sizeof p->dim);
            r->parameters++;
        }
}

static run run_setting(const setting *s, const inputs *in)
{
    const at_settings names = {.score = s->score,
                               .normaliser = s->normaliser,
                               .window = s->window,
                               .position = s->position,
                               .heads = H,
                               .kv_heads = G,
                               .plain = s->plain};
    at_attention attention;
    at_error error = {0};
    if (!at_attention_parse(&names, &attention, &error))
        fail_msg("%s", error.text);
    run r = run_make(in);
    at_parameter list[MOST_PARAMETERS];
    make_parameters(&attention, &r, list);
    at_call call = {.batch = in->batch,
                    .queries = in->queries,
                    .keys = in->keys,
                    .query_width = H * D,
                    .key_width = G * D,
                    .value_width = G * DV,
                    .query = in->q,
                    .key = in->k,
                    .value = in->v,
                    .lengths = in->lengths,
                    .query_start = in->start,
                    .parameters = list,
                    .parameter_count = r.parameters,
                    .out = r.out,
                    .argmax = in->summaries ? r.argmax : NULL,
                    .entropy = in->summaries ? r.entropy : NULL,
                    .key_sums = in->summaries ? r.key_sums : NULL,
                    .log_prob = at_attention_samples(&attention) ? r.log_prob : NULL};
    if (in->g) {
        call.grad_out = in->g;
        call.grad_query = r.dq;
        call.grad_key = r.dk;
        call.grad_value = r.dv;
    }
    /* The log-probability has its own incoming gradient: the same numbers again. */
    if (in->g && call.log_prob)
        call.grad_log_prob = in->g;
    if (!at_attend(&names, &call, &error))
        fail_msg("%s/%s/%s/%s: %s", s->score, s->normaliser, s->window, s->position, error.text);
    for (int i = 0; i < r.parameters; i++)
        free((void *)list[i].value);
    return r;
}

/* ---- Comparing ---- */

static void same(const void *a, const void *b, size_t bytes, const setting *s, const char *what)
{
    if (memcmp(a, b, bytes) != 0)
        fail_msg("%s/%s/%s/%s%s: %s differs", s->score, s->normaliser, s->window, s->position,
                 s->plain ? " on the plain path" : "", what);
}

static void same_run(const run *a, const run *b, const setting *s)
{
    size_t rows = (size_t)(a->batch * H * a->queries);
    same(a->out, b->out, rows * DV * 4, s, "out");
    same(a->log_prob, b->log_prob, rows * 4, s, "log_prob");
    same(a->argmax, b->argmax, rows * 4, s, "argmax");
    same(a->entropy, b->entropy, rows * 4, s, "entropy");
    same(a->key_sums, b->key_sums, (size_t)(a->batch * H * a->keys) * 4, s, "key_sums");
    same(a->dq, b->dq, rows * D * 4, s, "the gradient of the query");
    same(a->dk, b->dk, (size_t)(a->batch * a->keys * G * D) * 4, s, "the gradient of the key");
    same(a->dv, b->dv, (size_t)(a->batch * a->keys * G * DV) * 4, s, "the gradient of the value");
    assert_int_equal(a->parameters, b->parameters);
    for (int i = 0; i < a->parameters; i++)
        same(a->dp[i], b->dp[i], a->dp_bytes[i], s, "a parameter's gradient");
}

#define EACH_SETTING for (const setting *s = settings; s < settings + setting_count; s++)

/* 1, 2, 3 and 5 threads; one batch row, so that there are fewer heads than threads and heads are split. */
static void test_threads(void **state)
{
    (void)state;
    for (int64_t batch = 1; batch <= 3; batch += 2) {
        int64_t n = batch == 1 ? 333 : 65;
        float *q = numbers(1, batch * n * H * D), *k = numbers(2, batch * n * G * D),
              *v = numbers(3, batch * n * G * DV);
        float *g = numbers(4, batch * n * H * DV);
        const inputs in = {batch, n, n, q, k, v, g, .summaries = true};
        EACH_SETTING
        {
            at_threads_set(1);
            run one = run_setting(s, &in);
            for (int threads = 2; threads <= 5; threads += threads == 3 ? 2 : 1) {
                at_threads_set(threads);
                run many = run_setting(s, &in);
                same_run(&one, &many, s);
                run_free(&many);
            }
            run_free(&one);
        }
        free(q), free(k), free(v), free(g);
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
    memcpy(g3 + ROW * N * H, g, N * H * sizeof *g); /* as the log-probability's gradient, [B,H,Q] */
    int64_t lengths[B] = {PAD, N, 0}, alone[1] = {N};
    const inputs single = {1, N, N, q, k, v, g, alone, .summaries = true};
    const inputs among = {B, N, PAD, q3, k3, v3, g3, lengths, .summaries = true};
    EACH_SETTING
    {
        run one = run_setting(s, &single), three = run_setting(s, &among);
        same(one.out, three.out + ROW * N * H * DV, N * H * DV * 4, s, "out among neighbours");
        same(one.log_prob, three.log_prob + ROW * N * H, N * H * 4, s, "log_prob among neighbours");
        same(one.argmax, three.argmax + ROW * N * H, N * H * 4, s, "argmax among neighbours");
        same(one.entropy, three.entropy + ROW * N * H, N * H * 4, s, "entropy among neighbours");
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

/* Step-wise decoding: query i alone, at its position, has the same bits as in one call over all queries. */
static void test_one_at_a_time(void **state)
{
    (void)state;
    enum { N = 290 };
    float *q = numbers(13, N * H * D), *k = numbers(14, N * G * D), *v = numbers(15, N * G * DV);
    static const int64_t positions[] = {0, 1, 2, 15, 16, 17, 95, 96, 97, 200, 255, 256, 257, N - 3};
    EACH_SETTING
    {
        run all = run_setting(s, &(inputs){1, N, N, q, k, v, .summaries = true});
        for (size_t p = 0; p < sizeof positions / sizeof *positions; p++)
            for (int64_t count = 1; count <= 3; count += 2) {
                int64_t i = positions[p];
                run some =
                    run_setting(s, &(inputs){1, count, N, q + i * H * D, k, v, .start = i, .summaries = count > 1});
                same(all.out + i * H * DV, some.out, (size_t)(count * H * DV) * 4, s, "out of a query by itself");
                for (int64_t h = 0; h < H; h++)
                    same(all.log_prob + h * N + i, some.log_prob + h * count, (size_t)count * 4, s,
                         "log_prob of a query by itself");
                run_free(&some);
            }
        run_free(&all);
    }
    free(q), free(k), free(v);
}

/* The widest kernels have products of their own, and the bits of the fast ones. */
static void test_wide_kernels(void **state)
{
    (void)state;
    enum { B = 2, N = 75 };
    if (!at_kernels_choose(AT_FAST_KERNELS) || !at_kernels_choose(AT_WIDE_KERNELS))
        skip();
    float *q = numbers(19, B * N * H * D), *k = numbers(20, B * N * G * D), *v = numbers(21, B * N * G * DV);
    float *g = numbers(22, B * N * H * DV);
    const inputs in = {B, N, N, q, k, v, g, .summaries = true};
    EACH_SETTING
    {
        at_kernels_choose(AT_FAST_KERNELS);
        run fast = run_setting(s, &in);
        at_kernels_choose(AT_WIDE_KERNELS);
        run wide = run_setting(s, &in);
        same_run(&fast, &wide, s);
        run_free(&fast);
        run_free(&wide);
    }
    at_kernels_choose(NULL);
    free(q), free(k), free(v), free(g);
}

/* A product's row has the same bits whatever the number of rows, its index, the layout of B and the threads. */
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
    at_arena *arena = at_arena_new();
    static const char *const sets[] = {"plain", AT_FAST_KERNELS, AT_WIDE_KERNELS};
    for (int set = 0; set < 3; set++) {
        if (!at_kernels_choose(sets[set]))
            continue;
        void *packed = NULL; /* its size depends on the set */
        assert_int_equal(posix_memalign(&packed, AT_ALIGN, (size_t)at_gemm_packed_size(K, N) * 4), 0);
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
        free(packed);
    }
    at_kernels_choose(NULL);
    at_threads_set(0);
    at_arena_free(arena);
    free(a), free(b), free(bt), free(at), free(bias), free(whole), free(part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),       cmocka_unit_test(test_neighbours_and_padding),
        cmocka_unit_test(test_one_at_a_time), cmocka_unit_test(test_wide_kernels),
        cmocka_unit_test(test_gemm_rows),
    };
    return cmocka_run_group_tests(tests, collect, NULL);
}
