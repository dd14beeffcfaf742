/* Coverage: what it adds to the keys, against its formula, of sequences and of grids; and its sum in the decoder's state. */
#include "gradcheck.h"
#include "model_cases.h"

#include "models/kinds.h"
#include "tape/block.h"

enum { PLACES = 12, KEY = 4 }; /* units of the longest source, with padding; the size of a key */

static const int64_t heights[ROWS] = {3, 1, 2}, widths[ROWS] = {4, 5, 3}, cells[ROWS] = {12, 5, 6};

typedef struct covered {
    at_model *model;
    at_attention_params params;
    bool grid;
} covered;

static covered declare(const char *text, bool grid)
{
    covered c = {.model = case_model(text, KEY, 3), .grid = grid};
    at_error error = {0};
    at_model *model = at_model_declare(&c.model->settings, &error); /* with further parameters, before they are fixed */
    c.params = (at_attention_params){.prepared = true, .width = KEY};
    assert_true(at_coverage_declare(model, &c.params, "test", grid, &error));
    assert_true(at_params_fix(model->params, &error));
    for (int i = 0; i < at_params_number(model->params); i++)
        at_init_normal(model->params, i, 0.5, 4);
    at_model_free(c.model);
    c.model = model;
    return c;
}

/* The terms [cells,KEY] from x, the sum of past weights [ROWS,PLACES]. */
static at_tensor *build(at_tape *tape, at_tensor *const *x, const void *context)
{
    const covered *c = context;
    const at_pass pass = {.tape = tape};
    const at_source source = {.rows = ROWS, .length = PLACES, .lengths = cells};
    const at_grids grids = at_grids_make(tape, ROWS, heights, widths);
    at_source_attention a = {.model = c->model,
                             .pass = &pass,
                             .source = &source,
                             .params = &c->params,
                             .grids = c->grid ? &grids : NULL,
                             .covered = x[0]};
    at_attention_in in = {0};
    return at_coverage_term(&a, &in) ? in.term : NULL;
}

/* What the key of unit (y, x) gets in dimension `d`, by loops over the window. */
static double added(const covered *c, const double *sum, int b, int64_t y, int64_t x, int d)
{
    at_params *p = c->model->params;
    const double *Q = at_params_value(p, c->params.coverage.filters), *U_f = at_params_value(p, c->params.coverage.U_f);
    const int64_t N = c->model->settings.coverage, w = c->model->settings.coverage_width;
    const int64_t height = c->grid ? heights[b] : 1, width = c->grid ? widths[b] : cells[b], h = c->grid ? w : 1;
    double key = 0;
    for (int64_t f = 0; f < N; f++)
        for (int64_t i = 0; i < h * w; i++) {
            const int64_t row = y + i / w - h / 2, column = x + i % w - w / 2;
            if (row >= 0 && row < height && column >= 0 && column < width)
                key += U_f[d * N + f] * Q[f * h * w + i] * sum[b * PLACES + row * width + column];
        }
    return key;
}

static void terms(void **state)
{
    (void)state;
    static const char *const cases[] = {"bahdanau coverage=3", "bahdanau coverage=2 coverage-width=3",
                                        "bahdanau coverage=1 coverage-width=1"};
    for (int i = 0; i < 6; i++) {
        const covered c = declare(cases[i / 2], i % 2);
        double sum[ROWS * PLACES];
        at_rng rng = {.seed = 2};
        for (int k = 0; k < ROWS * PLACES; k++)
            sum[k] = k % PLACES < cells[k / PLACES] ? at_rng_normal(&rng) : 1e9; /* padding is not read */
        at_arena *arena = at_arena_new();
        at_tape *tape = at_tape_new(arena, false);
        at_tensor *x[] = {at_leaf(tape, AT_SHAPE(ROWS, PLACES), sum, NULL, false)};
        at_tensor *y = build(tape, x, &c);
        check_tape(cases[i / 2], tape);
        const double *term = y->value;
        for (int b = 0; b < ROWS; b++)
            for (int64_t at = 0; at < cells[b]; at++)
                for (int d = 0; d < KEY; d++, term++) {
                    const int64_t width = c.grid ? widths[b] : cells[b];
                    assert_true(fabs(*term - added(&c, sum, b, at / width, at % width, d)) < 1e-12);
                }
        assert_int_equal(term - y->value, at_shape_count(y->shape));
        at_arena_free(arena);
        gradcheck(&(gradcheck_case){.name = cases[i / 2],
                                    .build = build,
                                    .context = &c,
                                    .params = c.model->params,
                                    .inputs = 1,
                                    .shape = {AT_SHAPE(ROWS, PLACES)},
                                    .value = {sum}});
        at_model_free(c.model);
    }
}

/* The last part of the state is the sum of the weights so far, and the first step knows of none. */
static void sums(void **state)
{
    (void)state;
    static const char *const cases[] = {"bahdanau coverage=3", "luong coverage=3 score=additive",
                                        "rnn-attention coverage=3 score=additive", "nematus coverage=3"};
    at_arena *arena = at_arena_new();
    for (int i = 0; i < 4; i++) {
        at_model *model = case_model(cases[i], 4, 3);
        at_pass pass = {.tape = at_tape_new(arena, false)};
        at_parts encoded = at_model_encode(model, &pass, &full_source);
        at_parts s = at_model_start(model, &pass, &full_source, &encoded);
        at_decoded d = at_model_decode(model, &pass, &full_source, &encoded, &s, target_in, TARGET);
        check_tape(cases[i], pass.tape);
        const at_tensor *sum = s.part[s.count - 1];
        assert_true(at_shape_same(sum->shape, AT_SHAPE(ROWS, SOURCE)));
        for (int b = 0; b < ROWS; b++)
            for (int j = 0; j < SOURCE; j++) {
                double all = 0;
                for (int t = 0; t < TARGET; t++)
                    all += d.weights->value[(b * TARGET + t) * SOURCE + j];
                assert_true(fabs(sum->value[b * SOURCE + j] - all) < 1e-12);
            }
        double other[ROWS * TARGET * SOURCE];
        memcpy(other, d.weights->value, sizeof other);
        at_init_normal(model->params, at_params_find(model->params, "attention.U_f"), 3, 9);
        at_params_changed(model->params);
        pass.tape = at_tape_new(arena, false);
        d = case_decode(model, &pass, &full_source, target_in, TARGET);
        double first = 0, later = 0;
        for (int k = 0; k < ROWS * TARGET * SOURCE; k++)
            *(k / SOURCE % TARGET == 0 ? &first : &later) += fabs(other[k] - d.weights->value[k]);
        assert_true(first == 0 && later > 1e-3);
        at_arena_reset(arena);
        at_model_free(model);
    }
    at_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(terms), cmocka_unit_test(sums)};
    at_threads_set(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
