/* Every operation's gradient, over sizes below, at and above the width of a vector: one row or more per operation. */
#include "gradcheck.h"

/* ---- Two-sided: same shape, a row, a column, a scalar, an outer product ---- */

static at_tensor *add(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape, (void)context;
    return at_add(x[0], x[1]);
}

static at_tensor *sub(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape, (void)context;
    return at_sub(x[0], x[1]);
}

static at_tensor *mul(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape, (void)context;
    return at_mul(x[0], x[1]);
}

static at_tensor *square(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape, (void)context;
    return at_mul(x[0], x[0]);
}

static void pairs(void **state)
{
    (void)state;
    const struct {
        const char *name;
        gradcheck_build *build;
    } op[] = {{"op:add", add}, {"op:sub", sub}, {"op:mul", mul}};
    const at_shape shape[][2] = {{AT_SHAPE(7, 9), AT_SHAPE(7, 9)},
                                 {AT_SHAPE(8, 9), AT_SHAPE(9)},
                                 {AT_SHAPE(7), AT_SHAPE(3, 1, 7)},
                                 {AT_SHAPE(9, 8), AT_SHAPE(9, 1)},
                                 {AT_SHAPE(9, 1), AT_SHAPE(1, 8)},
                                 {AT_SHAPE(1), AT_SHAPE(7, 8)},
                                 {AT_SHAPE(2, 7, 1, 3), AT_SHAPE(9, 1)},
                                 {AT_SHAPE(2, 1, 9), AT_SHAPE(8, 1)},
                                 {AT_SHAPE(1), AT_SHAPE(1)},
                                 {AT_SHAPE(2, 3, 1, 4), AT_SHAPE(1, 3, 5, 4)}};
    for (size_t o = 0; o < sizeof op / sizeof *op; o++) {
        for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
            gradcheck(&(gradcheck_case){
                .name = op[o].name, .build = op[o].build, .inputs = 2, .shape = {shape[i][0], shape[i][1]}});
    }
    gradcheck(&(gradcheck_case){.name = "mul by itself", .build = square, .inputs = 1, .shape = {AT_SHAPE(7)}});
}

/* ---- The logarithm of a mixture ---- */

static at_tensor *log_mixture(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape, (void)context;
    return at_log_mixture(x[0], x[1]);
}

/* The same of logits that nothing else reads, whose gradient may take their place. */
static at_tensor *log_mixture_over(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape, (void)context;
    return at_log_mixture(at_scale(x[0], 3), x[1]);
}

static void mixtures(void **state)
{
    (void)state;
    static const double weights[] = {0.2, 0.3, 0.5, 0.7, 0.05, 0.25, 0.9, 0.3, 0.4};
    for (int64_t V = 1; V <= 17; V += 4)
        for (int over = 0; over < 2; over++)
            gradcheck(&(gradcheck_case){.name = "op:log_mixture",
                                        .build = over ? log_mixture_over : log_mixture,
                                        .inputs = 2,
                                        .shape = {AT_SHAPE(3, 3, V), AT_SHAPE(3, 3)},
                                        .value = {NULL, weights}});
}

/* ---- What is computed again in the backward pass ---- */

static at_tensor *built(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape, (void)context;
    return at_mul(at_tanh(at_matmul(x[0], x[1], false, false)), x[0]);
}

static at_tensor *recomputed(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)context;
    at_tensor *in[] = {at_sigmoid(x[0]), at_slice(x[1], 0, 0, 3), NULL};
    at_tensor *first = at_recompute(tape, AT_SHAPE(5, 3), built, NULL, in, 3);
    return at_mul(first, at_recompute(tape, AT_SHAPE(5, 3), built, NULL, (at_tensor *[]){first, in[1]}, 2));
}

static void recomputing(void **state)
{
    (void)state;
    gradcheck(&(gradcheck_case){
        .name = "op:recompute", .build = recomputed, .inputs = 2, .shape = {AT_SHAPE(5, 3), AT_SHAPE(4, 3)}});
}

/* ---- Functions of one number ---- */

#define MAP(function)                                                                                                  \
    static at_tensor *map_##function(at_tape *tape, at_tensor *const *x, const void *context)                          \
    {                                                                                                                  \
        (void)tape, (void)context;                                                                                     \
        return at_##function(x[0]);                                                                                    \
    }
MAP(tanh)
MAP(sigmoid)
MAP(relu)
MAP(exp)
MAP(log)
MAP(gelu)
MAP(swish)
MAP(maxout)

static at_tensor *scale(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape, (void)context;
    return at_scale(x[0], -1.75);
}

static void maps(void **state)
{
    (void)state;
    const struct {
        const char *name;
        gradcheck_build *build;
        double centre, spread;
    } op[] = {{"op:scale", scale, 0, 1},   {"op:tanh", map_tanh, 0, 1},     {"op:sigmoid", map_sigmoid, 0, 2},
              {"op:relu", map_relu, 0, 1}, {"op:exp", map_exp, 0, 1},       {"op:log", map_log, 5, 0.5},
              {"op:gelu", map_gelu, 0, 1}, {"op:swish", map_swish, 0, 1.5}, {"op:maxout", map_maxout, 0, 1}};
    const at_shape shape[] = {AT_SHAPE(1, 2), AT_SHAPE(7, 2), AT_SHAPE(3, 8), AT_SHAPE(9, 18), AT_SHAPE(2, 150)};
    for (size_t o = 0; o < sizeof op / sizeof *op; o++) {
        for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
            gradcheck(&(gradcheck_case){.name = op[o].name,
                                        .build = op[o].build,
                                        .inputs = 1,
                                        .shape = {shape[i]},
                                        .centre = op[o].centre,
                                        .spread = op[o].spread});
    }
}

/* ---- Products ---- */

typedef struct transposes {
    bool a, b;
} transposes;

static at_tensor *matmul(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape;
    const transposes *t = context;
    return at_matmul(x[0], x[1], t->a, t->b);
}

static at_shape matrix(at_shape batch, int64_t rows, int64_t columns, bool transposed)
{
    batch.dim[batch.rank++] = transposed ? columns : rows;
    batch.dim[batch.rank++] = transposed ? rows : columns;
    return batch;
}

static void products(void **state)
{
    (void)state;
    const int64_t size[][3] = {{1, 1, 1}, {7, 9, 8}, {1, 9, 7}, {9, 1, 7}, {8, 7, 1}};
    const at_shape none = {0};
    /* a's and b's batches; the last ones broadcast in both tensors */
    const at_shape batch[][2] = {{none, none},
                                 {AT_SHAPE(3), AT_SHAPE(3)},
                                 {AT_SHAPE(3), none},
                                 {none, AT_SHAPE(2, 2)},
                                 {AT_SHAPE(2, 3), AT_SHAPE(3)},
                                 {AT_SHAPE(2, 3), AT_SHAPE(2, 1)},
                                 {AT_SHAPE(2, 1, 2), AT_SHAPE(3, 1)}};
    for (int flags = 0; flags < 4; flags++) {
        transposes t = {.a = flags & 1, .b = flags & 2};
        for (size_t s = 0; s < sizeof size / sizeof *size; s++) {
            int64_t m = size[s][0], n = size[s][1], k = size[s][2];
            for (size_t b = 0; b < sizeof batch / sizeof *batch; b++) {
                if (b > 1 && s > 1) /* the batches do not depend on the size */
                    continue;
                gradcheck(&(gradcheck_case){.name = "op:matmul",
                                            .build = matmul,
                                            .context = &t,
                                            .inputs = 2,
                                            .shape = {matrix(batch[b][0], m, k, t.a), matrix(batch[b][1], k, n, t.b)}});
            }
        }
    }
}

static at_tensor *linear(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape;
    return at_linear(x[0], x[1], x[2], *(const at_act *)context);
}

static at_tensor *linear_no_bias(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape;
    return at_linear(x[0], x[1], NULL, *(const at_act *)context);
}

static at_tensor *linear_params(at_tape *tape, at_tensor *const *x, const void *context)
{
    at_params *params = (at_params *)context;
    return at_linear(x[0], at_param(tape, params, 0), at_param(tape, params, 1), AT_ACT_TANH);
}

static void linears(void **state)
{
    (void)state;
    const int64_t size[][2] = {{1, 1}, {7, 9}, {8, 7}, {9, 8}}; /* in, out */
    for (int act = AT_ACT_NONE; act <= AT_ACT_RELU; act++) {
        at_act chosen = (at_act)act;
        for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
            gradcheck_case c = {.name = "op:linear", .build = linear, .context = &chosen, .inputs = 3};
            c.shape[0] = AT_SHAPE(2, 3, size[i][0]);
            c.shape[1] = AT_SHAPE(size[i][1], size[i][0]);
            c.shape[2] = AT_SHAPE(size[i][1]);
            gradcheck(&c);
            c.build = linear_no_bias;
            c.inputs = 2;
            gradcheck(&c);
        }
    }
    /* Weights that are parameters are used in packed form, forward and backward. */
    at_error error = {0};
    at_params *params = at_params_new();
    at_params_add(params, "w", AT_SHAPE(9, 7), &error);
    at_params_add(params, "b", AT_SHAPE(9), &error);
    assert_true(at_params_fix(params, &error));
    at_rng rng = {.seed = 5};
    for (int64_t i = 0; i < at_params_count(params); i++)
        at_params_values(params)[i] = at_rng_normal(&rng);
    int checked = gradcheck(&(gradcheck_case){.name = "linear with parameters",
                                              .build = linear_params,
                                              .context = params,
                                              .inputs = 1,
                                              .shape = {AT_SHAPE(8, 7)},
                                              .params = params});
    assert_int_equal(checked, 8 * 7 + 9 * 7 + 9);
    at_params_free(params);
}

/* ---- Shapes ---- */

static at_tensor *permute(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape;
    return at_permute(x[0], context);
}

static at_tensor *slice(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape;
    return at_slice(x[0], *(const int *)context, 1, 6);
}

static at_tensor *concat(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape;
    return at_concat(x, 3, *(const int *)context);
}

/* Views of views of a leaf and of a result, used twice: all add to one gradient. */
static at_tensor *views(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape, (void)context;
    at_tensor *y = at_reshape(at_tanh(x[0]), AT_SHAPE(9, -1));             /* [9,8] */
    at_tensor *part = at_reshape(at_slice(y, 0, 2, 5), AT_SHAPE(2, 12));   /* rows 2..4 */
    at_tensor *inner = at_slice(part, 0, 1, 2);                            /* [1,12] */
    at_tensor *leaf = at_slice(at_reshape(x[0], AT_SHAPE(72)), 0, 30, 42); /* [12] */
    return at_add(at_mul(at_mul(inner, leaf), inner), at_sum(y, -1));
}

static void shapes(void **state)
{
    (void)state;
    const int order[][4] = {{0, 2, 1, 3}, {3, 2, 1, 0}, {0, 1, 3, 2}, {2, 3, 0, 1}, {1, 0, 2, 3}, {0, 1, 2, 3}};
    const at_shape shape[] = {AT_SHAPE(2, 7, 3, 8), AT_SHAPE(1, 9, 1, 7)};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        for (int s = 0; s < 2; s++) {
            /* The last order is the identity, and in the second shape some only move axes of size 1: those are
             * views. */
            const bool view = i == 5 || (s == 1 && (i == 0 || i == 2 || i == 4));
            gradcheck(&(gradcheck_case){.name = view ? "permute as a view" : "op:permute",
                                        .build = permute,
                                        .context = order[i],
                                        .inputs = 1,
                                        .shape = {shape[s]}});
        }
    for (int axis = 0; axis < 3; axis++) {
        gradcheck(&(gradcheck_case){.name = axis == 0 ? "slice as a view" : "op:slice",
                                    .build = slice,
                                    .context = &axis,
                                    .inputs = 1,
                                    .shape = {AT_SHAPE(7, 8, 9)}});
        at_shape part[3] = {AT_SHAPE(2, 3, 7), AT_SHAPE(2, 3, 7), AT_SHAPE(2, 3, 7)};
        part[0].dim[axis] = 1;
        part[2].dim[axis] = 8;
        gradcheck(&(gradcheck_case){
            .name = "op:concat", .build = concat, .context = &axis, .inputs = 3, .shape = {part[0], part[1], part[2]}});
    }
    gradcheck(&(gradcheck_case){.name = "views", .build = views, .inputs = 1, .shape = {AT_SHAPE(8, 9)}});
}

/* ---- Sums ---- */

static at_tensor *sum(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape;
    return at_sum(x[0], *(const int *)context);
}

static at_tensor *mean(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape;
    return at_mean(x[0], *(const int *)context);
}

static void sums(void **state)
{
    (void)state;
    for (int axis = -1; axis < 3; axis++) {
        const at_shape shape[] = {AT_SHAPE(7, 8, 9), AT_SHAPE(1, 9, 1), AT_SHAPE(3, 1, 7)};
        for (int i = 0; i < 3; i++) {
            gradcheck(
                &(gradcheck_case){.name = "op:sum", .build = sum, .context = &axis, .inputs = 1, .shape = {shape[i]}});
            gradcheck(&(gradcheck_case){
                .name = "op:mean", .build = mean, .context = &axis, .inputs = 1, .shape = {shape[i]}});
        }
    }
}

/* ---- Rows ---- */

static at_tensor *embedding(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape, (void)context;
    const int32_t ids[6] = {3, -1, 0, 3, 6, 3};
    return at_embedding(x[0], ids, AT_SHAPE(2, 3));
}

static at_tensor *layer_norm(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape, (void)context;
    return at_layer_norm(x[0], x[1], x[2], 1e-5);
}

typedef struct residual {
    double keep;
    bool sum; /* x + dropout(y) is used as well */
} residual;

static at_tensor *residual_norm(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape;
    const residual *how = context;
    at_rng rng = {.seed = 4, .counter = 17};
    at_tensor *sum = NULL, *y = at_residual_norm(x[0], x[1], x[2], x[3], 1e-5, how->keep, &rng, how->sum ? &sum : NULL);
    return how->sum ? at_add(y, at_mul(sum, sum)) : y;
}

/* Both gradients are added to the same or to overlapping numbers; the input of the norm is used elsewhere, too. */
static at_tensor *residual_of_itself(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape, (void)context;
    at_rng rng = {.seed = 4, .counter = 17};
    at_tensor *h = at_tanh(x[0]), *flat = at_reshape(h, AT_SHAPE(-1));
    at_tensor *y = at_residual_norm(h, h, x[1], x[2], 1e-5, 0.7, &rng, NULL); /* [3,5] */
    at_tensor *a = at_reshape(at_slice(flat, 0, 0, 10), AT_SHAPE(2, 5));
    at_tensor *b = at_reshape(at_slice(flat, 0, 3, 13), AT_SHAPE(2, 5));
    at_tensor *z = at_residual_norm(a, b, x[1], x[2], 1e-5, 0.7, &rng, NULL);
    return at_concat((at_tensor *[]){y, z, h}, 3, 0);
}

static at_tensor *dropout(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape, (void)context;
    at_rng rng = {.seed = 4, .counter = 17};
    return at_dropout(x[0], 0.6, &rng);
}

static at_tensor *cross_entropy(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape;
    const int32_t targets[7] = {0, 3, -1, 5, 5, 2, -1};
    return at_cross_entropy(x[0], targets, *(const double *)context);
}

static at_tensor *divergence(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape, (void)context;
    const int32_t counted[7] = {0, 3, -1, 5, 5, 2, -1};
    return at_divergence(x[0], x[1], counted);
}

static void rows(void **state)
{
    (void)state;
    const int64_t size[] = {1, 7, 8, 9};
    gradcheck(&(gradcheck_case){/* more columns than are computed at a time */
                                .name = "op:divergence",
                                .build = divergence,
                                .inputs = 2,
                                .shape = {AT_SHAPE(7, 259), AT_SHAPE(7, 259)}});
    for (int i = 0; i < 4; i++) {
        int64_t n = size[i];
        gradcheck(
            &(gradcheck_case){.name = "op:embedding", .build = embedding, .inputs = 1, .shape = {AT_SHAPE(7, n)}});
        if (n > 1) /* a row of one number is its own mean */
            gradcheck(&(gradcheck_case){.name = "op:layer_norm",
                                        .build = layer_norm,
                                        .inputs = 3,
                                        .shape = {AT_SHAPE(2, 3, n), AT_SHAPE(n), AT_SHAPE(n)}});
        for (int how = 0; how < 4 && n > 1; how++)
            gradcheck(&(gradcheck_case){.name = "op:residual_norm",
                                        .build = residual_norm,
                                        .context = &(residual){how & 1 ? 0.6 : 1, how & 2},
                                        .inputs = 4,
                                        .shape = {AT_SHAPE(2, 35, n), AT_SHAPE(2, 35, n), AT_SHAPE(n), AT_SHAPE(n)}});
        gradcheck(&(gradcheck_case){
            .name = "op:divergence", .build = divergence, .inputs = 2, .shape = {AT_SHAPE(7, n), AT_SHAPE(7, n)}});
        gradcheck(&(gradcheck_case){.name = "op:dropout", .build = dropout, .inputs = 1, .shape = {AT_SHAPE(7, n)}});
    }
    gradcheck(&(gradcheck_case){.name = "residual of itself",
                                .build = residual_of_itself,
                                .inputs = 3,
                                .shape = {AT_SHAPE(3, 5), AT_SHAPE(5), AT_SHAPE(5)}});
    const double smoothing[] = {0, 0.1};
    for (int i = 0; i < 2; i++) {
        for (int64_t classes = 6; classes < 10; classes++)
            gradcheck(&(gradcheck_case){.name = "op:cross_entropy",
                                        .build = cross_entropy,
                                        .context = &smoothing[i],
                                        .inputs = 1,
                                        .shape = {AT_SHAPE(7, classes)},
                                        .spread = 2});
        gradcheck(&(gradcheck_case){.name = "op:cross_entropy",
                                    .build = cross_entropy,
                                    .context = &smoothing[i],
                                    .inputs = 1,
                                    .shape = {AT_SHAPE(7, 300)}});
    }
}

/* ---- Offsets ---- */

typedef struct places {
    int64_t queries, keys, start, reach;
} places;

static at_tensor *by_offset(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape;
    const places *p = context;
    return at_by_offset(x[0], p->queries, p->keys, p->start);
}

static at_tensor *sum_by_offset(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape;
    const places *p = context;
    return at_sum_by_offset(x[0], p->reach, p->start);
}

static at_tensor *rotate(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape;
    return at_rotate(x[0], *(const int64_t *)context);
}

/* Three heads of size four are rotated, in rows of any order; the last two columns are unchanged. */
static at_tensor *rotate_rows(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape, (void)context;
    static const int32_t row[] = {3, 0, 1, 1, 7};
    return at_rotate_rows(x[0], row, 2, 3, 4);
}

static at_tensor *gaussian(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape;
    return at_gaussian(x[0], *(const int64_t *)context, 1.5);
}

static void offsets(void **state)
{
    (void)state;
    const places place[] = {{1, 1, 0, 0}, {7, 9, 0, 2}, {9, 7, 0, 3}, {8, 8, 0, 20}, {2, 9, 7, 1}, {3, 5, 40, 2}};
    for (size_t i = 0; i < sizeof place / sizeof *place; i++) {
        places p = place[i];
        int64_t width = 2 * p.reach + 1;
        gradcheck_case c = {.name = "op:by_offset", .build = by_offset, .context = &p, .inputs = 1};
        c.shape[0] = AT_SHAPE(2, 3, p.queries, width);
        gradcheck(&c);
        c.shape[0] = AT_SHAPE(1, 3, 1, width);
        gradcheck(&c);
        c = (gradcheck_case){.name = "op:sum_by_offset", .build = sum_by_offset, .context = &p, .inputs = 1};
        c.shape[0] = AT_SHAPE(2, 1, p.queries, p.keys);
        gradcheck(&c);
    }
    const int64_t start[] = {0, 9};
    for (int i = 0; i < 2; i++) {
        gradcheck(&(gradcheck_case){
            .name = "op:rotate", .build = rotate, .context = &start[i], .inputs = 1, .shape = {AT_SHAPE(2, 7, 3, 8)}});
        gradcheck(&(gradcheck_case){
            .name = "op:rotate", .build = rotate, .context = &start[i], .inputs = 1, .shape = {AT_SHAPE(1, 1, 1, 2)}});
        gradcheck(&(gradcheck_case){.name = "op:rotate",
                                    .build = rotate,
                                    .context = &start[i],
                                    .inputs = 1,
                                    .shape = {AT_SHAPE(1, 2, 1, 132)}});
    }
    gradcheck(
        &(gradcheck_case){.name = "op:rotate", .build = rotate_rows, .inputs = 1, .shape = {AT_SHAPE(5, 3 * 4 + 2)}});
    const int64_t keys[] = {1, 7, 8, 9};
    for (int i = 0; i < 4; i++)
        gradcheck(&(gradcheck_case){.name = "op:gaussian",
                                    .build = gaussian,
                                    .context = &keys[i],
                                    .inputs = 1,
                                    .shape = {AT_SHAPE(2, 3, 2)},
                                    .centre = 3,
                                    .spread = 2});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs),    cmocka_unit_test(mixtures), cmocka_unit_test(recomputing), cmocka_unit_test(maps),
        cmocka_unit_test(products), cmocka_unit_test(linears),  cmocka_unit_test(shapes),      cmocka_unit_test(sums),
        cmocka_unit_test(rows),     cmocka_unit_test(offsets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
