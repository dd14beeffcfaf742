/* The operator on arrays of doubles, in which the demos compute by hand. */
#include <math.h>
#include <stdlib.h>

#include "demo/demo.h"

/* The floats of one call: handed out from one block, and copied back where doubles are wanted. */
typedef struct room {
    float *block;
    size_t used;
} room;

static float *take(room *r, size_t count)
{
    float *at = r->block ? r->block + r->used : NULL;
    r->used += count;
    return at;
}

static float *narrowed(room *r, const double *from, size_t count)
{
    float *to = take(r, count);
    for (size_t i = 0; to && i < count; i++)
        to[i] = (float)from[i];
    return to;
}

/* The values of the keys, or the identity. */
static float *values_of(room *r, const demo_call *c, int width)
{
    if (c->value)
        return narrowed(r, c->value, (size_t)(c->keys * width));
    float *to = take(r, (size_t)(c->keys * width));
    for (int i = 0; to && i < c->keys * width; i++)
        to[i] = i / width == i % width;
    return to;
}

static void widened(double *to, const float *from, size_t count)
{
    for (size_t i = 0; to && from && i < count; i++)
        to[i] = (double)from[i];
}

/* Lays out the arrays of the call, and runs it if there is a block for them. */
static bool lay_out(const demo_call *c, room *r, at_error *error)
{
    enum { MOST = sizeof c->parameters / sizeof *c->parameters };
    const int width = c->value ? c->value_width : c->keys, heads = c->settings.heads ? c->settings.heads : 1;
    const size_t Q = (size_t)c->queries, K = (size_t)c->keys, rows = (size_t)heads * Q;
    const size_t out_count = Q * (size_t)width, q_count = Q * (size_t)c->width, k_count = K * (size_t)c->width;
    at_parameter parameters[MOST];
    int count = 0;
    for (; count < MOST && c->parameters[count].name; count++) {
        const demo_parameter *p = &c->parameters[count];
        const size_t size = (size_t)((p->rows ? p->rows : 1) * p->columns);
        parameters[count] = (at_parameter){
            p->name, p->rows ? 2 : 1, {p->rows ? p->rows : p->columns, p->columns}, narrowed(r, p->value, size), NULL};
    }
    at_call call = {.batch = 1,
                    .queries = c->queries,
                    .keys = c->keys,
                    .query_width = c->width,
                    .key_width = c->width,
                    .value_width = width,
                    .query = narrowed(r, c->query, q_count),
                    .key = narrowed(r, c->key, k_count),
                    .value = values_of(r, c, width),
                    .parameters = parameters,
                    .parameter_count = count,
                    .sample = c->sample,
                    .seed = c->seed,
                    .out = take(r, out_count),
                    .weights = take(r, rows * K),
                    .entropy = c->entropy ? take(r, rows) : NULL,
                    .log_prob = c->log_prob ? take(r, rows) : NULL,
                    .grad_out = c->grad_out ? narrowed(r, c->grad_out, out_count) : NULL,
                    .grad_query = c->grad_query ? take(r, q_count) : NULL,
                    .grad_key = c->grad_key ? take(r, k_count) : NULL,
                    .grad_value = c->grad_value ? take(r, K * (size_t)width) : NULL};
    float *signal = c->grad_log_prob != 0 ? take(r, rows) : NULL;
    for (size_t i = 0; signal && i < rows; i++)
        signal[i] = (float)c->grad_log_prob;
    call.grad_log_prob = signal;
    if (!r->block)
        return true;
    if (!at_attend(&c->settings, &call, error))
        return false;
    widened(c->out, call.out, out_count);
    widened(c->weights, call.weights, rows * K);
    widened(c->entropy, call.entropy, rows);
    widened(c->log_prob, call.log_prob, rows);
    widened(c->grad_query, call.grad_query, q_count);
    widened(c->grad_key, call.grad_key, k_count);
    widened(c->grad_value, call.grad_value, K * (size_t)width);
    return true;
}

bool demo_attend(const demo_call *call, at_error *error)
{
    room r = {0};
    lay_out(call, &r, error); /* counts */
    r = (room){.block = malloc((r.used + 1) * sizeof *r.block)};
    const bool done = r.block ? lay_out(call, &r, error) : fail(error, AT_MEMORY, "out of memory for the demo");
    free(r.block);
    return done;
}

void demo_softmax(const double *e, int count, double *w)
{
    double top = e[0], sum = 0;
    for (int j = 1; j < count; j++)
        top = fmax(top, e[j]);
    for (int j = 0; j < count; j++)
        sum += w[j] = exp(e[j] - top);
    for (int j = 0; j < count; j++)
        w[j] /= sum;
}

bool demo_agrees(const double *by_hand, const double *returned, int count, double tolerance, at_error *error)
{
    for (int i = 0; i < count; i++)
        if (!(fabs(by_hand[i] - returned[i]) <= tolerance * fmax(1, fabs(by_hand[i]))))
            return fail(error, AT_FAILED, "the operator returns %.7f where the demo computes %.7f by hand", returned[i],
                        by_hand[i]);
    return true;
}
