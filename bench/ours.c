#include "ours.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static float *own(ours *o, numbers x)
{
    if (o->owned_count == (int)(sizeof o->owned / sizeof *o->owned))
        abort();
    o->owned[o->owned_count++] = x;
    return x.values;
}

static float *scratch(ours *o, int64_t count)
{
    return own(o, numbers_new(count));
}

static void add_parameter(ours *o, const char *name, int64_t rows, int64_t columns, float scale, bool backward)
{
    int i = o->call.parameter_count++;
    numbers x = data_new(SEED_PARAMETER + (uint32_t)i, rows * columns);
    for (int64_t j = 0; j < x.count; j++)
        x.values[j] *= scale;
    at_parameter made = {.name = name, .rank = rows == 1 ? 1 : 2, .dim = {rows, columns}, .value = own(o, x)};
    if (rows == 1)
        made.dim[0] = columns;
    if (backward)
        made.grad = scratch(o, x.count);
    o->parameter[i] = made;
}

static void ask_for(ours *o, visible extra)
{
    at_call *c = &o->call;
    int64_t heads = o->settings.heads;
    if (extra == SUMMARIES) {
        c->argmax = (int32_t *)scratch(o, c->batch * heads * c->queries);
        c->entropy = scratch(o, c->batch * heads * c->queries);
        c->key_sums = scratch(o, c->batch * heads * c->keys);
    } else if (extra == SOME_WEIGHTS) {
        /* Every hundredth row. */
        c->row_count = c->queries / 100;
        o->rows = malloc((size_t)c->row_count * sizeof *o->rows);
        for (int64_t i = 0; i < c->row_count; i++)
            o->rows[i] = 100 * i + 50;
        c->rows = o->rows;
        c->weights = scratch(o, c->batch * heads * c->row_count * c->keys);
    }
}

static bool run(ours *o)
{
    at_error error = {0};
    if (at_attend(&o->settings, &o->call, &error))
        return true;
    fprintf(stderr, "attend: bench: %s\n", error.text);
    return false;
}

bool ours_make(ours *o, const attention_case *what, visible extra, bool own_memory)
{
    int64_t width = what->H * what->D, q_count = what->B * what->Q * width, k_count = what->B * what->K * width;
    *o = (ours){.threads = bench_options.threads};
    o->settings = (at_settings){.heads = (int)what->H, .window = what->causal ? "causal" : "global"};
    at_call *c = &o->call;
    *c = (at_call){.batch = what->B,
                   .queries = what->Q,
                   .keys = what->K,
                   .query_width = width,
                   .key_width = width,
                   .value_width = width,
                   .parameters = o->parameter};
    c->query = own(o, data_new(SEED_QUERY, q_count));
    c->key = own(o, data_new(SEED_KEY, k_count));
    c->value = own(o, data_new(SEED_VALUE, k_count));
    c->out = scratch(o, q_count);
    if (what->backward) {
        c->grad_out = own(o, data_new(SEED_GRAD_OUT, q_count));
        c->grad_query = scratch(o, q_count);
        c->grad_key = scratch(o, k_count);
        c->grad_value = scratch(o, k_count);
    }
    if (what->shaw > 0) {
        snprintf(o->position, sizeof o->position, "shaw:%lld", (long long)what->shaw);
        o->settings.position = o->position;
        add_parameter(o, "wK", 2 * what->shaw + 1, what->D, 1, what->backward);
        add_parameter(o, "wV", 2 * what->shaw + 1, what->D, 1, what->backward);
    }
    if (what->additive > 0) {
        o->settings.score = "additive";
        add_parameter(o, "W", what->additive, what->D, 0.125f, what->backward);
        add_parameter(o, "U", what->additive, what->D, 0.125f, what->backward);
        add_parameter(o, "v", 1, what->additive, 1, what->backward);
    }
    ask_for(o, extra);
    at_threads_set(o->threads); /* memory grows with the threads, so it is measured with as many as will be used */
    if (!run(o)) {
        ours_free(o);
        return false;
    }
    if (own_memory) {
        /* What the call used, plus some for alignment. */
        c->memory_size = c->memory_used + c->memory_used / 8 + (1 << 16);
        c->memory = scratch(o, (int64_t)(c->memory_size / sizeof(float)));
    }
    return true;
}

void ours_free(ours *o)
{
    for (int i = 0; i < o->owned_count; i++)
        numbers_free(&o->owned[i]);
    free(o->rows);
    *o = (ours){0};
}

double ours_turn(void *context, int64_t repeats)
{
    ours *o = context;
    at_threads_set(o->threads);
    /* The contestant before has filled the caches with its data: the first of the short calls is not counted. */
    if (o->each < 0.01 && !run(o))
        return -1;
    double begin = bench_clock();
    for (int64_t i = 0; i < repeats; i++) {
        if (!run(o))
            return -1;
    }
    double seconds = bench_clock() - begin;
    o->each = seconds / (double)repeats;
    return seconds;
}

static void add_checksum(const float *x, int64_t count, double *checksum, double *squares)
{
    if (!x)
        return;
    *checksum += data_checksum(x, count);
    for (int64_t i = 0; i < count; i++)
        *squares += (double)x[i] * x[i];
}

void ours_checksum(const ours *o, double *checksum, double *size)
{
    const at_call *c = &o->call;
    int64_t q_count = c->batch * c->queries * c->query_width, k_count = c->batch * c->keys * c->key_width;
    double squares = 0;
    *checksum = 0;
    add_checksum(c->out, q_count, checksum, &squares);
    add_checksum(c->grad_query, q_count, checksum, &squares);
    add_checksum(c->grad_key, k_count, checksum, &squares);
    add_checksum(c->grad_value, k_count, checksum, &squares);
    *size = sqrt(squares);
}
