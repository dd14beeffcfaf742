/* Pictures are exact: a small convolutional network returns the same bits for a picture alone and among neighbours of
 * other sizes, with any number of threads, and its later passes allocate nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "attend.h"
#include "base/threads.h"
#include "tape/grid.h"
#include "tape/ops.h"
#include "tape/params.h"

enum { PICTURES = 4, IN = 3, MIDDLE = 16, OUT = 24 };
static const int64_t heights[PICTURES] = {40, 7, 1, 23}, widths[PICTURES] = {33, 29, 50, 24};

typedef struct result {
    int64_t cells, out;
    at_real *y, *x_grad; /* [out, OUT], [cells, IN] */
    at_real *grads;      /* of the parameters */
} result;

static at_params *network(void)
{
    at_error error = {0};
    at_params *params = at_params_new();
    at_params_add(params, "1.W", AT_SHAPE(MIDDLE, 25 * IN), &error);
    at_params_add(params, "1.b", AT_SHAPE(MIDDLE), &error);
    at_params_add(params, "1.g", AT_SHAPE(MIDDLE), &error);
    at_params_add(params, "2.W", AT_SHAPE(OUT, 9 * MIDDLE), &error);
    at_params_add(params, "3.W", AT_SHAPE(MIDDLE, 9 * MIDDLE), &error);
    assert_true(at_params_fix(params, &error));
    at_rng rng = {.seed = 5};
    for (int64_t i = 0; i < at_params_count(params); i++)
        at_params_values(params)[i] = (at_real)(0.2 * at_rng_normal(&rng));
    return params;
}

/* conv 5x5, norm, relu, pool, conv 3x3, conv 3x3 with stride 2, and back from a seed that depends on the picture and the cell. */
static void run(at_arena *arena, at_params *params, int first, int count, result *r)
{
    at_tape *tape = at_tape_new(arena, true);
    const at_window five = {5, 5, 1, 2}, half = {2, 2, 2, 0}, same = {3, 3, 1, 1}, three = {3, 3, 2, 1};
    const at_grids in = at_grids_make(tape, count, heights + first, widths + first);
    const at_grids pooled = at_grids_after(tape, &in, half, true), out = at_grids_after(tape, &pooled, three, false);
    at_real *x = malloc((size_t)(in.first[count] * IN) * sizeof *x);
    for (int p = 0; p < count; p++)
        for (int64_t i = 0; i < heights[first + p] * widths[first + p] * IN; i++)
            x[in.first[p] * IN + i] = (at_real)at_uniform_at(77, (uint64_t)(first + p), (uint64_t)i);
    r->cells = in.first[count];
    r->x_grad = calloc((size_t)(r->cells * IN), sizeof *r->x_grad);
    at_tensor *leaf = at_leaf(tape, AT_SHAPE(r->cells, IN), x, r->x_grad, true);
    at_tensor *b = at_param(tape, params, 1), *g = at_param(tape, params, 2);
    at_tensor *h = at_conv(leaf, &in, five, at_param(tape, params, 0), b, AT_ACT_NONE, &in);
    h = at_max_pool(at_group_norm(h, &in, 4, g, b, (at_real)1e-5, true), &in, half, &pooled);
    h = at_conv(h, &pooled, same, at_param(tape, params, 4), NULL, AT_ACT_RELU, &pooled);
    at_tensor *y = at_conv(h, &pooled, three, at_param(tape, params, 3), NULL, AT_ACT_TANH, &out);
    if (!y)
        fail_msg("%s", at_tape_error(tape)->text);
    r->out = out.first[count];
    r->y = malloc((size_t)(r->out * OUT) * sizeof *r->y);
    memcpy(r->y, y->value, (size_t)(r->out * OUT) * sizeof *r->y);
    at_real *seed = malloc((size_t)(r->out * OUT) * sizeof *seed);
    for (int p = 0; p < count; p++)
        for (int64_t i = 0; i < (out.first[p + 1] - out.first[p]) * OUT; i++)
            seed[out.first[p] * OUT + i] = (at_real)(at_uniform_at(78, (uint64_t)(first + p), (uint64_t)i) - 0.5);
    memset(at_params_grads(params), 0, (size_t)at_params_count(params) * sizeof(at_real));
    assert_true(at_backward_from(y, seed));
    r->grads = malloc((size_t)at_params_count(params) * sizeof *r->grads);
    memcpy(r->grads, at_params_grads(params), (size_t)at_params_count(params) * sizeof *r->grads);
    free(seed);
    free(x);
    at_arena_reset(arena);
}

static void drop(result *r)
{
    free(r->y);
    free(r->x_grad);
    free(r->grads);
}

static void neighbours(void **state)
{
    (void)state;
    at_params *params = network();
    at_arena *arena = at_arena_new();
    result all;
    run(arena, params, 0, PICTURES, &all);
    int64_t cell = 0, out = 0;
    for (int p = 0; p < PICTURES; p++) {
        result one;
        run(arena, params, p, 1, &one);
        assert_memory_equal(one.y, all.y + out * OUT, (size_t)(one.out * OUT) * sizeof *one.y);
        assert_memory_equal(one.x_grad, all.x_grad + cell * IN, (size_t)(one.cells * IN) * sizeof *one.y);
        cell += one.cells;
        out += one.out;
        drop(&one);
    }
    assert_int_equal(cell, all.cells);
    assert_int_equal(out, all.out);
    drop(&all);
    at_arena_free(arena);
    at_params_free(params);
}

static void threads(void **state)
{
    (void)state;
    at_params *params = network();
    at_arena *arena = at_arena_new();
    result one;
    at_threads_set(1);
    run(arena, params, 0, PICTURES, &one);
    for (int count = 2; count <= 5; count++) {
        result more;
        at_threads_set(count);
        run(arena, params, 0, PICTURES, &more);
        assert_memory_equal(more.y, one.y, (size_t)(one.out * OUT) * sizeof *one.y);
        assert_memory_equal(more.x_grad, one.x_grad, (size_t)(one.cells * IN) * sizeof *one.y);
        assert_memory_equal(more.grads, one.grads, (size_t)at_params_count(params) * sizeof *one.grads);
        drop(&more);
    }
    at_threads_set(0);
    drop(&one);
    at_arena_free(arena);
    at_params_free(params);
}

static void later_passes_allocate_nothing(void **state)
{
    (void)state;
    at_params *params = network();
    at_arena *arena = at_arena_new();
    result r;
    run(arena, params, 0, PICTURES, &r);
    drop(&r);
    const size_t asked = at_arena_system(arena);
    for (int i = 0; i < 3; i++) {
        run(arena, params, i, 1, &r);
        drop(&r);
        run(arena, params, 0, PICTURES, &r);
        drop(&r);
    }
    assert_int_equal(at_arena_system(arena), asked);
    at_arena_free(arena);
    at_params_free(params);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours),
        cmocka_unit_test(threads),
        cmocka_unit_test(later_passes_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
