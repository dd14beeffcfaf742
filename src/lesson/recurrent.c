/* "recurrent": a recurrent layer beside a layer of self-attention. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "lesson/ask_internal.h"

enum { HEADS = 4, SIZE = 64, LENGTH = 64, LONGEST = 256, LENGTHS = 3, ARRAYS = 4 };

typedef struct layers {
    float *x, *moved, *before, *after; /* [LONGEST, SIZE] */
    float *projection[4];              /* WQ, WK, WV, WO [SIZE, SIZE] */
} layers;

/* Causal, so that row t sees what a recurrent layer has seen at t. */
static bool attend(const layers *l, const float *x, int64_t n, float *out, at_error *error)
{
    static const char *const names[] = {"WQ", "WK", "WV", "WO"};
    at_parameter projections[4];
    for (int i = 0; i < 4; i++)
        projections[i] = (at_parameter){.name = names[i], .rank = 2, .dim = {SIZE, SIZE}, .value = l->projection[i]};
    const at_settings settings = {.heads = HEADS, .window = "causal"};
    at_call call = {.batch = 1,
                    .queries = n,
                    .keys = n,
                    .query_width = SIZE,
                    .key_width = SIZE,
                    .value_width = SIZE,
                    .query = x,
                    .key = x,
                    .value = x,
                    .parameters = projections,
                    .parameter_count = 4,
                    .out = out};
    return at_attend(&settings, &call, error);
}

static bool run(const layers *l, at_recurrent *cell, const float *x, int64_t n, float *out, at_error *error)
{
    return cell ? at_recurrent_run(cell, x, n, out, error) : attend(l, x, n, out, error);
}

/* How far each output moves when the first input does, the first output's distance being 1. */
static bool put_left(at_ask *ask, const layers *l, at_recurrent *cell, const char *name)
{
    float left[LENGTH];
    double first = 0;
    if (!run(l, cell, l->x, LENGTH, l->before, ask->error) || !run(l, cell, l->moved, LENGTH, l->after, ask->error))
        return false;
    for (int t = 0; t < LENGTH; t++) {
        double sum = 0;
        for (int c = 0; c < SIZE; c++) {
            const double step = (double)l->after[t * SIZE + c] - (double)l->before[t * SIZE + c];
            sum += step * step;
        }
        first = t ? first : sqrt(sum);
        left[t] = (float)(sqrt(sum) / first);
    }
    at_put_row(ask, name, left, LENGTH);
    return true;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Milliseconds of one pass: the shortest of five. */
static bool put_times(at_ask *ask, const layers *l, at_recurrent *cell, const char *name)
{
    static const int64_t lengths[LENGTHS] = {16, 64, LONGEST};
    float least[LENGTHS];
    for (int i = 0; i < LENGTHS; i++) {
        least[i] = INFINITY;
        for (int again = 0; again < 5; again++) {
            const double from = seconds();
            if (!run(l, cell, l->x, lengths[i], l->before, ask->error))
                return false;
            least[i] = fminf(least[i], (float)(1000 * (seconds() - from)));
        }
    }
    at_put_row(ask, name, least, LENGTHS);
    return true;
}

static bool answer(at_ask *ask, const layers *l, uint64_t seed)
{
    static const char *const cells[] = {"rnn", "gru", "lstm"};
    at_recurrent *cell[3] = {NULL};
    bool good = true;
    for (int i = 0; i < 3; i++)
        good = good && (cell[i] = at_recurrent_new(cells[i], SIZE, seed, ask->error));
    at_put_name(ask, "left");
    at_buffer_print(&ask->text, "{");
    for (int i = 0; i < 3; i++)
        good = good && put_left(ask, l, cell[i], cells[i]);
    good = good && put_left(ask, l, NULL, "attention");
    at_buffer_print(&ask->text, "}");
    at_put_row(ask, "lengths", (const float[]){16, 64, LONGEST}, LENGTHS);
    at_put_name(ask, "milliseconds");
    at_buffer_print(&ask->text, "{");
    good = good && put_times(ask, l, cell[0], "rnn") && put_times(ask, l, NULL, "attention");
    at_buffer_print(&ask->text, "}");
    for (int i = 0; i < 3; i++)
        at_recurrent_free(cell[i]);
    return good;
}

bool at_answer_recurrent(at_ask *ask)
{
    if (!at_ask_only(ask, ask->request, "ask seed"))
        return false;
    const uint64_t seed = (uint64_t)at_ask_count(ask, ask->request, "seed", 1, 0, INT32_MAX);
    at_rng rng = {.seed = seed};
    float *block = at_ask_floats(ask, ARRAYS * LONGEST * SIZE + 4 * SIZE * SIZE);
    if (!block || ask->error->code != AT_OK)
        return false;
    const int64_t size = LONGEST * SIZE;
    layers l = {.x = block, .moved = block + size, .before = block + 2 * size, .after = block + 3 * size};
    for (int64_t i = 0; i < size; i++)
        l.x[i] = (float)(2 * at_rng_uniform(&rng) - 1);
    memcpy(l.moved, l.x, (size_t)size * sizeof *l.x);
    for (int i = 0; i < SIZE; i++)
        l.moved[i] += 0.01F;
    for (int i = 0; i < 4; i++) {
        l.projection[i] = block + ARRAYS * size + i * SIZE * SIZE;
        for (int j = 0; j < SIZE * SIZE; j++) /* keeps the variance */
            l.projection[i][j] = (float)(sqrt(3.0 / SIZE) * (2 * at_rng_uniform(&rng) - 1));
    }
    return answer(ask, &l, seed) && ask->error->code == AT_OK;
}
