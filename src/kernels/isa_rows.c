/* exp, tanh and sigmoid over rows; copies, sums and products of rows. */
#include "kernels/isa_internal.h"
#include "kernels/micro_internal.h"

/* out[i] = f(x[i]). Two vectors to a turn: their chains of operations are independent, and laid side by side (which is
 * the option's part) they keep the units busy that one chain leaves waiting. The tail goes through a padded vector, so
 * an element's bits do not depend on its position. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("schedule-insns")
#endif
#define OVER_ROWS(name, f)                                                                                             \
    static void name(at_real *out, const at_real *x, int64_t count)                                                    \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (; i + 2 * LANES <= count; i += 2 * LANES) {                                                               \
            vec first = f(v_load(x + i)), second = f(v_load(x + i + LANES));                                           \
            v_store(out + i, first);                                                                                   \
            v_store(out + i + LANES, second);                                                                          \
        }                                                                                                              \
        for (int64_t rest; i < count; i += rest) {                                                                     \
            at_real tail[LANES] = {0};                                                                                 \
            rest = count - i < LANES ? count - i : LANES;                                                              \
            memcpy(tail, x + i, (size_t)rest * sizeof *x);                                                             \
            v_store(tail, f(v_load(tail)));                                                                            \
            memcpy(out + i, tail, (size_t)rest * sizeof *x);                                                           \
        }                                                                                                              \
    }

OVER_ROWS(rows_exp, v_exp)
OVER_ROWS(rows_tanh, v_tanh)
OVER_ROWS(rows_sigmoid, v_sigmoid)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

static void copy(const row_copy *job)
{
    const int64_t size = job->size, padded = job->padded;
    at_real *to = job->to;
    const at_real *from = job->from;
    for (int64_t i = 0; i < job->rows; i++, to += job->to_row, from += job->from_row) {
        at_real scalar = job->factors ? job->factors[i] : job->factor;
        vec f = v_set(scalar);
        int64_t c = 0;
        for (; c + WIDTH <= size; c += WIDTH) {
            v_store(to + c, f * v_load(from + c));
            v_store(to + c + LANES, f * v_load(from + c + LANES));
        }
        for (; c < size; c++)
            to[c] = scalar * from[c];
        for (; c < padded; c++)
            to[c] = 0;
    }
}

static void add(at_real *to, int64_t to_row, const at_real *from, int64_t from_row, int64_t rows, int64_t size,
                at_real factor)
{
    vec f = v_set(factor);
    for (int64_t i = 0; i < rows; i++, to += to_row, from += from_row) {
        int64_t c = 0;
        for (; c + LANES <= size; c += LANES)
            v_store(to + c, v_fma(f, v_load(from + c), v_load(to + c)));
        for (; c < size; c++)
            to[c] = factor * from[c] + to[c];
    }
}

static at_real dot(const at_real *x, const at_real *y, int64_t size)
{
    vec sum = v_set(0);
    int64_t c = 0;
    for (; c + LANES <= size; c += LANES)
        sum = v_fma(v_load(x + c), v_load(y + c), sum);
    at_real total = v_sum(sum);
    for (; c < size; c++)
        total = x[c] * y[c] + total;
    return total;
}

/* x - x is 0, or NaN for what is not finite. Four sums, so that none waits for the last. */
static bool all_finite(const at_real *x, int64_t x_row, int64_t rows, int64_t size)
{
    vec sum[4] = {v_set(0), v_set(0), v_set(0), v_set(0)};
    at_real rest = 0;
    for (int64_t i = 0; i < rows; i++, x += x_row) {
        int64_t c = 0;
        for (; c + 4 * LANES <= size; c += 4 * LANES)
#pragma GCC unroll 4
            for (int l = 0; l < 4; l++)
                sum[l] += v_load(x + c + l * LANES) - v_load(x + c + l * LANES);
        for (; c + LANES <= size; c += LANES)
            sum[0] += v_load(x + c) - v_load(x + c);
        for (; c < size; c++)
            rest += x[c] - x[c];
    }
    return v_sum((sum[0] + sum[1]) + (sum[2] + sum[3])) + rest == 0;
}

const row_kernels AT_ISA_NAME(at_row_kernels) = {rows_exp, rows_tanh, rows_sigmoid, copy, add, dot, all_finite};
