/* The kernels with the widest vectors compute the bits of the fast ones: products of every layout, weights of fewer bits,
 * convolutions forward and backward. Sizes lie around the vectors, panels and blocks of both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "attend.h"
#include "base/rng.h"
#include "base/threads.h"
#include "kernels/gemm.h"
#include "kernels/rows.h"
#include "tape/grid.h"
#include "tape/ops.h"

static const char *const sets[] = {AT_FAST_KERNELS, AT_WIDE_KERNELS};
enum { SETS = sizeof sets / sizeof *sets, NUMBERS = 500000 };

static at_real numbers[NUMBERS];
static at_arena *arena;

static int begin(void **state)
{
    (void)state;
    at_rng rng = {.seed = 11};
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = (at_real)at_rng_normal(&rng);
    arena = at_arena_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    at_kernels_choose(NULL);
    at_arena_free(arena);
    return 0;
}

static void need_both(void)
{
    for (int set = 0; set < SETS; set++)
        if (!at_kernels_choose(sets[set]))
            skip();
}

static void same(const at_real *x, const at_real *y, int64_t count, const char *what, int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < count; i++)
        if (memcmp(x + i, y + i, sizeof *x) != 0)
            fail_msg("%s, %d x %d x %d: number %d is %.17g with the kernels %s and %.17g with %s", what, (int)m, (int)n,
                     (int)k, (int)i, (double)x[i], sets[0], (double)y[i], sets[1]);
}

/* ---- Products ---- */

enum { MOST_C = 101 * 2100 };
static at_real c[SETS][MOST_C];

/* g with other weights and another C for each set: `type` real: b, packed or not. */
static void compare(at_gemm g, bool packs, at_number_type type)
{
    for (int set = 0; set < SETS; set++) {
        at_kernels_choose(sets[set]);
        const at_mark mark = at_arena_mark(arena);
        at_gemm run = g;
        run.c = c[set];
        memcpy(run.c, numbers + 500, (size_t)(g.m * g.c_row) * sizeof *run.c);
        const size_t size = (size_t)(at_gemm_packed_size(g.k, g.n) + 1) * sizeof(at_real);
        void *packed = at_arena_take(arena, size), *rows = at_arena_take(arena, size);
        at_real *scale = at_arena_take(arena, (size_t)at_narrow_count(g.n, 1) * sizeof *scale);
        if (type != AT_NUMBERS_REAL) {
            assert_true(at_narrow_round(type, g.b, g.n, g.k, rows, scale));
            at_narrow_pack(type, rows, g.n, g.k, packed);
            run.narrow = (at_narrow){.type = type, .numbers = packed, .scale = type == AT_NUMBERS_INT8 ? scale : NULL};
            run.b = NULL;
        } else if (packs) {
            at_gemm_pack(g.b, g.b_row, g.b_col, g.k, g.n, packed);
            run.packed = packed;
        }
        assert_true(at_gemm_run(&run, arena));
        at_arena_release(arena, mark);
    }
    same(c[0], c[1], g.m * g.c_row, at_number_name(type), g.m, g.n, g.k);
}

static at_gemm product_of(int64_t m, int64_t n, int64_t k, int variant)
{
    const bool turn_a = variant & 1, turn_b = variant & 2;
    return (at_gemm){.m = m,
                     .n = n,
                     .k = k,
                     .a = numbers + 7,
                     .a_row = turn_a ? 1 : k + 2,
                     .a_col = turn_a ? m + 2 : 1,
                     .b = numbers + 90000,
                     .b_row = turn_b ? 1 : n + 1,
                     .b_col = turn_b ? k + 1 : 1,
                     .c_row = n + 3,
                     .accumulate = variant & 8,
                     .bias = variant & 16 ? numbers + 60000 : NULL,
                     .act = (at_act)(variant >> 5 & 3)};
}

/* Every layout, bias, activation and start, in turn. */
static void products(void **state)
{
    (void)state;
    need_both();
    static const int64_t rows[] = {1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 97, 101};
    static const int64_t columns[] = {1, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 47, 48, 49, 64, 65, 127, 130, 193};
    static const int64_t depths[] = {0, 1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 127, 128, 129, 257, 300};
    int variant = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t j = 0; j < sizeof columns / sizeof *columns; j++)
            for (size_t l = 0; l < sizeof depths / sizeof *depths; l++, variant += 37)
                compare(product_of(rows[i], columns[j], depths[l], variant), variant & 4, AT_NUMBERS_REAL);
    /* Beyond the largest blocks: 96 rows, 2048 columns, several parts of k. */
    for (variant = 0; variant < 16; variant++) {
        at_threads_set(1 + variant / 8); /* threads get pieces of fewer columns, which are packed otherwise */
        compare(product_of(101, variant % 8 < 4 ? 1030 : 2090, variant % 8 < 4 ? 300 : 145, variant % 8), variant & 4,
                AT_NUMBERS_REAL);
    }
    at_threads_set(0);
}

static void narrow_products(void **state)
{
    (void)state;
    need_both();
    static const int64_t columns[] = {1, 15, 16, 17, 32, 33, 65, 130, 257}, depths[] = {0, 1, 7, 16, 33, 129, 300};
    for (int type = AT_NUMBERS_BF16; type < AT_NUMBER_TYPES; type++)
        for (int64_t m = 1; m < 30; m += m < 8 ? 1 : 7)
            for (size_t j = 0; j < sizeof columns / sizeof *columns; j++)
                for (size_t l = 0; l < sizeof depths / sizeof *depths; l++) {
                    at_gemm g = product_of(m, columns[j], depths[l], (int)(16 * (m + (int64_t)l)));
                    g.b_row = 1;
                    g.b_col = g.k;
                    compare(g, false, (at_number_type)type);
                }
}

/* ---- Convolutions ---- */

typedef struct layer {
    int64_t in, out, side, stride;
    at_act act;
} layer;

/* Output, then the gradients of input, weights and bias. */
static at_real *convolve(const layer *l, int64_t *count)
{
    enum { PICTURES = 3 };
    static const int64_t heights[PICTURES] = {13, 1, 22}, widths[PICTURES] = {31, 9, 16};
    at_tape *tape = at_tape_new(arena, true);
    const at_window window = {l->side, l->side, l->stride, l->side / 2};
    const at_grids in = at_grids_make(tape, PICTURES, heights, widths), out = at_grids_after(tape, &in, window, false);
    const int64_t weights = l->out * l->side * l->side * l->in, inputs = in.first[PICTURES] * l->in,
                  outputs = out.first[PICTURES] * l->out;
    *count = outputs + inputs + weights + l->out;
    at_real *all = malloc((size_t)*count * sizeof *all), *dx = all + outputs, *dw = dx + inputs, *db = dw + weights;
    memcpy(dx, numbers + 9, (size_t)(*count - outputs) * sizeof *dx); /* gradients are added */
    at_tensor *x = at_leaf(tape, AT_SHAPE(in.first[PICTURES], l->in), numbers, dx, true);
    at_tensor *w = at_leaf(tape, AT_SHAPE(l->out, l->side * l->side * l->in), numbers + 50000, dw, true);
    at_tensor *b = at_leaf(tape, AT_SHAPE(l->out), numbers + 777, db, true);
    at_tensor *y = at_conv(x, &in, window, w, b, l->act, &out);
    if (!y)
        fail_msg("%s", at_tape_error(tape)->text);
    memcpy(all, y->value, (size_t)outputs * sizeof *all);
    assert_true(at_backward_from(y, numbers + 12345));
    at_arena_reset(arena);
    return all;
}

static void convolutions(void **state)
{
    (void)state;
    need_both();
    static const layer layers[] = {
        {1, 16, 5, 2, AT_ACT_NONE},  {3, 1, 3, 1, AT_ACT_RELU},   {2, 8, 3, 1, AT_ACT_TANH},
        {8, 17, 3, 2, AT_ACT_RELU},  {5, 24, 1, 1, AT_ACT_NONE},  {16, 32, 3, 1, AT_ACT_NONE},
        {32, 33, 3, 2, AT_ACT_NONE}, {33, 40, 3, 1, AT_ACT_RELU}, {64, 65, 3, 3, AT_ACT_SIGMOID},
        {48, 16, 5, 1, AT_ACT_NONE}, {7, 64, 7, 2, AT_ACT_NONE},  {16, 1, 3, 1, AT_ACT_NONE}};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        for (int threads = 1; threads <= 2; threads++) {
            at_threads_set(threads);
            at_real *all[SETS];
            int64_t count = 0;
            for (int set = 0; set < SETS; set++) {
                at_kernels_choose(sets[set]);
                all[set] = convolve(&layers[i], &count);
            }
            same(all[0], all[1], count, "a convolution", layers[i].in, layers[i].out, layers[i].side);
            for (int set = 0; set < SETS; set++)
                free(all[set]);
        }
    at_threads_set(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(narrow_products),
        cmocka_unit_test(convolutions),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
