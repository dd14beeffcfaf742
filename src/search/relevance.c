#include "search/relevance_internal.h"

#include <stdlib.h>
#include <string.h>

#include "text/vocabulary.h"

enum { MOST_LAYERS = 64 };
#define MOST_NUMBERS 0x1p24 /* on a tape, about: more target units wait for the next one */

/* The layers of one kind of attention. */
typedef struct stack {
    const at_probed *layer[MOST_LAYERS];
    int layers;
} stack;

typedef struct work {
    const at_relevance *of;
    at_arena *arena;
    double *mean;     /* A', at most [m,m], m being the larger of S and T */
    double *R_ii;     /* [S,S] */
    double *R_qq;     /* [T,T] */
    double *R_qi;     /* [T,S] */
    double *a, *b;    /* [m,m] scratch */
    double *gradient; /* [layers, H, S, S] of the encoder, summed over t */
    int encoder_layers;
    int64_t heads;
    at_error *error;
} work;

/* ---- Matrices ------------------------------------------------------------------------------------------------- */

/* out [n,m] = x [n,k] y [k,m]; with `transposed` x is [k,n]. */
static void multiply(const double *x, bool transposed, const double *y, int64_t n, int64_t k, int64_t m, double *out)
{
    memset(out, 0, (size_t)(n * m) * sizeof *out);
    for (int64_t i = 0; i < n; i++)
        for (int64_t p = 0; p < k; p++) {
            const double factor = transposed ? x[p * n + i] : x[i * k + p];
            for (int64_t j = 0; j < m && factor != 0; j++)
                out[i * m + j] += factor * y[p * m + j];
        }
}

static void add_to(double *sum, const double *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        sum[i] += x[i];
}

static void set_identity(double *R, int64_t n)
{
    memset(R, 0, (size_t)(n * n) * sizeof *R);
    for (int64_t i = 0; i < n; i++)
        R[i * n + i] = 1;
}

/* norm(R) */
static void normalise(const double *R, int64_t n, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        double sum = -1;
        for (int64_t j = 0; j < n; j++)
            sum += R[i * n + j];
        for (int64_t j = 0; j < n; j++)
            out[i * n + j] = (i == j) + (sum > 0 ? (R[i * n + j] - (i == j)) / sum : 0);
    }
}

/* A row of R, of R - I if `own` is its number, as shares of its sum. */
static void put_row(const double *R, int64_t count, int64_t own, float *out)
{
    double sum = 0;
    for (int64_t j = 0; j < count; j++)
        sum += R[j] - (j == own);
    for (int64_t j = 0; j < count; j++)
        out[j] = sum > 0 ? (float)((R[j] - (j == own)) / sum) : 0;
}

/* ---- Propagation ---------------------------------------------------------------------------------------------- */

/* A' [rows, columns] of row b of a batch. */
static void mean_of_heads(const work *w, const at_probed *call, int64_t b, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            double sum = 0;
            for (int64_t h = 0; h < call->heads; h++) {
                const double g = (double)call->gradient[((b * call->heads + h) * call->queries + i) * call->keys + j];
                sum += g > 0 ? g : 0;
            }
            w->mean[i * columns + j] = sum / (double)call->heads;
        }
}

/* R += A' R for R [n,m] */
static void pass_through(const work *w, double *R, int64_t n, int64_t m)
{
    multiply(w->mean, false, R, n, n, m, w->a);
    add_to(R, w->a, n * m);
}

static void propagate_encoder(const work *w, const stack *encoder, int64_t b)
{
    const int64_t S = w->of->S;
    set_identity(w->R_ii, S);
    for (int l = 0; l < encoder->layers; l++) {
        mean_of_heads(w, encoder->layer[l], b, S, S);
        pass_through(w, w->R_ii, S, S);
    }
}

/* R_qq and R_qi for the n target positions that unit n - 1 depends on. */
static void propagate_decoder(const work *w, const stack *self, const stack *cross, int64_t b, int64_t n)
{
    const int64_t S = w->of->S;
    set_identity(w->R_qq, n);
    memset(w->R_qi, 0, (size_t)(n * S) * sizeof *w->R_qi);
    for (int l = 0; l < self->layers; l++) {
        mean_of_heads(w, self->layer[l], b, n, n);
        pass_through(w, w->R_qq, n, n);
        if (!cross->layers)
            continue;
        pass_through(w, w->R_qi, n, S);
        mean_of_heads(w, cross->layer[l], b, n, S);
        normalise(w->R_ii, S, w->a);
        multiply(w->mean, false, w->a, n, S, S, w->b);
        normalise(w->R_qq, n, w->a);
        multiply(w->a, true, w->b, n, n, S, w->mean);
        add_to(w->R_qi, w->mean, n * S);
    }
}

/* The gradients of the encoder's weights, summed over t. */
static void gather_encoder(const work *w, const stack *encoder, int64_t b)
{
    const int64_t S = w->of->S, cells = S * S;
    for (int l = 0; l < encoder->layers; l++)
        for (int64_t h = 0; h < w->heads; h++) {
            const at_real *g = encoder->layer[l]->gradient + (b * w->heads + h) * cells;
            double *sum = w->gradient + (l * w->heads + h) * cells;
            for (int64_t i = 0; i < cells; i++)
                sum[i] += (double)g[i];
        }
}

static void finish_encoder(const work *w)
{
    const int64_t S = w->of->S, cells = S * S;
    set_identity(w->R_ii, S);
    for (int l = 0; l < w->encoder_layers; l++) {
        for (int64_t i = 0; i < cells; i++) {
            double sum = 0;
            for (int64_t h = 0; h < w->heads; h++) {
                const double g = w->gradient[(l * w->heads + h) * cells + i];
                sum += g > 0 ? g : 0;
            }
            w->mean[i] = sum / (double)w->heads;
        }
        pass_through(w, w->R_ii, S, S);
    }
    for (int64_t i = 0; i < S; i++)
        put_row(w->R_ii + i * S, S, i, w->of->encoder + i * S);
}

/* ---- Gradients ------------------------------------------------------------------------------------------------ */

/* The calls of a probe by their kinds, in the order of the layers. */
static void sort_calls(const at_probe *probe, stack stacks[3])
{
    memset(stacks, 0, 3 * sizeof *stacks);
    for (const at_probed *call = probe->last; call; call = call->previous) {
        stack *s = &stacks[call->kind];
        if (call->layer > MOST_LAYERS)
            continue;
        s->layer[call->layer - 1] = call;
        s->layers = call->layer > s->layers ? call->layer : s->layers;
    }
}

static bool read_gradients(work *w, const at_probe *probe, int64_t first, int64_t count)
{
    const int64_t S = w->of->S;
    stack stacks[3];
    sort_calls(probe, stacks);
    const stack *encoder = &stacks[AT_ENCODER_ATTENTION];
    if (encoder->layers && !w->gradient) {
        w->encoder_layers = encoder->layers;
        w->heads = encoder->layer[0]->heads;
        w->gradient = calloc((size_t)(w->encoder_layers * w->heads * S * S) + 1, sizeof *w->gradient);
        if (!w->gradient)
            return at_no_memory(w->error, "gradients of weights");
    }
    for (int64_t b = 0; b < count; b++) {
        const int64_t t = first + b;
        if (encoder->layers) {
            gather_encoder(w, encoder, b);
            propagate_encoder(w, encoder, b);
        }
        propagate_decoder(w, &stacks[AT_DECODER_ATTENTION], &stacks[AT_CROSS_ATTENTION], b, t + 1);
        put_row(w->R_qq + t * (t + 1), t + 1, t, w->of->decoder + t * w->of->T);
        if (w->of->cross)
            put_row(w->R_qi + t * S, S, -1, w->of->cross + t * S);
    }
    return true;
}

/* The target units first .. first + count - 1, each in a row of its own that ends with it. */
static bool run_units(work *w, int64_t first, int64_t count)
{
    const at_relevance *of = w->of;
    const int64_t S = of->S, n = first + count;
    at_arena_reset(w->arena);
    int32_t *source = at_arena_take(w->arena, (size_t)(count * S + 1) * sizeof *source);
    int32_t *input = at_arena_take(w->arena, (size_t)(count * n) * sizeof *input);
    int64_t *lengths = at_arena_take(w->arena, (size_t)(2 * count) * sizeof *lengths);
    at_tape *tape = at_tape_new(w->arena, true);
    if (!source || !input || !lengths || !tape)
        return at_no_memory(w->error, "gradients of weights");
    for (int64_t b = 0; b < count; b++) {
        for (int64_t i = 0; i < S; i++)
            source[b * S + i] = of->source[i];
        for (int64_t i = 0; i < n; i++)
            input[b * n + i] = i > first + b ? AT_PAD : i ? of->target[i - 1] : AT_BEGIN;
        lengths[b] = first + b + 1;
        lengths[count + b] = S;
    }
    at_probe probe = {.of_weights = true};
    const at_pass pass = {.tape = tape, .lengths = lengths, .probe = &probe};
    const at_source from = {.rows = count, .length = S, .ids = source, .lengths = lengths + count};
    at_parts encoded = at_model_encode(of->model, &pass, &from);
    at_parts state = at_model_start(of->model, &pass, &from, &encoded);
    at_tensor *logits = at_model_decode(of->model, &pass, &from, &encoded, &state, input, n).logits;
    const int64_t V = of->model->settings.target_size, all = logits ? at_shape_count(logits->shape) : 0;
    at_real *seed = logits ? at_arena_zeros(w->arena, (size_t)all * sizeof *seed) : NULL;
    if (logits && !seed)
        return at_no_memory(w->error, "gradients of weights");
    int64_t row = -1; /* of the unit in logits [sum of lengths, V] */
    for (int64_t b = 0; seed && b < count; b++) {
        row += lengths[b];
        seed[row * V + of->target[first + b]] = 1;
    }
    if (!logits || !at_backward_from(logits, seed))
        return at_fail(w->error, at_tape_error(tape)->code, "%s", at_tape_error(tape)->text);
    return read_gradients(w, &probe, first, count);
}

/* How many units from `first` on fit on a tape. */
static int64_t units_at_once(const at_relevance *of, int64_t first)
{
    const at_model_settings *s = &of->model->settings;
    const double of_row = 6 * at_model_weights(of->model, of->S, first + 1) +
                          (double)(of->S + first + 1) * (double)(s->layers * (10 * s->hidden + 2 * s->ffn)) +
                          3 * (double)(first + 1) * (double)s->target_size;
    const int64_t left = of->T - first, count = (int64_t)(MOST_NUMBERS / of_row);
    return count < 1 ? 1 : count < left ? count : left;
}

bool at_relevance_compute(const at_relevance *of, at_error *error)
{
    const int64_t S = of->S, T = of->T, most = S > T ? S : T, room = most * most + 1;
    work w = {.of = of, .arena = at_arena_new(), .error = error};
    double *memory = calloc((size_t)(6 * room), sizeof *memory);
    if (!w.arena || !memory)
        at_no_memory(error, "gradients of weights");
    w.mean = memory;
    w.R_ii = memory + room;
    w.R_qq = memory + 2 * room;
    w.R_qi = memory + 3 * room;
    w.a = memory + 4 * room;
    w.b = memory + 5 * room;
    for (int64_t first = 0, count; error->code == AT_OK && first < T; first += count) {
        count = units_at_once(of, first);
        run_units(&w, first, count);
    }
    if (error->code == AT_OK && of->encoder)
        finish_encoder(&w);
    free(w.gradient);
    free(memory);
    at_arena_free(w.arena);
    return error->code == AT_OK;
}
