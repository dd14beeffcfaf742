/* Gradients of the operations on pictures: sizes that differ inside a batch, windows at and beyond the border, strides,
 * channels below, at and above the width of a vector. And their values against loops that follow the definition. */
#include "gradcheck.h"

#include "layers/layers.h"

enum { PICTURES = 3 };
static const int64_t heights[PICTURES] = {4, 1, 5}, widths[PICTURES] = {3, 6, 2};
enum { CELLS = 4 * 3 + 1 * 6 + 5 * 2 };

typedef struct conv_case {
    at_window window;
    at_act act;
    bool bias, square;
    bool twice; /* x is read by two convolutions */
} conv_case;

static at_tensor *conv(at_tape *tape, at_tensor *const *x, const void *context)
{
    const conv_case *how = context;
    const at_grids in = at_grids_make(tape, PICTURES, heights, widths);
    const at_grids out = at_grids_after(tape, &in, how->window, false);
    at_tensor *y = at_conv(x[0], &in, how->window, x[1], how->bias ? x[2] : NULL, how->act, &out);
    if (how->twice)
        y = at_add(y, at_conv(x[0], &in, how->window, x[1], NULL, AT_ACT_TANH, &out));
    return how->square ? at_mul(y, y) : y;
}

static void convolutions(void **state)
{
    (void)state;
    const conv_case cases[] = {{.window = {3, 3, 1, 1}, .bias = true},
                               {.window = {3, 3, 2, 1}, .act = AT_ACT_TANH, .bias = true, .square = true},
                               {.window = {1, 1, 1, 0}, .square = true},
                               {.window = {1, 1, 2, 0}, .square = true}, /* cells that no window sees */
                               {.window = {5, 5, 2, 2}, .act = AT_ACT_SIGMOID},
                               {.window = {1, 2, 1, 0}, .bias = true, .twice = true},
                               {.window = {5, 3, 3, 2}, .bias = true, .square = true},
                               {.window = {3, 3, 1, 1}, .act = AT_ACT_TANH, .bias = true, .square = true},
                               {.window = {3, 3, 2, 1}, .square = true, .twice = true},
                               {.window = {5, 5, 1, 2}}};
    const int64_t channels[] = {1, 3, 17, 33};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < sizeof channels / sizeof *channels; k++) {
            const int64_t C = channels[k], patch = cases[i].window.height * cases[i].window.width * C;
            gradcheck(&(gradcheck_case){.name = "op:conv",
                                        .build = conv,
                                        .context = &cases[i],
                                        .inputs = cases[i].bias ? 3 : 2,
                                        .shape = {AT_SHAPE(CELLS, C), AT_SHAPE(3, patch), AT_SHAPE(3)}});
        }
}

static at_tensor *max_pool(at_tape *tape, at_tensor *const *x, const void *context)
{
    const at_window *window = context;
    const at_grids in = at_grids_make(tape, PICTURES, heights, widths);
    const at_grids out = at_grids_after(tape, &in, *window, true);
    return at_max_pool(x[0], &in, *window, &out);
}

static void poolings(void **state)
{
    (void)state;
    const at_window cases[] = {{2, 2, 2, 0}, {3, 3, 2, 1}, {2, 2, 1, 0}, {3, 3, 3, 0}, {1, 2, 2, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        gradcheck(&(gradcheck_case){.name = "op:max_pool",
                                    .build = max_pool,
                                    .context = &cases[i],
                                    .inputs = 1,
                                    .shape = {AT_SHAPE(CELLS, 5)}});
}

static at_tensor *group_norm(at_tape *tape, at_tensor *const *x, const void *context)
{
    const at_grids grids = at_grids_make(tape, PICTURES, heights, widths);
    const int64_t groups = *(const int64_t *)context;
    if (groups > 0)
        return at_group_norm(x[0], &grids, groups, x[1], x[2], 1e-5, false);
    /* with relu; of a tensor that the gradient may overwrite */
    return at_group_norm(at_scale(x[0], 1), &grids, -groups, x[1], x[2], 1e-5, true);
}

static void norms(void **state)
{
    (void)state;
    const int64_t groups[] = {1, 2, 4, 8, -1, -4};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        gradcheck(&(gradcheck_case){.name = "op:group_norm",
                                    .build = group_norm,
                                    .context = &groups[i],
                                    .inputs = 3,
                                    .shape = {AT_SHAPE(CELLS, 8), AT_SHAPE(8), AT_SHAPE(8)}});
}

/* ---- The encoder ---- */

typedef struct encoder {
    at_params *params;
    at_convolutions layers;
} encoder;

static at_tensor *encode(at_tape *tape, at_tensor *const *x, const void *context)
{
    const encoder *e = context;
    const at_grids in = at_grids_make(tape, PICTURES, heights, widths);
    at_grids out;
    at_tensor *y = at_convolutions_apply(tape, e->params, &e->layers, x[0], &in, 2, &out);
    for (int p = 0; y && p < PICTURES; p++) {
        int64_t height = heights[p], width = widths[p];
        at_convolutions_size(&e->layers, &height, &width);
        assert_int_equal(out.height[p], height);
        assert_int_equal(out.width[p], width);
    }
    return y;
}

static at_params *params_of(const char *text, at_convolutions *layers)
{
    at_error error = {0};
    at_params *params = at_params_new();
    assert_true(at_convolutions_parse(text, layers, &error));
    assert_true(at_convolutions_declare(params, "encoder", 2, layers, &error));
    assert_true(at_params_fix(params, &error));
    for (int k = 0; k < at_params_number(params); k++)
        at_init_normal(params, k, 0.7, 3);
    return params;
}

static void encoders(void **state)
{
    (void)state;
    static const char *const texts[] = {"4x3", "4x5s2,6x3", "6x3p2,4x1,8x3s2", "4x3,4x3r", "4x3p2,4x1p2r,4x3r,6x3s2"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        encoder e;
        e.params = params_of(texts[i], &e.layers);
        gradcheck(&(gradcheck_case){.name = texts[i],
                                    .build = encode,
                                    .context = &e,
                                    .inputs = 1,
                                    .shape = {AT_SHAPE(CELLS, 2)},
                                    .params = e.params,
                                    .seed = 2,
                                    .tolerance = 1e-6});
        at_params_free(e.params);
    }
}

static void wrong_encoders(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "16",
                                        "16x",
                                        "x3",
                                        "16x4",
                                        "0x3",
                                        "16x3,",
                                        "16x3s",
                                        "16x3s0",
                                        "16x3p16",
                                        "16x33",
                                        "-1x3",
                                        "16x3z",
                                        "999999x3",
                                        "8x3 ,8x3",
                                        "8x3,8x3rr",
                                        "8x3,8x3rp2",
                                        "8x3,8xr3",
                                        "1x1,1x1,1x1,1x1,1x1,1x1,1x1,1x1,1x1,1x1,1x1,1x1,1x1,1x1,1x1,1x1,1x1"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        at_error error = {0};
        at_convolutions layers;
        assert_false(at_convolutions_parse(texts[i], &layers, &error));
        assert_int_equal(error.code, AT_USAGE);
        assert_non_null(strstr(error.text, "is not a list of at most 16 layers such as 16x5s2,32x3p2,32x3r: "));
    }
}

/* What the layers make of numbers: [*count], to be freed. */
static at_real *encoded(const char *text, bool zero_last, at_real last_bias, int64_t *count)
{
    at_convolutions layers;
    at_params *params = params_of(text, &layers);
    const at_convolution *last = &layers.layer[layers.count - 1];
    for (int64_t i = 0; zero_last && i < at_shape_count(at_params_shape(params, last->w)); i++)
        at_params_value(params, last->w)[i] = 0;
    for (int64_t i = 0; zero_last && i < last->channels; i++)
        at_params_value(params, last->bias)[i] = last_bias;
    at_arena *arena = at_arena_new();
    at_tape *tape = at_tape_new(arena, false);
    at_real x[CELLS * 2];
    at_rng rng = {.seed = 8};
    for (int i = 0; i < CELLS * 2; i++)
        x[i] = (at_real)at_rng_normal(&rng);
    const at_grids in = at_grids_make(tape, PICTURES, heights, widths);
    at_grids out;
    at_tensor *leaf = at_leaf(tape, AT_SHAPE(CELLS, 2), x, NULL, false);
    at_tensor *y = at_convolutions_apply(tape, params, &layers, leaf, &in, 1, &out);
    assert_non_null(y);
    *count = at_shape_count(y->shape);
    at_real *values = malloc((size_t)*count * sizeof *values);
    memcpy(values, y->value, (size_t)*count * sizeof *values);
    at_arena_free(arena);
    at_params_free(params);
    return values;
}

/* With W = 0 the norm is its bias b, and relu(x + b) is left of a layer that adds its input. */
static void added_inputs(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"4x3", "4x3,4x3r"}, {"4x3p2", "4x3p2,4x5r"}, {"4x3p2", "4x3,4x3p2r"}, {"4x3s2,4x1r", "4x3s2,4x1r,4x3r"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int b = -1; b <= 1; b++) {
            int64_t before, after;
            at_real *x = encoded(texts[i][0], false, 0, &before), *y = encoded(texts[i][1], true, b * 0.25, &after);
            assert_int_equal(before, after);
            for (int64_t k = 0; k < after; k++)
                assert_true(y[k] == fmax(0, x[k] + b * 0.25));
            free(x);
            free(y);
        }
}

static void wrong_inputs(void **state)
{
    (void)state;
    static const char *const said[][2] = {
        {"16x3r", "the first layer of '16x3r' cannot add its input (r), which is the picture"},
        {"16x3,32x3r", "layer 2 of '16x3,32x3r' adds its input (r), so it must have stride 1 and 16 channels like the "
                       "layer before it, and not stride 1 and 32 channels"},
        {"8x3,16x3,16x3s2r", "layer 3 of '8x3,16x3,16x3s2r' adds its input (r), so it must have stride 1 and 16 "
                             "channels like the layer before it, and not stride 2 and 16 channels"}};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        at_error error = {0};
        at_convolutions layers;
        assert_false(at_convolutions_parse(said[i][0], &layers, &error));
        assert_int_equal(error.code, AT_USAGE);
        assert_string_equal(error.text, said[i][1]);
    }
}

/* ---- Values by the definition ---- */

typedef struct values {
    at_arena *arena;
    at_tape *tape;
    at_grids in;
    at_tensor *x; /* [CELLS, 2] */
} values;

static values values_make(void)
{
    values v = {.arena = at_arena_new()};
    v.tape = at_tape_new(v.arena, false);
    v.in = at_grids_make(v.tape, PICTURES, heights, widths);
    v.x = at_tensor_make(v.tape, AT_SHAPE(CELLS, 2));
    for (int i = 0; i < 2 * CELLS; i++)
        v.x->value[i] = sin(1.7 * i);
    return v;
}

/* Channel c of cell (i, k) of picture p; `outside` where there is none. */
static double cell_of(const values *v, int64_t p, int64_t i, int64_t k, int64_t c, double outside)
{
    if (i < 0 || i >= heights[p] || k < 0 || k >= widths[p])
        return outside;
    return v->x->value[(v->in.first[p] + i * widths[p] + k) * 2 + c];
}

static void values_of_a_convolution(void **state)
{
    (void)state;
    const at_window w = {3, 3, 2, 1};
    values v = values_make();
    const at_grids out = at_grids_after(v.tape, &v.in, w, false);
    at_tensor *weights = at_tensor_make(v.tape, AT_SHAPE(1, 18)), *bias = at_tensor_make(v.tape, AT_SHAPE(1));
    for (int i = 0; i < 18; i++)
        weights->value[i] = cos(0.9 * i);
    *bias->value = 0.25;
    at_tensor *y = at_conv(v.x, &v.in, w, weights, bias, AT_ACT_NONE, &out);
    assert_non_null(y);
    const int64_t sizes[PICTURES][2] = {{2, 2}, {1, 3}, {3, 1}};
    for (int64_t p = 0, cell = 0; p < PICTURES; p++) {
        assert_int_equal(out.height[p], sizes[p][0]);
        assert_int_equal(out.width[p], sizes[p][1]);
        for (int64_t i = 0; i < out.height[p]; i++)
            for (int64_t k = 0; k < out.width[p]; k++, cell++) {
                double sum = 0.25;
                for (int q = 0; q < 18; q++)
                    sum += weights->value[q] * cell_of(&v, p, 2 * i - 1 + q / 6, 2 * k - 1 + q / 2 % 3, q % 2, 0);
                assert_float_equal(y->value[cell], sum, 1e-12);
            }
    }
    at_arena_free(v.arena);
}

/* Every way to compute it: short and long rows of the window, strides, with and without cells around the picture. */
static void values_of_every_window(void **state)
{
    (void)state;
    const at_window windows[] = {{3, 3, 1, 1}, {3, 3, 2, 1}, {5, 5, 1, 2}, {5, 5, 3, 2}, {1, 1, 1, 0}, {1, 1, 2, 0},
                                 {1, 2, 1, 0}, {2, 1, 1, 1}, {3, 3, 1, 2}, {7, 3, 2, 3}, {1, 7, 1, 3}, {3, 1, 1, 1}};
    enum { MADE = 21 };
    for (size_t n = 0; n < sizeof windows / sizeof *windows; n++)
        for (int64_t C = 1; C <= 140; C = C < 4 ? C + 1 : C < 36 ? 3 * C : C + 104) { /* 1 2 3 4 12 36 140 */
            const at_window w = windows[n];
            const int64_t row = w.width * C, patch = w.height * row;
            at_arena *arena = at_arena_new();
            at_tape *tape = at_tape_new(arena, false);
            const at_grids in = at_grids_make(tape, PICTURES, heights, widths);
            const at_grids out = at_grids_after(tape, &in, w, false);
            if (!at_tape_ok(tape)) { /* a picture is smaller than the window */
                at_arena_free(arena);
                continue;
            }
            at_tensor *x = at_tensor_make(tape, AT_SHAPE(CELLS, C)),
                      *weights = at_tensor_make(tape, AT_SHAPE(MADE, patch));
            for (int64_t i = 0; i < CELLS * C; i++)
                x->value[i] = sin(1.7 * (double)i);
            for (int64_t i = 0; i < MADE * patch; i++)
                weights->value[i] = cos(0.9 * (double)i);
            at_tensor *y = at_conv(x, &in, w, weights, NULL, AT_ACT_NONE, &out);
            assert_non_null(y);
            for (int64_t p = 0; p < PICTURES; p++)
                for (int64_t cell = 0; cell < out.height[p] * out.width[p]; cell++)
                    for (int64_t o = 0; o < MADE; o++) {
                        double sum = 0;
                        for (int64_t q = 0; q < patch; q++) {
                            const int64_t i = cell / out.width[p] * w.stride - w.pad + q / row;
                            const int64_t k = cell % out.width[p] * w.stride - w.pad + q % row / C;
                            if (i >= 0 && i < heights[p] && k >= 0 && k < widths[p])
                                sum += weights->value[o * patch + q] *
                                       x->value[(in.first[p] + i * widths[p] + k) * C + q % C];
                        }
                        assert_float_equal(y->value[(out.first[p] + cell) * MADE + o], sum, 1e-10);
                    }
            at_arena_free(arena);
        }
}

/* More outputs than one pass of the kernel sums up. */
static void gradients_of_a_large_picture(void **state)
{
    (void)state;
    enum { H = 23, W = 21, C = 9, MADE = 5, SIDE = 3 };
    const int64_t height = H, width = W;
    const at_window w = {SIDE, SIDE, 1, 1};
    static double x[H * W * C], x_grad[H * W * C], weights[MADE * SIDE * SIDE * C], w_grad[MADE * SIDE * SIDE * C],
        g[H * W * MADE];
    for (int i = 0; i < H * W * C; i++)
        x[i] = sin(1.7 * i);
    for (int i = 0; i < MADE * SIDE * SIDE * C; i++)
        weights[i] = cos(0.9 * i);
    for (int i = 0; i < H * W * MADE; i++)
        g[i] = sin(0.3 * i + 1);
    at_arena *arena = at_arena_new();
    at_tape *tape = at_tape_new(arena, true);
    const at_grids in = at_grids_make(tape, 1, &height, &width);
    at_tensor *tx = at_leaf(tape, AT_SHAPE(H * W, C), x, x_grad, true);
    at_tensor *tw = at_leaf(tape, AT_SHAPE(MADE, SIDE * SIDE * C), weights, w_grad, true);
    assert_true(at_backward_from(at_conv(tx, &in, w, tw, NULL, AT_ACT_NONE, &in), g));
    for (int cell = 0; cell < H * W; cell++) /* take back what each output gave */
        for (int q = 0; q < SIDE * SIDE * C; q++) {
            const int i = cell / W - 1 + q / (SIDE * C), k = cell % W - 1 + q / C % SIDE;
            if (i < 0 || i >= H || k < 0 || k >= W)
                continue;
            for (int o = 0; o < MADE; o++) {
                w_grad[o * SIDE * SIDE * C + q] -= g[cell * MADE + o] * x[(i * W + k) * C + q % C];
                x_grad[(i * W + k) * C + q % C] -= g[cell * MADE + o] * weights[o * SIDE * SIDE * C + q];
            }
        }
    for (int i = 0; i < H * W * C; i++)
        assert_float_equal(x_grad[i], 0, 1e-11);
    for (int i = 0; i < MADE * SIDE * SIDE * C; i++)
        assert_float_equal(w_grad[i], 0, 1e-11);
    at_arena_free(arena);
}

/* Their gradient is 0, whatever the memory held before. */
static void cells_that_no_window_sees(void **state)
{
    (void)state;
    enum { SIDE = 4, C = 9, COUNT = SIDE * SIDE * C };
    const int64_t side = SIDE;
    const at_window w = {1, 1, 2, 0};
    double x[COUNT] = {0}, x_grad[COUNT] = {0}, weights[C] = {0}, g[SIDE * SIDE / 4] = {1, 1, 1, 1};
    for (int i = 0; i < C; i++)
        weights[i] = i + 1;
    at_arena *arena = at_arena_new();
    double *memory = at_arena_take(arena, 100000 * sizeof *memory);
    for (int i = 0; i < 100000; i++)
        memory[i] = NAN;
    at_arena_reset(arena);
    at_tape *tape = at_tape_new(arena, true);
    const at_grids in = at_grids_make(tape, 1, &side, &side), out = at_grids_after(tape, &in, w, false);
    at_tensor *middle = at_scale(at_leaf(tape, AT_SHAPE(SIDE * SIDE, C), x, x_grad, true), 1);
    at_tensor *tw = at_leaf(tape, AT_SHAPE(1, C), weights, NULL, false);
    assert_true(at_backward_from(at_conv(middle, &in, w, tw, NULL, AT_ACT_NONE, &out), g));
    for (int i = 0; i < COUNT; i++) {
        const bool seen = i / C % SIDE % 2 == 0 && i / C / SIDE % 2 == 0;
        assert_float_equal(x_grad[i], seen ? i % C + 1 : 0, 0);
    }
    at_arena_free(arena);
}

static void values_of_a_pooling(void **state)
{
    (void)state;
    const at_window w = {2, 2, 2, 0};
    values v = values_make();
    const at_grids out = at_grids_after(v.tape, &v.in, w, true);
    at_tensor *y = at_max_pool(v.x, &v.in, w, &out);
    assert_non_null(y);
    const int64_t sizes[PICTURES][2] = {{2, 2}, {1, 3}, {3, 1}}; /* rounded up: the last window may be partial */
    for (int64_t p = 0, at = 0; p < PICTURES; p++) {
        assert_int_equal(out.height[p], sizes[p][0]);
        assert_int_equal(out.width[p], sizes[p][1]);
        for (int64_t i = 0; i < out.height[p]; i++)
            for (int64_t k = 0; k < out.width[p]; k++)
                for (int64_t c = 0; c < 2; c++, at++) {
                    double most = -9;
                    for (int q = 0; q < 4; q++)
                        most = fmax(most, cell_of(&v, p, 2 * i + q / 2, 2 * k + q % 2, c, -9));
                    assert_true(y->value[at] == most);
                }
    }
    at_arena_free(v.arena);
}

static void values_of_a_norm(void **state)
{
    (void)state;
    values v = values_make();
    at_tensor *gain = at_tensor_make(v.tape, AT_SHAPE(2)), *bias = at_tensor_make(v.tape, AT_SHAPE(2));
    for (int c = 0; c < 2; c++) {
        gain->value[c] = 2 + c;
        bias->value[c] = c;
    }
    at_tensor *y = at_group_norm(v.x, &v.in, 2, gain, bias, 1e-5, false); /* a channel is a group */
    at_tensor *cut = at_group_norm(v.x, &v.in, 2, gain, bias, 1e-5, true);
    assert_non_null(y);
    assert_non_null(cut);
    for (int64_t i = 0; i < at_shape_count(y->shape); i++)
        assert_true(cut->value[i] == fmax(y->value[i], 0));
    for (int64_t p = 0; p < PICTURES; p++)
        for (int64_t c = 0; c < 2; c++) {
            const int64_t from = v.in.first[p], to = v.in.first[p + 1];
            double mean = 0, square = 0;
            for (int64_t i = from; i < to; i++)
                mean += v.x->value[2 * i + c] / (double)(to - from);
            for (int64_t i = from; i < to; i++)
                square += pow(v.x->value[2 * i + c] - mean, 2) / (double)(to - from);
            for (int64_t i = from; i < to; i++) {
                const double n = (v.x->value[2 * i + c] - mean) / sqrt(square + 1e-5);
                assert_float_equal(y->value[2 * i + c], (2 + (double)c) * n + (double)c, 1e-12);
            }
        }
    at_arena_free(v.arena);
}

static void positions_of_a_grid(void **state)
{
    (void)state;
    values v = values_make();
    at_tensor *y = at_grid_positions(v.tape, &v.in, 8);
    assert_non_null(y);
    const double *cell = y->value + (v.in.first[2] + 3 * widths[2] + 1) * 8; /* row 3, column 1 */
    const double expected[8] = {sin(3), cos(3), sin(0.03), cos(0.03), sin(1), cos(1), sin(0.01), cos(0.01)};
    for (int i = 0; i < 8; i++)
        assert_float_equal(cell[i], expected[i], 1e-12);
    assert_null(at_grid_positions(v.tape, &v.in, 6));
    assert_string_equal(at_tape_error(v.tape)->text, "2-D positions need a multiple of 4 channels, not 6");
    at_arena_free(v.arena);
}

/* The message of the last refusal; the tape starts anew. */
#define REFUSES(message, ...)                                                                                          \
    do {                                                                                                               \
        values v = values_make();                                                                                      \
        const at_window w3 = {3, 3, 1, 1}, wide = {40, 40, 1, 20}, big = {16, 16, 1, 0};                               \
        const at_grids same = at_grids_after(v.tape, &v.in, w3, false);                                                \
        (void)wide, (void)big, (void)same;                                                                             \
        assert_null(__VA_ARGS__);                                                                                      \
        assert_string_equal(at_tape_error(v.tape)->text, message);                                                     \
        at_arena_free(v.arena);                                                                                        \
    } while (0)
#define T(...) at_tensor_make(v.tape, AT_SHAPE(__VA_ARGS__))

static void refusals(void **state)
{
    (void)state;
    REFUSES("conv: the input is [5,2] and must be [28,channels], a row for each cell",
            at_conv(T(5, 2), &v.in, w3, T(3, 18), NULL, AT_ACT_NONE, &same));
    REFUSES("conv: the weights are [3,17] and must be [out,18], a window of 3 x 3 x 2",
            at_conv(v.x, &v.in, w3, T(3, 17), NULL, AT_ACT_NONE, &same));
    REFUSES("conv: the bias is [4] and must be [3], the first size of the weights [3,18]",
            at_conv(v.x, &v.in, w3, T(3, 18), T(4), AT_ACT_NONE, &same));
    REFUSES("conv: a window of 40 x 40 is larger than 31 x 31",
            at_conv(v.x, &v.in, wide, T(3, 3200), NULL, AT_ACT_NONE, &same));
    REFUSES("max_pool: a window of 16 x 16 has more than 255 cells", at_max_pool(v.x, &v.in, big, &same));
    REFUSES("max_pool: the input is [28] and must be [28,channels], a row for each cell",
            at_max_pool(T(28), &v.in, w3, &same));
    REFUSES("group_norm: 2 channels cannot be divided into 3 groups",
            at_group_norm(v.x, &v.in, 3, T(2), T(2), 1e-5, false));
    REFUSES("group_norm: the input is [28,2], so gain and bias must be [2]; they are [2] and [3]",
            at_group_norm(v.x, &v.in, 1, T(2), T(3), 1e-5, false));
    REFUSES("picture 2 of the batch is 1 x 6 here, which is smaller than the window of 2 x 2",
            at_grids_after(v.tape, &v.in, (at_window){2, 2, 1, 0}, false).first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions),
        cmocka_unit_test(poolings),
        cmocka_unit_test(norms),
        cmocka_unit_test(values_of_a_convolution),
        cmocka_unit_test(gradients_of_a_large_picture),
        cmocka_unit_test(cells_that_no_window_sees),
        cmocka_unit_test(values_of_every_window),
        cmocka_unit_test(values_of_a_pooling),
        cmocka_unit_test(values_of_a_norm),
        cmocka_unit_test(positions_of_a_grid),
        cmocka_unit_test(refusals),
        cmocka_unit_test(encoders),
        cmocka_unit_test(wrong_encoders),
        cmocka_unit_test(added_inputs),
        cmocka_unit_test(wrong_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
