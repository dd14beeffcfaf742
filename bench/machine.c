#include "machine.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/threads.h"
#include "kernels/rows.h"

/* The loops below are written once and compiled once more for what the processor may or may not have. */
typedef float vector __attribute__((vector_size(32), may_alias));
typedef float wide_vector __attribute__((vector_size(64)));
enum { LANES = sizeof(vector) / sizeof(float), WIDE_LANES = sizeof(wide_vector) / sizeof(float), CHAINS = 12 };

#if defined(__x86_64__)
#define HAS_AVX2    (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#define HAS_AVX512  __builtin_cpu_supports("avx512f")
#define WITH_AVX2   __attribute__((target("avx2,fma")))
#define WITH_AVX512 __attribute__((target("avx512f")))
#else
#define HAS_AVX2   0
#define HAS_AVX512 0
#define WITH_AVX2
#define WITH_AVX512
#endif
#define INLINED static inline __attribute__((always_inline))

/* NAME(steps, start): twelve chains of vectors TYPE that do not depend on each other, so that two units with a latency of
 * four or five cycles stay busy. */
#define FMA_CHAINS(NAME, TYPE, WITH)                                                                                   \
    WITH static float NAME(int64_t steps, const float *start)                                                          \
    {                                                                                                                  \
        enum { COUNT = sizeof(TYPE) / sizeof(float) };                                                                 \
        TYPE chain[CHAINS], factor, term;                                                                              \
        for (int j = 0; j < COUNT; j++) {                                                                              \
            for (int i = 0; i < CHAINS; i++)                                                                           \
                chain[i][j] = start[i];                                                                                \
            factor[j] = start[CHAINS];                                                                                 \
            term[j] = start[CHAINS + 1];                                                                               \
        }                                                                                                              \
        for (int64_t s = 0; s < steps; s++) {                                                                          \
            _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) chain[i] = chain[i] * factor + term;             \
        }                                                                                                              \
        float sum = 0;                                                                                                 \
        for (int i = 0; i < CHAINS; i++)                                                                               \
            for (int j = 0; j < COUNT; j++)                                                                            \
                sum += chain[i][j];                                                                                    \
        return sum;                                                                                                    \
    }
FMA_CHAINS(fma_chains_plain, vector, )
FMA_CHAINS(fma_chains_avx2, vector, WITH_AVX2)
FMA_CHAINS(fma_chains_avx512, wide_vector, WITH_AVX512)

static volatile float sink; /* results are written here, so that the compiler removes no loop */

static void fma_task(void *context, int64_t index, int worker)
{
    (void)worker;
    float start[CHAINS + 2];
    for (int i = 0; i < CHAINS; i++)
        start[i] = 1.0f + (float)(index + i);
    start[CHAINS] = 1.0000001f;
    start[CHAINS + 1] = 1e-9f;
    int64_t steps = *(const int64_t *)context;
    sink = HAS_AVX512 ? fma_chains_avx512(steps, start)
           : HAS_AVX2 ? fma_chains_avx2(steps, start)
                      : fma_chains_plain(steps, start);
}

double machine_fma_peak(void)
{
    int64_t steps = 100000, tasks = 8 * bench_options.threads;
    double begin = bench_clock();
    at_parallel(tasks, bench_options.threads, fma_task, &steps);
    return (double)(tasks * steps) * CHAINS * (HAS_AVX512 ? WIDE_LANES : LANES) * 2 / (bench_clock() - begin) * 1e-9;
}

/* The sum is left in a vector: adding up its parts would cost as much as reading a few cache lines. */
INLINED void sum_of(const float *values, int64_t count, vector *total)
{
    vector sum[LANES] = {0};
    for (int64_t i = 0; i < count; i += LANES * LANES) {
#pragma GCC unroll 8
        for (int j = 0; j < LANES; j++)
            sum[j] += *(const vector *)(values + i + LANES * j);
    }
    *total += ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

WITH_AVX2 static void sum_of_avx2(const float *values, int64_t count, vector *total)
{
    sum_of(values, count, total);
}

static void sum_of_plain(const float *values, int64_t count, vector *total)
{
    sum_of(values, count, total);
}

/* Every thread reads its own part of the buffer `repeats` times. */
typedef struct reading {
    const numbers *buffer;
    int64_t repeats;
} reading;

static void read_task(void *context, int64_t index, int worker)
{
    (void)worker;
    const reading *r = context;
    enum { STEP = LANES * LANES };
    int64_t part = r->buffer->count / STEP / bench_options.threads * STEP;
    const float *from = r->buffer->values + index * part;
    vector total = {0};
    for (int64_t i = 0; i < r->repeats; i++) {
        if (HAS_AVX2)
            sum_of_avx2(from, part, &total);
        else
            sum_of_plain(from, part, &total);
    }
    for (int i = 0; i < LANES; i++)
        sink = total[i];
}

double machine_read_turn(void *buffer, int64_t repeats)
{
    reading r = {.buffer = buffer, .repeats = repeats};
    double begin = bench_clock();
    at_parallel(bench_options.threads, bench_options.threads, read_task, &r);
    return bench_clock() - begin;
}

typedef void element_loop(float *out, const float *x, int64_t count);

static double element_turn(element_loop *loop, const numbers *buffer, int64_t repeats)
{
    int64_t half = buffer->count / 2;
    double begin = bench_clock();
    for (int64_t i = 0; i < repeats; i++) {
        loop(buffer->values + half, buffer->values, half);
        loop(buffer->values + half, buffer->values, half);
    }
    return bench_clock() - begin;
}

double machine_exp_turn(void *buffer, int64_t repeats)
{
    return element_turn(at_rows_exp, buffer, repeats);
}

double machine_tanh_turn(void *buffer, int64_t repeats)
{
    return element_turn(at_rows_tanh, buffer, repeats);
}

numbers numbers_new(int64_t count)
{
    size_t bytes = ((size_t)count * sizeof(float) + 63) / 64 * 64;
    numbers buffer = {.values = aligned_alloc(64, bytes), .count = count};
    if (!buffer.values) {
        fprintf(stderr, "attend: bench: out of memory: %zu bytes are needed for a buffer\n", bytes);
        exit(1);
    }
    for (int64_t i = 0; i < count; i++)
        buffer.values[i] = -4.0f + 8.0f * (float)(i % 97) / 97;
    return buffer;
}

void numbers_free(numbers *buffer)
{
    free(buffer->values);
    *buffer = (numbers){0};
}

static double peak_turn(void *context, int64_t repeats)
{
    double *best = context;
    double begin = bench_clock();
    for (int64_t i = 0; i < repeats; i++) {
        double peak = machine_fma_peak();
        *best = peak > *best ? peak : *best;
    }
    return bench_clock() - begin;
}

static void measure_element(const char *name, turn_function *turn)
{
    if (!bench_wants(name))
        return;
    numbers buffer = numbers_new(INNERMOST);
    race r = {0};
    race_add(&r, "machine", NULL, turn, &buffer);
    race_run(&r);
    row line = row_new("machine", name, "machine", NULL);
    line.threads = 1;
    line.billion_per_second = 1e-9 * (double)buffer.count / race_seconds(&r, 0);
    report_row(&line);
    numbers_free(&buffer);
}

static void measure_read(const char *name, int64_t bytes)
{
    if (!bench_wants(name))
        return;
    numbers buffer = numbers_new(bytes / (int64_t)sizeof(float));
    race r = {0};
    race_add(&r, "machine", NULL, machine_read_turn, &buffer);
    race_run(&r);
    row line = row_new("machine", name, "machine", NULL);
    line.gb_per_second = 1e-9 * (double)bytes / race_seconds(&r, 0);
    report_row(&line);
    numbers_free(&buffer);
}

void bench_machine(void)
{
    if (bench_wants("fma peak")) {
        double best = 0;
        race r = {0};
        race_add(&r, "machine", NULL, peak_turn, &best);
        race_run(&r);
        row line = row_new("machine", "fma peak", "machine", NULL);
        line.gflops = best;
        report_row(&line);
    }
    measure_element("exp", machine_exp_turn);
    measure_element("tanh", machine_tanh_turn);
    measure_read("read 16 KB", 16 << 10);
    measure_read("read 256 KB", 256 << 10);
    measure_read("read 4 MB", 4 << 20);
    measure_read("read 16 MB", 16 << 20);
    if (!bench_options.quick)
        measure_read("read 256 MB", 256 << 20);
}
