/* The operator with every combination of settings, in double: gradients against finite differences, the fused path
 * against the plain one, and every refused combination. */
#include "attention_cases.h"
#include "gradcheck.h"

#include <float.h>

/* ---- One case ---- */

/* The output, followed by the log-probabilities if there are any. */
static at_tensor *build(at_tape *tape, at_tensor *const *x, const void *context)
{
    const attention_case *c = context;
    at_attention_in in = in_of(c, x);
    at_attention_out result = at_attention_run(tape, &c->attention, &in);
    if (!result.log_prob)
        return result.out;
    at_tensor *parts[] = {at_reshape(result.out, AT_SHAPE(-1)), at_reshape(result.log_prob, AT_SHAPE(-1))};
    return at_concat(parts, 2, 0);
}

static gradcheck_case check_of(const attention_case *c, uint64_t seed)
{
    gradcheck_case check = {.name = c->name, .build = build, .context = c, .inputs = c->inputs, .seed = seed};
    memcpy(check.shape, c->shape, sizeof c->shape);
    return check;
}

/* ---- Checks ---- */

/* dL/dx along a random direction of each input against a central difference; true if all agree but for the rounding of
 * the losses, which is all that is left of a difference where dL/dx is 0. A kink (relu, the edge
 * of a support or of a window) within the step makes one set of random inputs fail, a wrong gradient all of them. */
static bool directions_agree(const attention_case *c, uint64_t seed, bool last)
{
    const gradcheck_case check = check_of(c, seed);
    gradcheck_state s = {.c = &check};
    gradcheck_start(&s);
    gradcheck_back(&s, -1);
    at_rng rng = {.seed = 90 + seed};
    const double h = 1e-5;
    bool agree = true;
    for (int i = 0; i < c->inputs && agree; i++) {
        double along = 0, size = 0, loss[2],
               *direction = at_arena_take(s.arena, (size_t)s.count[i] * sizeof *direction);
        for (int64_t j = 0; j < s.count[i]; j++) {
            direction[j] = at_rng_normal(&rng);
            along += s.grad[i][j] * direction[j];
            size += fabs(s.grad[i][j] * direction[j]);
        }
        for (int side = 0; side < 2; side++) {
            for (int64_t j = 0; j < s.count[i]; j++)
                s.value[i][j] += (side ? -2 : 1) * h * direction[j];
            loss[side] = gradcheck_loss(&s);
        }
        for (int64_t j = 0; j < s.count[i]; j++)
            s.value[i][j] += h * direction[j];
        double measured = (loss[0] - loss[1]) / (2 * h);
        const double rounding = 4 * DBL_EPSILON * fmax(fabs(loss[0]), fabs(loss[1])) / (2 * h);
        agree = fabs(measured - along) <= 2e-7 * fmax(size, 0.01) + rounding;
        if (!agree && last)
            fail_msg("%s: gradient of %s along a direction: the backward pass has %.12g, differences have %.12g",
                     c->name, c->input_name[i], along, measured);
    }
    at_arena_free(s.arena);
    return agree;
}

static void check_gradients(const attention_case *c)
{
    enum { DRAWS = 4 };
    for (uint64_t seed = 1; seed <= DRAWS; seed++)
        if (directions_agree(c, seed, seed == DRAWS))
            return;
}

/* All results of one path, gradients included. */
typedef struct results {
    gradcheck_state s;
    double *out, *log_prob, *weights, *chosen, *entropy, *key_sums;
    int32_t *argmax;
    int64_t out_count;
} results;

static results run(attention_case *c, const gradcheck_case *check, bool plain)
{
    const int64_t H = c->attention.heads, rows = c->B * H * c->Q;
    results r = {.s = {.c = check}};
    c->attention.plain = plain;
    gradcheck_start(&r.s);
    gradcheck_back(&r.s, -1);
    r.weights = at_arena_take(r.s.arena, (size_t)(rows * c->K) * sizeof(double));
    r.chosen = at_arena_take(r.s.arena, (size_t)(2 * c->B * H * c->K) * sizeof(double));
    r.entropy = at_arena_take(r.s.arena, (size_t)rows * sizeof(double));
    r.key_sums = at_arena_take(r.s.arena, (size_t)(c->B * H * c->K) * sizeof(double));
    r.argmax = at_arena_take(r.s.arena, (size_t)rows * sizeof(int32_t));
    const int64_t two[] = {c->Q - 1, 0};
    for (int part = 0; part < 2; part++) { /* first all weights, then two rows of them */
        at_tape *tape = at_tape_new(r.s.arena, false);
        at_tensor *x[MOST_INPUTS];
        for (int i = 0; i < c->inputs; i++)
            x[i] = at_leaf(tape, c->shape[i], r.s.value[i], NULL, false);
        at_attention_in in = in_of(c, x);
        in.asked = &(at_asked){.weights = part ? r.chosen : r.weights,
                               .rows = part ? two : NULL,
                               .row_count = part ? 2 : 0,
                               .argmax = r.argmax,
                               .entropy = r.entropy,
                               .key_sums = r.key_sums};
        at_attention_out out = at_attention_run(tape, &c->attention, &in);
        if (!out.out)
            fail_msg("%s: %s", c->name, at_tape_error(tape)->text);
        r.out = out.out->value;
        r.out_count = at_shape_count(out.out->shape);
        r.log_prob = out.log_prob ? out.log_prob->value : NULL;
    }
    for (int64_t bh = 0; bh < c->B * H; bh++)
        for (int i = 0; i < 2; i++)
            assert_memory_equal(r.chosen + (bh * 2 + i) * c->K, r.weights + (bh * c->Q + two[i]) * c->K,
                                (size_t)c->K * sizeof(double));
    return r;
}

static void compare(const attention_case *c, const char *what, const double *plain, const double *fused, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(plain[i] - fused[i]) <= 1e-10 * (1 + fabs(plain[i]))))
            fail_msg("%s: %s, number %lld: plain path %.12g, fused path %.12g", c->name, what, (long long)i, plain[i],
                     fused[i]);
}

static void check_fused_is_plain(attention_case *c)
{
    const int64_t rows = c->B * c->attention.heads * c->Q;
    const gradcheck_case check = check_of(c, 1);
    results plain = run(c, &check, true), fused = run(c, &check, false);
    compare(c, "out", plain.out, fused.out, plain.out_count);
    compare(c, "weights", plain.weights, fused.weights, rows * c->K);
    compare(c, "entropy", plain.entropy, fused.entropy, rows);
    compare(c, "key sums", plain.key_sums, fused.key_sums, c->B * c->attention.heads * c->K);
    if (plain.log_prob)
        compare(c, "log-probability", plain.log_prob, fused.log_prob, rows);
    for (int64_t r = 0; r < rows; r++)
        if (plain.argmax[r] != fused.argmax[r])
            fail_msg("%s: argmax of row %lld: plain path %d, fused path %d", c->name, (long long)r, plain.argmax[r],
                     fused.argmax[r]);
    for (int i = 0; i < c->inputs; i++) {
        char what[40];
        snprintf(what, sizeof what, "gradient of %s", c->input_name[i]);
        compare(c, what, plain.s.grad[i], fused.s.grad[i], plain.s.count[i]);
    }
    at_arena_free(plain.s.arena);
    at_arena_free(fused.s.arena);
}

/* ---- The tests ---- */

static void plain_gradients(attention_case *c)
{
    c->attention.plain = true;
    check_gradients(c);
}

static void fused_gradients(attention_case *c)
{
    c->attention.plain = false;
    if (at_fused_can(&c->attention)) /* without a fused rule it is the plain path again */
        check_gradients(c);
}

static void plain_path_has_right_gradients(void **state)
{
    (void)state;
    over_the_product("plain path", plain_gradients);
}

static void fused_path_has_right_gradients(void **state)
{
    (void)state;
    over_the_product("op:attention", fused_gradients);
}

static void fused_path_is_the_plain_path(void **state)
{
    (void)state;
    over_the_product("fused and plain path", check_fused_is_plain);
}

/* A subset number by number, so that no error can cancel in a sum over a direction. */
static void single_numbers_have_right_gradients(void **state)
{
    (void)state;
    for (int axis = 0; axis < AT_AXES; axis++)
        for (int i = 0; i < choice_count[axis]; i++) {
            const choice *chosen[] = {&choices[0][1], &choices[1][0], &choices[2][0], &choices[3][0]};
            chosen[axis] = &choices[axis][i];
            if (nonsense(chosen))
                continue;
            for (int plain = 0; plain < 2; plain++) {
                attention_case c = case_of(plain ? "plain path" : "fused path", chosen, 5 + i);
                at_error error = {0};
                c.settings.plain = plain;
                assert_true(at_attention_parse(&c.settings, &c.attention, &error));
                add_arrays(&c, chosen);
                gradcheck_case check = check_of(&c, 1);
                check.tolerance = 1e-6;
                gradcheck(&check);
            }
        }
}

/* Sizes around the widths of vectors and tiles, in length and in head size. */
static void odd_sizes_agree(void **state)
{
    (void)state;
    static const int sizes[] = {1, 7, 8, 9, 63, 64, 65};
    for (int i = 0; i < 7; i++)
        for (int kind = 0; kind < 12; kind++) {
            /* every score, normaliser, window and position occurs in the twelve */
            const choice *chosen[AT_AXES];
            for (int axis = 0; axis < AT_AXES; axis++)
                chosen[axis] = &choices[axis][kind * (axis + 1) % choice_count[axis]];
            if (nonsense(chosen))
                chosen[3] = &choices[3][0];
            attention_case c = case_of("odd sizes", chosen, kind);
            at_error error = {0};
            assert_true(at_attention_parse(&c.settings, &c.attention, &error));
            c.Q = sizes[i];
            c.K = sizes[(i + kind) % 7];
            c.A = c.Dv = sizes[kind % 7];
            c.D = at_attention_rotates(&c.attention) ? 2 * sizes[kind % 5] : sizes[(kind + i) % 7];
            c.has_lengths = false;
            c.projections = false;
            add_arrays(&c, chosen);
            check_fused_is_plain(&c);
            if (c.Q < 10 || kind % 4 == 0) {
                c.attention.plain = false;
                check_gradients(&c);
            }
        }
}

/* Tensors whose shapes do not match; at_attend cannot create these. */
static void misfits_are_named(void **state)
{
    (void)state;
    static const double numbers[100];
    static const struct {
        at_shape query, key, value;
        const char *says;
    } rows[] = {
        {{2, {3, 4}},
         {3, {2, 5, 4}},
         {3, {2, 5, 4}},
         "query has shape [3,4] but needs [B,Q,width] with a width of at least 1"},
        {{3, {2, 3, 4}},
         {3, {2, 5, 0}},
         {3, {2, 5, 4}},
         "key has shape [2,5,0] but needs [B,K,width] with a width of at least 1"},
        {{3, {2, 3, 4}},
         {3, {1, 5, 4}},
         {3, {1, 5, 4}},
         "key has shape [1,5,4] but needs [2,K,width], as many batch rows as the query"},
        {{3, {2, 3, 4}},
         {3, {2, 5, 4}},
         {3, {2, 4, 4}},
         "value has shape [2,4,4] but needs [2,5,width], a row for each key"},
    };
    at_arena *arena = at_arena_new();
    const at_attention attention = parsed(&(at_settings){0});
    for (int i = 0; i < 5; i++) {
        at_tape *tape = at_tape_new(arena, false);
        at_attention_in in = {.query = at_leaf(tape, rows[i % 4].query, numbers, NULL, false),
                              .key = at_leaf(tape, rows[i % 4].key, numbers, NULL, false),
                              .value = i == 4 ? NULL : at_leaf(tape, rows[i % 4].value, numbers, NULL, false)};
        if (i == 4)
            in.query = in.key;
        assert_null(at_attention_run(tape, &attention, &in).out);
        assert_string_equal(at_tape_error(tape)->text, i == 4 ? "value [B,K,width] is not given" : rows[i].says);
    }
    at_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misfits_are_named),
        cmocka_unit_test(plain_path_has_right_gradients),
        cmocka_unit_test(fused_path_has_right_gradients),
        cmocka_unit_test(fused_path_is_the_plain_path),
        cmocka_unit_test(single_numbers_have_right_gradients),
        cmocka_unit_test(odd_sizes_agree),
    };
    return cmocka_run_group_tests(tests, collect, NULL);
}
