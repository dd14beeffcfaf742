/* One recurrent layer against one self-attention layer of the same width as the sequence grows. The recurrent layer
 * does one step after another, each a product with a single row; self-attention computes all positions at once, but
 * its work grows with the square of the length. */
#include <stdio.h>

#include "cases.h"
#include "data.h"
#include "kernels/gemm.h"

enum { WIDTH = 512, HEADS = 8 };
static const char BENCH[] = "rnn-vs-attention";

/* h_t = tanh(W x_t + U h_{t-1} + b) */
typedef struct recurrent {
    int64_t n;
    const float *x;     /* [n, WIDTH] */
    const float *W, *U; /* packed */
    const float *b;     /* [WIDTH] */
    float *h;           /* [n + 1, WIDTH]; row 0 is the state before the first step, zeros */
    at_arena *arena;
} recurrent;

static bool recurrent_forward(const recurrent *layer)
{
    /* The input's term of all steps at once: rows 1 .. n of h become W x + b. */
    at_gemm input = {.m = layer->n,
                     .n = WIDTH,
                     .k = WIDTH,
                     .a = layer->x,
                     .a_row = WIDTH,
                     .a_col = 1,
                     .packed = layer->W,
                     .c = layer->h + WIDTH,
                     .c_row = WIDTH,
                     .bias = layer->b};
    bool done = at_gemm_run(&input, layer->arena);
    /* Then one step after another: h_t = tanh(h_t + U h_{t-1}), in place. */
    for (int64_t t = 1; t <= layer->n && done; t++) {
        at_gemm step = {.m = 1,
                        .n = WIDTH,
                        .k = WIDTH,
                        .a = layer->h + (t - 1) * WIDTH,
                        .a_row = WIDTH,
                        .a_col = 1,
                        .packed = layer->U,
                        .c = layer->h + t * WIDTH,
                        .c_row = WIDTH,
                        .accumulate = true,
                        .act = AT_ACT_TANH};
        done = at_gemm_run(&step, layer->arena);
    }
    return done;
}

static double recurrent_turn(void *context, int64_t repeats)
{
    double begin = bench_clock();
    for (int64_t i = 0; i < repeats; i++) {
        if (!recurrent_forward(context))
            return -1;
    }
    return bench_clock() - begin;
}

typedef struct self_attention {
    at_settings settings;
    at_call call;
} self_attention;

static double self_attention_turn(void *context, int64_t repeats)
{
    self_attention *layer = context;
    double begin = bench_clock();
    for (int64_t i = 0; i < repeats; i++) {
        at_error error = {0};
        if (!at_attend(&layer->settings, &layer->call, &error)) {
            fprintf(stderr, "attend: bench: %s\n", error.text);
            return -1;
        }
    }
    return bench_clock() - begin;
}

/* The weights of both layers: small enough that tanh does not saturate. */
static numbers weights(uint32_t seed)
{
    numbers w = data_new(seed, WIDTH * WIDTH);
    for (int64_t i = 0; i < w.count; i++)
        w.values[i] *= 0.03f;
    return w;
}

static numbers packed(const numbers *w)
{
    numbers p = numbers_new(at_gemm_packed_size(WIDTH, WIDTH));
    at_gemm_pack(w->values, 1, WIDTH, WIDTH, WIDTH, p.values);
    return p;
}

static void report(const race *r, int entry, const char *name, int64_t n, double flops, double steps)
{
    if (r->entry[entry].failed)
        return;
    row line = row_of(r, entry, BENCH, name, flops);
    line.us_per_token = 1e6 * race_seconds(r, entry) / (double)n;
    line.sequential_steps = steps;
    report_row(&line);
}

static void run_length(int64_t n, const numbers w[4], const numbers *W, const numbers *U, at_arena *arena)
{
    char name[32];
    snprintf(name, sizeof name, "n=%lld", (long long)n);
    if (!bench_wants(name))
        return;
    numbers x = data_new(SEED_QUERY, n * WIDTH), h = numbers_new((n + 1) * WIDTH), out = numbers_new(n * WIDTH);
    numbers b = data_new(SEED_PARAMETER, WIDTH);
    for (int i = 0; i < WIDTH; i++)
        h.values[i] = 0;
    recurrent rnn = {
        .n = n, .x = x.values, .W = W->values, .U = U->values, .b = b.values, .h = h.values, .arena = arena};
    static const char *const NAMES[] = {"WQ", "WK", "WV", "WO"};
    at_parameter projections[4];
    for (int i = 0; i < 4; i++)
        projections[i] = (at_parameter){.name = NAMES[i], .rank = 2, .dim = {WIDTH, WIDTH}, .value = w[i].values};
    self_attention attention = {.settings = {.heads = HEADS},
                                .call = {.batch = 1,
                                         .queries = n,
                                         .keys = n,
                                         .query_width = WIDTH,
                                         .key_width = WIDTH,
                                         .value_width = WIDTH,
                                         .query = x.values,
                                         .key = x.values,
                                         .value = x.values,
                                         .parameters = projections,
                                         .parameter_count = 4,
                                         .out = out.values}};
    race r = {0};
    race_add(&r, "attend", "recurrent", recurrent_turn, &rnn);
    race_add(&r, "attend", "self-attention", self_attention_turn, &attention);
    /* The first call measures the memory that the others need, so that none of them allocates. */
    numbers memory = {0};
    if (self_attention_turn(&attention, 1) >= 0) {
        memory = numbers_new((int64_t)(attention.call.memory_used / sizeof(float)) * 9 / 8 + (1 << 14));
        attention.call.memory = memory.values;
        attention.call.memory_size = (size_t)memory.count * sizeof(float);
    }
    race_run(&r);
    double product = 2.0 * (double)n * WIDTH * WIDTH;
    report(&r, 0, name, n, 2 * product, (double)n);
    report(&r, 1, name, n, 4 * product + 4.0 * (double)n * (double)n * WIDTH, 1);
    numbers_free(&x);
    numbers_free(&h);
    numbers_free(&out);
    numbers_free(&b);
    numbers_free(&memory);
}

void bench_rnn_vs_attention(void)
{
    at_arena *arena = at_arena_new();
    numbers w[4];
    for (int i = 0; i < 4; i++)
        w[i] = weights(SEED_PARAMETER + 1 + (uint32_t)i);
    numbers W = packed(&w[0]), U = packed(&w[1]);
    for (int64_t n = 16; n <= (bench_options.quick ? 64 : 4096); n *= 2)
        run_length(n, w, &W, &U, arena);
    for (int i = 0; i < 4; i++)
        numbers_free(&w[i]);
    numbers_free(&W);
    numbers_free(&U);
    at_arena_free(arena);
}
