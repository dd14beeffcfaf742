/* at_attend: known results, and properties that hold for every setting. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attend.h"
#include "base/rng.h"

enum { B = 2, Q = 5, K = 6, H = 4, D = 4, DV = 3, A = 3 };

static float noise[4096];

static int fill(void **state)
{
    (void)state;
    at_rng rng = {.seed = 11};
    for (int i = 0; i < 4096; i++)
        noise[i] = (float)at_rng_normal(&rng);
    return 0;
}

/* A setting and the parameters it takes. */
typedef struct setting {
    at_settings s;
    at_parameter p[5];
    int count;
} setting;

#define P(NAME, AT, ...)                                                                                               \
    {                                                                                                                  \
        .name = NAME, .value = noise + (AT), .rank = sizeof((int[]){__VA_ARGS__}) / sizeof(int), .dim = {              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

/* One row for each score, normaliser, window and position, and a few combinations. */
static const setting settings[] = {
    {.s = {.score = "dot"}},
    {.s = {.score = "scaled", .kv_heads = 2}},
    {.s = {.score = "general", .window = "causal"}, .p = {P("W", 100, D, D)}, .count = 1},
    {.s = {.score = "general", .kv_heads = 1}, .p = {P("W", 100, H, D, D)}, .count = 1},
    {.s = {.score = "additive", .kv_heads = 2},
     .p = {P("v", 100, A), P("W", 110, A, D), P("U", 130, A, D), P("b", 150, A)},
     .count = 4},
    {.s = {.score = "additive:relu", .kv_heads = 2, .window = "causal"},
     .p = {P("v", 100, H, A), P("W", 120, H, A, D), P("U", 180, H, A, D)},
     .count = 3},
    {.s = {.score = "additive:sigmoid", .position = "shaw:2", .normaliser = "entmax15"},
     .p = {P("v", 100, A), P("W", 110, A, D), P("U", 130, A, D), P("wV", 150, 5, DV)},
     .count = 4},
    {.s = {.normaliser = "sparsemax", .window = "sliding:2"}},
    {.s = {.normaliser = "entmax15", .window = "local-m:1"}},
    {.s = {.normaliser = "sigmoid", .position = "alibi"}},
    {.s = {.normaliser = "relu", .position = "rope"}},
    {.s = {.normaliser = "hard", .window = "causal"}},
    {.s = {.window = "local-p:2", .kv_heads = 2}, .p = {P("Wp", 100, A, D), P("vp", 120, A)}, .count = 2},
    {.s = {.position = "shaw:2", .window = "causal"}, .p = {P("wK", 100, 5, D), P("wV", 130, 5, DV)}, .count = 2},
    {.s = {.position = "shaw:1", .kv_heads = 1}, .p = {P("wK", 100, H, 3, D), P("wV", 150, H, 3, DV)}, .count = 2},
    {.s = {.position = "rope", .window = "causal"}},
    {.s = {.position = "alibi", .window = "causal"}},
    {.s = {.position = "t5:8", .window = "causal"}, .p = {P("bias", 100, 8, H)}, .count = 1},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static const char *text_of(const setting *which)
{
    static char text[200];
    const at_settings *s = &which->s;
    snprintf(text, sizeof text, "%s %s %s %s%s", s->score ? s->score : "-", s->normaliser ? s->normaliser : "-",
             s->window ? s->window : "-", s->position ? s->position : "-", s->plain ? ", plain" : "");
    return text;
}

/* All results of a call of [b, q, k]. */
typedef struct outcome {
    float *out, *weights, *entropy, *key_sums, *log_prob, *dq, *dk, *dv, *dp[5];
    int32_t *argmax;
    size_t memory_used;
} outcome;

static float *room(int64_t count)
{
    float *memory = malloc((size_t)(count + 1) * sizeof *memory);
    for (int64_t i = 0; i <= count; i++)
        memory[i] = 77; /* shows what a call does not fill */
    return memory;
}

static int64_t parameter_size(const at_parameter *p)
{
    int64_t size = 1;
    for (int i = 0; i < p->rank; i++)
        size *= p->dim[i];
    return size;
}

static void release(outcome *o)
{
    float *all[] = {o->out, o->weights, o->entropy, o->key_sums, o->log_prob, o->dq,   o->dk,
                    o->dv,  o->dp[0],   o->dp[1],   o->dp[2],    o->dp[3],    o->dp[4]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(o->argmax);
    *o = (outcome){0};
}

/* Fills in a call over the given arrays and runs it, forward and backward. */
static outcome run_call(const setting *which, at_call call)
{
    const int64_t G = which->s.kv_heads ? which->s.kv_heads : H;
    const int64_t rows = call.batch * H * call.queries;
    at_settings s = which->s;
    s.heads = H;
    at_parameter p[5];
    outcome o = {.out = room(call.batch * call.queries * H * DV),
                 .weights = room(rows * call.keys),
                 .entropy = room(rows),
                 .key_sums = room(call.batch * H * call.keys),
                 .dq = room(call.batch * call.queries * H * D),
                 .dk = room(call.batch * call.keys * G * D),
                 .dv = room(call.batch * call.keys * G * DV),
                 .argmax = malloc((size_t)(rows + 1) * sizeof(int32_t))};
    memcpy(p, which->p, sizeof p);
    for (int i = 0; i < which->count; i++)
        p[i].grad = o.dp[i] = room(parameter_size(&p[i]));
    call.query_width = H * D, call.key_width = G * D, call.value_width = G * DV;
    call.parameters = p, call.parameter_count = which->count;
    call.out = o.out, call.weights = o.weights, call.argmax = o.argmax, call.entropy = o.entropy;
    call.key_sums = o.key_sums, call.grad_query = o.dq, call.grad_key = o.dk, call.grad_value = o.dv;
    call.grad_out = noise + 1000;
    if (s.normaliser && strcmp(s.normaliser, "hard") == 0) {
        call.log_prob = o.log_prob = room(rows);
        call.grad_log_prob = noise + 1500;
    }
    at_error error = {0};
    if (!at_attend(&s, &call, &error))
        fail_msg("%s: %s", text_of(which), error.text);
    o.memory_used = call.memory_used;
    return o;
}

static outcome run(const setting *which, int64_t b, int64_t q, int64_t k, const int64_t *lengths)
{
    return run_call(which, (at_call){.batch = b,
                                     .queries = q,
                                     .keys = k,
                                     .query = noise + 200,
                                     .key = noise + 500,
                                     .value = noise + 700,
                                     .lengths = lengths});
}

typedef void each_setting(const setting *which);

static void for_each(each_setting *check)
{
    for (int i = 0; i < SETTINGS; i++)
        for (int plain = 0; plain < 2; plain++) {
            setting which = settings[i];
            which.s.plain = plain;
            check(&which);
        }
}

static void same(const setting *which, const char *what, const float *a, const float *b, int64_t count)
{
    if (memcmp(a, b, (size_t)count * sizeof *a) != 0)
        fail_msg("%s: %s changes", text_of(which), what);
}

static void near(const setting *which, const char *what, const float *a, const float *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabsf(a[i] - b[i]) <= 2e-6f * (1 + fabsf(b[i]))))
            fail_msg("%s: %s[%d] is %.8g, should be %.8g", text_of(which), what, (int)i, (double)a[i], (double)b[i]);
}

/* ---- Numbers that must come out ---- */

static void worked_example(void **state)
{
    (void)state;
    const float x[9] = {1, 3, 2, 1, 1, 3, 1, 2, 1};
    const float z[9] = {1, 2.957691f, 2.011295f, 1, 1.540148f, 2.722573f, 1, 2.864164f, 2};
    const float printed[9] = {0.97f, 0.02f, 0.01f, 0.27f, 0.73f, 0, 0.90f, 0.05f, 0.05f};
    for (int plain = 0; plain < 2; plain++) {
        at_error error = {0};
        float out[9], weights[9], key_sums[3], entropy[3];
        int32_t argmax[3];
        at_call call = {.batch = 1,
                        .queries = 3,
                        .keys = 3,
                        .query_width = 3,
                        .key_width = 3,
                        .value_width = 3,
                        .query = x,
                        .key = x,
                        .value = x,
                        .out = out,
                        .weights = weights,
                        .argmax = argmax,
                        .entropy = entropy,
                        .key_sums = key_sums};
        assert_true(at_attend(&(at_settings){.score = "dot", .plain = plain}, &call, &error));
        for (int i = 0; i < 9; i++) {
            assert_true(fabsf(out[i] - z[i]) <= 1e-6f);
            assert_true(fabsf(weights[i] - printed[i]) < 0.01f); /* two digits, adjusted to sum to one */
        }
        assert_true(argmax[0] == 0 && argmax[1] == 1 && argmax[2] == 0);
        for (int j = 0; j < 3; j++) {
            assert_true(fabsf(key_sums[j] - weights[j] - weights[3 + j] - weights[6 + j]) <= 1e-6f);
            float h = 0;
            for (int k = 0; k < 3; k++)
                h -= weights[3 * j + k] * logf(weights[3 * j + k]);
            assert_true(fabsf(entropy[j] - h) <= 1e-6f);
        }
        assert_true(call.memory_used > 0);
    }
}

static void rows_sum_to_one_or_are_zero(const setting *which)
{
    const char *n = which->s.normaliser ? which->s.normaliser : "softmax";
    const bool predicted = which->s.window && strncmp(which->s.window, "local-p", 7) == 0;
    const int64_t lengths[] = {K - 1, 0};
    outcome o = run(which, B, Q, K, lengths);
    for (int row = 0; row < B * H * Q; row++) {
        float sum = 0;
        for (int j = 0; j < K; j++) {
            float w = o.weights[row * K + j];
            assert_true(w >= 0 && w <= 1);
            if (row >= H * Q || j == K - 1)
                assert_true(w == 0);
            sum += w;
        }
        if (row >= H * Q)
            assert_true(o.argmax[row] == -1 && o.entropy[row] == 0 && (!o.log_prob || o.log_prob[row] == 0));
        else if (strcmp(n, "sigmoid") != 0 && !predicted && !(strcmp(n, "relu") == 0 && sum == 0))
            assert_true(fabsf(sum - 1) <= 2e-6f);
    }
    const int64_t G = which->s.kv_heads ? which->s.kv_heads : H;
    for (int i = Q * H * DV; i < B * Q * H * DV; i++)
        assert_true(o.out[i] == 0);
    for (int i = Q * H * D; i < B * Q * H * D; i++)
        assert_true(o.dq[i] == 0);
    for (int i = (int)(K * G * D); i < B * K * G * D; i++)
        assert_true(o.dk[i] == 0);
    for (int i = (int)(K * G * DV); i < B * K * G * DV; i++)
        assert_true(o.dv[i] == 0);
    release(&o);
}

static void weights_and_empty_rows(void **state)
{
    (void)state;
    for_each(rows_sum_to_one_or_are_zero);
}

/* The weights of a row are its scores, normalised; a key outside the window has the score -inf. Asking for scores changes
 * no other result of the plain path. */
static void scores_become_weights(const setting *which)
{
    const int64_t lengths[] = {6, 4};
    float *scores = room(B * H * Q * K);
    setting plain = *which;
    plain.s.plain = true;
    outcome o = run(&plain, B, Q, K, lengths);
    outcome with = run_call(which, (at_call){.batch = B,
                                             .queries = Q,
                                             .keys = K,
                                             .query = noise + 200,
                                             .key = noise + 500,
                                             .value = noise + 700,
                                             .lengths = lengths,
                                             .scores = scores});
    same(which, "out", o.out, with.out, B * Q * H * DV);
    same(which, "weights", o.weights, with.weights, B * H * Q * K);
    same(which, "dq", o.dq, with.dq, B * Q * H * D);
    const char *name = which->s.normaliser ? which->s.normaliser : "softmax";
    const bool prior = which->s.window && strncmp(which->s.window, "local-p", 7) == 0;
    int outside = 0;
    for (int row = 0; row < B * H * Q; row++) {
        const float *e = scores + row * K, *w = o.weights + row * K;
        double sum = 0, expected[K];
        for (int j = 0; j < K; j++) {
            assert_true(isfinite(e[j]) || e[j] == -INFINITY);
            outside += e[j] == -INFINITY;
            assert_true(e[j] != -INFINITY || w[j] == 0);
            expected[j] = strcmp(name, "sigmoid") == 0 ? 1 / (1 + exp(-(double)e[j]))
                          : strcmp(name, "relu") == 0  ? fmax(0, (double)e[j])
                                                       : exp((double)e[j]);
            sum += expected[j];
        }
        if (prior || strcmp(name, "sparsemax") == 0 || strcmp(name, "entmax15") == 0 || strcmp(name, "hard") == 0)
            continue;
        for (int j = 0; j < K; j++)
            if (!(fabs(expected[j] / (strcmp(name, "sigmoid") == 0 || sum == 0 ? 1 : sum) - (double)w[j]) <= 1e-6))
                fail_msg("%s: w[%d][%d] is %g, and its score %g", text_of(which), row, j, (double)w[j], (double)e[j]);
    }
    assert_true(outside >= H * Q * 2); /* those beyond the lengths, and those of the window */
    free(scores);
    release(&with);
    release(&o);
}

static void scores(void **state)
{
    (void)state;
    for_each(scores_become_weights);
}

/* No batch, no queries or no keys: the outputs that are not empty are zeros. */
static void sizes_of_zero_work(const setting *which)
{
    outcome o = run(which, B, Q, 0, NULL);
    for (int i = 0; i < B * Q * H * DV; i++)
        assert_true(o.out[i] == 0);
    for (int i = 0; i < B * Q * H * D; i++)
        assert_true(o.dq[i] == 0);
    for (int i = 0; i < which->count; i++)
        for (int64_t j = 0; j < parameter_size(&which->p[i]); j++)
            assert_true(o.dp[i][j] == 0);
    for (int i = 0; i < B * H * Q; i++)
        assert_true(o.argmax[i] == -1 && o.entropy[i] == 0);
    release(&o);
    o = run(which, B, 0, K, NULL);
    for (int i = 0; i < B * H * K; i++)
        assert_true(o.key_sums[i] == 0);
    release(&o);
    o = run(which, 0, Q, K, NULL);
    release(&o);
}

static void sizes_of_zero(void **state)
{
    (void)state;
    for_each(sizes_of_zero_work);
}

/* ---- What must not matter ---- */

/* NaN in every key and value past the lengths changes no bit. */
static void padding_is_never_seen(const setting *which)
{
    const int64_t G = which->s.kv_heads ? which->s.kv_heads : H, lengths[] = {4, 3};
    float keys[B * K * H * D], values[B * K * H * DV];
    memcpy(keys, noise + 500, sizeof keys);
    memcpy(values, noise + 700, sizeof values);
    for (int b = 0; b < B; b++)
        for (int64_t j = lengths[b]; j < K; j++) {
            for (int64_t d = 0; d < G * D; d++)
                keys[(b * K + j) * G * D + d] = NAN;
            for (int64_t d = 0; d < G * DV; d++)
                values[(b * K + j) * G * DV + d] = NAN;
        }
    outcome clean = run(which, B, Q, K, lengths);
    at_call call = {
        .batch = B, .queries = Q, .keys = K, .query = noise + 200, .key = keys, .value = values, .lengths = lengths};
    outcome dirty = run_call(which, call);
    same(which, "out", clean.out, dirty.out, B * Q * H * DV);
    same(which, "weights", clean.weights, dirty.weights, B * H * Q * K);
    same(which, "entropy", clean.entropy, dirty.entropy, B * H * Q);
    same(which, "key sums", clean.key_sums, dirty.key_sums, B * H * K);
    same(which, "grad_query", clean.dq, dirty.dq, B * Q * H * D);
    same(which, "grad_key", clean.dk, dirty.dk, B * K * G * D);
    same(which, "grad_value", clean.dv, dirty.dv, B * K * G * DV);
    for (int i = 0; i < which->count; i++)
        same(which, which->p[i].name, clean.dp[i], dirty.dp[i], parameter_size(&which->p[i]));
    release(&clean);
    release(&dirty);
}

static void nan_in_padding(void **state)
{
    (void)state;
    for_each(padding_is_never_seen);
}

/* Under a causal window the last key is NaN: only the rows that see it may change. */
static void nan_outside_the_span(void **state)
{
    (void)state;
    for (int i = 0; i < SETTINGS; i++)
        for (int plain = 0; plain < 2; plain++) {
            setting which = settings[i];
            const int64_t G = which.s.kv_heads ? which.s.kv_heads : H;
            const bool predicted = which.s.window && strncmp(which.s.window, "local-p", 7) == 0;
            float keys[K * H * D], values[K * H * DV];
            if (predicted)
                continue;
            which.s.plain = plain;
            which.s.window = "causal";
            memcpy(keys, noise + 500, sizeof keys);
            memcpy(values, noise + 700, sizeof values);
            for (int64_t d = 0; d < G * D; d++)
                keys[(Q - 1) * G * D + d] = NAN;
            for (int64_t d = 0; d < G * DV; d++)
                values[(Q - 1) * G * DV + d] = NAN;
            outcome clean = run(&which, 1, Q, K, NULL);
            at_call call = {.batch = 1, .queries = Q, .keys = K, .query = noise + 200, .key = keys, .value = values};
            outcome dirty = run_call(&which, call);
            same(&which, "out", clean.out, dirty.out, (Q - 1) * H * DV);
            for (int h = 0; h < H; h++)
                same(&which, "weights", clean.weights + h * Q * K, dirty.weights + h * Q * K, (Q - 1) * K);
            same(&which, "grad_query", clean.dq, dirty.dq, (Q - 1) * H * D);
            release(&clean);
            release(&dirty);
        }
}

/* A batch row alone, and without its padding, has the same bits as within a batch. */
static void neighbours_do_not_matter(const setting *which)
{
    const int64_t G = which->s.kv_heads ? which->s.kv_heads : H, lengths[] = {K, 4};
    outcome both = run(which, B, Q, K, lengths);
    at_call call = {.batch = 1,
                    .queries = Q,
                    .keys = 4,
                    .query = noise + 200 + Q * H * D,
                    .key = noise + 500 + K * G * D,
                    .value = noise + 700 + K * G * DV};
    outcome alone = run_call(which, call);
    same(which, "out", alone.out, both.out + Q * H * DV, Q * H * DV);
    for (int row = 0; row < H * Q; row++)
        same(which, "weights", alone.weights + row * 4, both.weights + (H * Q + row) * K, 4);
    release(&both);
    release(&alone);
}

static void batch_neighbours_and_padding(void **state)
{
    (void)state;
    for_each(neighbours_do_not_matter);
}

/* One query at a time over the keys so far equals the causal call over all of them. */
static void steps_equal_one_call(const setting *which)
{
    setting causal = *which;
    if (which->s.window && strncmp(which->s.window, "local-p", 7) == 0)
        return; /* its centre depends on the number of keys */
    causal.s.window = "causal";
    outcome whole = run(&causal, 1, Q, Q, NULL);
    for (int i = 0; i < Q; i++) {
        at_call call = {.batch = 1,
                        .queries = 1,
                        .keys = i + 1,
                        .query = noise + 200 + i * H * D,
                        .key = noise + 500,
                        .value = noise + 700,
                        .query_start = i};
        outcome step = run_call(&causal, call);
        near(&causal, "step's out", step.out, whole.out + i * H * DV, H * DV);
        for (int h = 0; h < H; h++)
            near(&causal, "step's weights", step.weights + h * (i + 1), whole.weights + (h * Q + i) * Q, i + 1);
        release(&step);
    }
    release(&whole);
}

static void stepwise_decoding(void **state)
{
    (void)state;
    for_each(steps_equal_one_call);
}

/* ---- Both paths ---- */

static void fused_is_plain(void **state)
{
    (void)state;
    for (int i = 0; i < SETTINGS; i++) {
        setting plain = settings[i], fused = settings[i];
        const int64_t G = plain.s.kv_heads ? plain.s.kv_heads : H, lengths[] = {K, 3};
        plain.s.plain = true;
        outcome p = run(&plain, B, Q, K, lengths), f = run(&fused, B, Q, K, lengths);
        const struct {
            const char *what;
            const float *plain, *fused;
            int64_t count;
        } pairs[] = {{"out", p.out, f.out, B * Q * H * DV},        {"weights", p.weights, f.weights, B * H * Q * K},
                     {"entropy", p.entropy, f.entropy, B * H * Q}, {"key sums", p.key_sums, f.key_sums, B * H * K},
                     {"grad_query", p.dq, f.dq, B * Q * H * D},    {"grad_key", p.dk, f.dk, B * K * G * D},
                     {"grad_value", p.dv, f.dv, B * K * G * DV}};
        for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++)
            for (int64_t j = 0; j < pairs[n].count; j++)
                if (!(fabsf(pairs[n].plain[j] - pairs[n].fused[j]) <= 1e-5f * (1 + fabsf(pairs[n].plain[j]))))
                    fail_msg("%s: %s[%d]: plain %.8g, fused %.8g", text_of(&fused), pairs[n].what, (int)j,
                             (double)pairs[n].plain[j], (double)pairs[n].fused[j]);
        release(&p);
        release(&f);
    }
}

/* ---- Hard attention ---- */

static void samples_follow_the_softmax(void **state)
{
    (void)state;
    enum { DRAWS = 4000, KEYS = 5 };
    const float key[KEYS] = {0.5f, -1, 2, 0, 1}, value[KEYS] = {0}, query = 1;
    double total = 0;
    for (int j = 0; j < KEYS; j++)
        total += exp((double)key[j]);
    for (int plain = 0; plain < 2; plain++) {
        /* the same query in many batch rows: every row has its own sample */
        static float q[DRAWS], k[DRAWS * KEYS], v[DRAWS * KEYS], log_prob[DRAWS];
        static int32_t argmax[DRAWS];
        for (int i = 0; i < DRAWS; i++) {
            q[i] = query;
            memcpy(k + i * KEYS, key, sizeof key);
            memcpy(v + i * KEYS, value, sizeof value);
        }
        at_call call = {.batch = DRAWS,
                        .queries = 1,
                        .keys = KEYS,
                        .query_width = 1,
                        .key_width = 1,
                        .value_width = 1,
                        .query = q,
                        .key = k,
                        .value = v,
                        .sample = true,
                        .seed = 3,
                        .argmax = argmax,
                        .log_prob = log_prob};
        at_error error = {0};
        assert_true(at_attend(&(at_settings){.score = "dot", .normaliser = "hard", .plain = plain}, &call, &error));
        int count[KEYS] = {0};
        for (int i = 0; i < DRAWS; i++) {
            count[argmax[i]]++;
            assert_true(fabs((double)log_prob[i] - ((double)key[argmax[i]] - log(total))) <= 1e-5);
        }
        for (int j = 0; j < KEYS; j++) {
            double p = exp((double)key[j]) / total, deviation = sqrt(p * (1 - p) / DRAWS);
            assert_true(fabs(count[j] / (double)DRAWS - p) <= 4 * deviation);
        }
        /* another seed, other samples; the same seed, the same samples */
        int32_t first[DRAWS];
        memcpy(first, argmax, sizeof first);
        assert_true(at_attend(&(at_settings){.score = "dot", .normaliser = "hard", .plain = plain}, &call, &error));
        assert_memory_equal(first, argmax, sizeof first);
        call.seed = 4;
        assert_true(at_attend(&(at_settings){.score = "dot", .normaliser = "hard", .plain = plain}, &call, &error));
        assert_memory_not_equal(first, argmax, sizeof first);
    }
}

/* dq of both seeds is the sum of dq of each. */
static void both_signals_add_up(void **state)
{
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        float dq[3][Q * D], dv[3][Q * D], zeros[Q * D] = {0};
        for (int which = 0; which < 3; which++) {
            at_call call = {.batch = 1,
                            .queries = Q,
                            .keys = Q,
                            .query_width = D,
                            .key_width = D,
                            .value_width = D,
                            .query = noise + 200,
                            .key = noise + 500,
                            .value = noise + 700,
                            .grad_out = which == 1 ? NULL : noise + 1000,
                            .grad_log_prob = which == 0 ? NULL : noise + 1500,
                            .grad_query = dq[which],
                            .grad_value = dv[which]};
            at_error error = {0};
            assert_true(at_attend(&(at_settings){.normaliser = "hard", .plain = plain}, &call, &error));
        }
        assert_memory_equal(dq[0], zeros, sizeof zeros); /* the one-hot weights pass no gradient */
        assert_memory_equal(dv[1], zeros, sizeof zeros);
        assert_memory_equal(dq[1], dq[2], sizeof dq[0]);
        assert_memory_equal(dv[0], dv[2], sizeof dv[0]);
        assert_memory_not_equal(dq[1], zeros, sizeof zeros);
    }
}

/* ---- Memory ---- */

/* In the caller's memory the call has the same results; with too little it fails, and writes nothing beyond. */
static void callers_memory(const setting *which)
{
    outcome own = run(which, B, Q, K, NULL);
    size_t size = own.memory_used;
    char *memory = aligned_alloc(64, (size + 63) / 64 * 64 + 64);
    at_call call = {.batch = B,
                    .queries = Q,
                    .keys = K,
                    .query = noise + 200,
                    .key = noise + 500,
                    .value = noise + 700,
                    .memory = memory,
                    .memory_size = size};
    outcome over = run_call(which, call);
    same(which, "out in the caller's memory", own.out, over.out, B * Q * H * DV);
    same(which, "grad_query in the caller's memory", own.dq, over.dq, B * Q * H * D);
    release(&own);
    release(&over);
    if (which->count == 0) { /* every size below, in steps */
        at_settings s = which->s;
        s.heads = H;
        const int64_t G = s.kv_heads ? s.kv_heads : H;
        float *out = room(B * Q * H * DV), *dq = room(B * Q * H * D);
        call.query_width = H * D, call.key_width = G * D, call.value_width = G * DV;
        call.out = out, call.grad_query = dq, call.grad_out = noise + 1000;
        for (size_t less = 0; less < size; less += 64 * 7) {
            at_error error = {0};
            call.memory_size = less;
            if (at_attend(&s, &call, &error))
                break;
            char says[100];
            sprintf(says, "the %zu bytes of memory given are too few for this call", less);
            assert_string_equal(error.text, says);
        }
        free(out);
        free(dq);
    }
    free(memory);
}

static void memory_from_the_caller(void **state)
{
    (void)state;
    for_each(callers_memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worked_example),
        cmocka_unit_test(weights_and_empty_rows),
        cmocka_unit_test(scores),
        cmocka_unit_test(sizes_of_zero),
        cmocka_unit_test(nan_in_padding),
        cmocka_unit_test(nan_outside_the_span),
        cmocka_unit_test(batch_neighbours_and_padding),
        cmocka_unit_test(stepwise_decoding),
        cmocka_unit_test(fused_is_plain),
        cmocka_unit_test(samples_follow_the_softmax),
        cmocka_unit_test(both_signals_add_up),
        cmocka_unit_test(memory_from_the_caller),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
