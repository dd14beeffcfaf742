/* Convolutions of pictures as an encoder has them: layers such as 32x3s2 (channels x window, stride), each followed by relu. A
 * case "LAYERS of HxWxC B=N" runs N pictures of that size through them. Backward computes the gradients of the weights, and
 * of the input unless it is the grey of a picture. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cases.h"
#include "data.h"
#include "layers/layers.h"
#include "worker.h"

static const conv_case CASES[] = {
    {"16x5s2", 8, 64, 256, 1, false},
    {"32x3", 8, 32, 128, 16, false},
    {"64x3s2", 8, 32, 128, 32, false},
    {"64x3", 8, 16, 64, 64, false},
    {"64x5", 8, 16, 64, 64, false},
    {"128x3", 8, 16, 64, 128, false},
    {"16x5s2,32x3,64x3s2,64x3", 8, 64, 256, 1, false},
};

enum { MOST_PICTURES = 8 };

typedef struct ours {
    conv_case what;
    at_convolutions layers;
    at_params *params;
    at_arena *arena;
    numbers x, x_grad, seed; /* the input, its gradient, and that of the output */
    int64_t height[MOST_PICTURES], width[MOST_PICTURES];
    double checksum, squares; /* of the results, when `checks` */
    bool checks;
} ours;

static void check(ours *o, const float *x, int64_t count)
{
    o->checksum += data_checksum(x, count);
    for (int64_t i = 0; i < count; i++)
        o->squares += (double)x[i] * (double)x[i];
}

/* relu(W * x) layer by layer. */
static at_tensor *forward(ours *o, at_tape *tape, at_tensor *x)
{
    at_grids in = at_grids_make(tape, o->what.pictures, o->height, o->width);
    for (int i = 0; i < o->layers.count; i++) {
        const at_convolution *l = &o->layers.layer[i];
        const at_window window = {l->window, l->window, l->stride, l->window / 2};
        const at_grids out = at_grids_after(tape, &in, window, false);
        x = at_conv(x, &in, window, at_param(tape, o->params, l->w), at_param(tape, o->params, l->bias), AT_ACT_RELU,
                    &out);
        in = out;
    }
    return x;
}

static bool run(ours *o)
{
    const conv_case *c = &o->what;
    at_arena_reset(o->arena);
    at_tape *tape = at_tape_new(o->arena, c->backward);
    const at_shape shape = AT_SHAPE(c->pictures * c->height * c->width, c->channels);
    const bool wants_grad = c->backward && c->channels > 1;
    if (c->backward) { /* as after an update */
        at_params_changed(o->params);
        memset(at_params_grads(o->params), 0, (size_t)at_params_count(o->params) * sizeof(float));
    }
    if (wants_grad)
        memset(o->x_grad.values, 0, (size_t)o->x_grad.count * sizeof(float));
    at_tensor *y =
        forward(o, tape, at_leaf(tape, shape, o->x.values, wants_grad ? o->x_grad.values : NULL, wants_grad));
    if (y && !o->seed.values)
        o->seed = data_new(SEED_GRAD_OUT, at_shape_count(y->shape));
    if (o->checks && y)
        check(o, y->value, at_shape_count(y->shape));
    const bool done = y && (!c->backward || at_backward_from(y, o->seed.values));
    if (!done)
        fprintf(stderr, "attend: bench: %s\n", at_tape_error(tape)->text);
    return done;
}

static double ours_turn(void *context, int64_t repeats)
{
    if (!run(context))
        return -1;
    const double begin = bench_clock();
    for (int64_t i = 0; i < repeats; i++)
        run(context);
    return bench_clock() - begin;
}

/* The weights of layer i have seed SEED_PARAMETER + i, [out, window, window, C], so that outputs stay as large as inputs;
 * the biases are zeros. */
static bool make(ours *o, const conv_case *what)
{
    at_error error = {0};
    *o = (ours){.what = *what, .params = at_params_new(), .arena = at_arena_new()};
    if (!at_convolutions_parse(what->layers, &o->layers, &error) ||
        !at_convolutions_declare(o->params, "conv", what->channels, &o->layers, &error) ||
        !at_params_fix(o->params, &error)) {
        fprintf(stderr, "attend: bench: %s\n", error.text);
        return false;
    }
    for (int i = 0; i < o->layers.count; i++) {
        const at_shape shape = at_params_shape(o->params, o->layers.layer[i].w);
        float *w = at_params_value(o->params, o->layers.layer[i].w);
        const float scale = sqrtf(2 / (float)shape.dim[1]);
        for (int64_t j = 0; j < at_shape_count(shape); j++)
            w[j] = data_value(SEED_PARAMETER + (uint32_t)i, j) * scale;
    }
    const int64_t count = what->pictures * what->height * what->width * what->channels;
    o->x = data_new(SEED_QUERY, count);
    o->x_grad = numbers_new(count);
    for (int i = 0; i < MOST_PICTURES; i++) {
        o->height[i] = what->height;
        o->width[i] = what->width;
    }
    return true;
}

/* One call with the checksum of all that it computes. */
static bool check_results(ours *o)
{
    o->checks = true;
    bool done = run(o);
    if (done && o->what.backward) {
        for (int i = 0; i < o->layers.count; i++) {
            const int w = o->layers.layer[i].w;
            check(o, at_params_grads(o->params) + (at_params_value(o->params, w) - at_params_values(o->params)),
                  at_shape_count(at_params_shape(o->params, w)));
        }
        if (o->what.channels > 1)
            check(o, o->x_grad.values, o->x_grad.count);
    }
    o->checks = false;
    return done;
}

static void release(ours *o)
{
    at_params_free(o->params);
    at_arena_free(o->arena);
    numbers_free(&o->x);
    numbers_free(&o->x_grad);
    numbers_free(&o->seed);
}

/* 2 multiply-adds for each output and each number under its window, zeros at the borders included; the same again for the
 * gradient of the weights and for that of the input. */
static double flops_of(const ours *o)
{
    const conv_case *c = &o->what;
    double height = (double)c->height, width = (double)c->width, channels = (double)c->channels, sum = 0;
    for (int i = 0; i < o->layers.count; i++) {
        const at_convolution *l = &o->layers.layer[i];
        height = ceil(height / (double)l->stride);
        width = ceil(width / (double)l->stride);
        const double once = 2.0 * (double)c->pictures * height * width * (double)l->channels *
                            (double)(l->window * l->window) * channels;
        sum += once * (!c->backward ? 1 : i > 0 || c->channels > 1 ? 3 : 2);
        channels = (double)l->channels;
    }
    return sum;
}

static void run_case(conv_case what)
{
    char name[100];
    snprintf(name, sizeof name, "%s%s of %lldx%lldx%lld B=%lld", what.backward ? "backward " : "", what.layers,
             (long long)what.height, (long long)what.width, (long long)what.channels, (long long)what.pictures);
    ours o;
    if (!bench_wants(name) || !make(&o, &what))
        return;
    race r = {0};
    race_add(&r, "attend", NULL, ours_turn, &o);
    if (check_results(&o)) {
        if (bench_options.rivals)
            workers_add_convolution(&r, &what, o.checksum, sqrt(o.squares));
        race_run(&r);
        for (int i = 0; i < r.count; i++) {
            if (r.entry[i].failed)
                continue;
            row line = row_of(&r, i, "conv", name, flops_of(&o));
            if (i == 0)
                line.ratio_to_best_rival = race_over_best(&r, 0, 1, r.count);
            report_row(&line);
        }
        workers_free();
    }
    release(&o);
}

void bench_conv(void)
{
    for (int i = 0; i < (int)(sizeof CASES / sizeof *CASES); i++)
        for (int backward = 0; backward < 2; backward++) {
            conv_case what = CASES[i];
            what.backward = backward;
            if (bench_options.quick)
                what.pictures = 1;
            run_case(what);
        }
}
