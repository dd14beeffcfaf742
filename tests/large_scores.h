/* Scores with a large common offset, which no normaliser but sigmoid and relu sees: the fused path, in float, against the
 * plain path in double given the same numbers, over the whole product of settings.
 *
 * Compiled twice. The double program compares its own two paths, and as `PROGRAM write` it writes the plain path's
 * results to its standard output; the float program starts it so and reads them (REFERENCE is the command).
 *
 * The score is a sum of rounded products, so an offset of 1e6 leaves no more than steps of 1/16 of the rest, whatever
 * comes after. The inputs are chosen such that every score is a multiple of 3/16: queries are multiples of 1/2, keys of
 * 3/8, and the offset is the product of the last components alone. The 3 keeps the scores off the edges of a support, where
 * a gradient jumps. The scale and all that follows are any numbers. Rotations (rope) have no common offset. */
#ifndef LARGE_SCORES_H
#define LARGE_SCORES_H

#include "attention_cases.h"

#include <math.h>

#include "base/rng.h"

static const double roots[] = {0, 32, 128, 1000}; /* of the offset */
enum { OFFSETS = sizeof roots / sizeof *roots, MOST_PARTS = 2 * MOST_INPUTS };

/* ---- Inputs --------------------------------------------------------------------------------------------------- */

/* One of the multiples of `step` in [-most, most]. */
static double multiple(at_rng *rng, double step, double most)
{
    const uint32_t steps = (uint32_t)(2 * most / step) + 1;
    return step * at_rng_below(rng, steps) - most;
}

/* Steps are for offsets that cancel: not for rotations, and not for sigmoid and relu, which have a kink where e is 0. */
static bool is_stepped(const attention_case *c)
{
    return !c->attention.position->rotates && c->attention.normaliser->fused->ignores_offset;
}

/* What number (row, column) of an input is; `last`: row or column of the component that makes the offset. */
static double number_of(const attention_case *c, const char *name, at_rng *rng, double root, bool last_row,
                        bool last_column)
{
    const bool inner = c->attention.score->inner;
    const bool relu = !inner && c->attention.argument[AT_SCORE] == AT_ACT_RELU;
    const double wide = relu ? 1 : 8192; /* tanh and sigmoid of such numbers are 0, 1/2 or 1 */
    if (!is_stepped(c) && !last_row && !last_column)
        return at_rng_normal(rng);
    if (strcmp(name, "query") == 0)
        return last_column ? root : multiple(rng, 0.5, 2);
    if (strcmp(name, "key") == 0)
        return last_column ? root : multiple(rng, 0.375, 2.25);
    if (strcmp(name, "W") == 0 && inner)
        return last_row || last_column ? last_row && last_column : multiple(rng, 1, 1);
    if (strcmp(name, "W") == 0)
        return last_row ? last_column : last_column ? 0 : wide * multiple(rng, 1, 1);
    if (strcmp(name, "U") == 0)
        return last_row || last_column ? 0 : wide * multiple(rng, 1, 1);
    if (strcmp(name, "b") == 0)
        return last_column ? 0 : wide * multiple(rng, 0.5, 1);
    if (strcmp(name, "v") == 0)
        return last_column ? (relu ? root : root * root) : relu ? multiple(rng, 1.5, 1.5) : multiple(rng, 0.375, 1.5);
    if (strcmp(name, "wK") == 0) /* q wK has an offset of its own; hard attention must have no ties */
        return last_column                           ? 0.25
               : at_attention_samples(&c->attention) ? at_rng_normal(rng)
                                                     : multiple(rng, 0.09375, 1.5);
    if (strcmp(name, "bias") == 0)
        return (is_stepped(c) ? root * root : 0) + multiple(rng, 0.1875, 2.25);
    return last_column && strcmp(name, "Wp") == 0 ? 0 : at_rng_normal(rng);
}

static void fill(const attention_case *c, int input, double root, double sign, at_real *x)
{
    const at_shape shape = c->shape[input];
    const char *name = c->input_name[input];
    const int64_t count = at_shape_count(shape);
    const bool is_head = input < 3; /* [..., heads * D] */
    const int64_t columns = is_head ? c->D : shape.dim[shape.rank - 1];
    const int64_t rows = shape.rank > 1 && !is_head ? shape.dim[shape.rank - 2] : 1;
    at_rng rng = {.seed = (uint64_t)(input + 1)};
    for (int64_t i = 0; i < count; i++) {
        const bool last_row = rows > 1 && i / columns % rows == rows - 1, last_column = i % columns == columns - 1;
        x[i] = (at_real)(float)number_of(c, name, &rng, root, last_row, last_column);
        /* The score's last factor alone has the sign of the offset. */
        if (strcmp(name, c->attention.score->inner ? "key" : "v") == 0 && last_column)
            x[i] *= (at_real)sign;
    }
}

/* ---- Results -------------------------------------------------------------------------------------------------- */

typedef struct part {
    char name[32];
    at_real *value;
    int64_t count;
    double scale; /* of the numbers that it is a sum of: errors are relative to this */
} part;

typedef struct results {
    at_arena *arena;
    part part[MOST_PARTS];
    int parts;
} results;

static part *add_part(results *r, const char *name, at_real *value, int64_t count, double scale)
{
    assert_true(r->parts < MOST_PARTS);
    part *p = &r->part[r->parts++];
    *p = (part){.value = value, .count = count, .scale = scale};
    snprintf(p->name, sizeof p->name, "%s", name);
    return p;
}

static at_real *zeros(results *r, int64_t count)
{
    return at_arena_zeros(r->arena, (size_t)(count + 1) * sizeof(at_real));
}

static double largest_of(const at_real *x, int64_t count)
{
    double most = 1;
    for (int64_t i = 0; i < count; i++)
        most = fabs((double)x[i]) > most ? fabs((double)x[i]) : most;
    return most;
}

static bool is_in_score(const char *name)
{
    return strcmp(name, "value") != 0 && strcmp(name, "wV") != 0 && strcmp(name, "bias") != 0;
}

/* The gradient of an input is a sum of products of dL/de with the other factors of the score. Relu divides by the sum of
 * the scores, which may be small. */
static void add_gradients(results *r, const attention_case *c, at_real *const *x, at_real *const *grad)
{
    const double slope = c->attention.normaliser == &at_normaliser_relu ? 100 : 1;
    double product = slope;
    for (int i = 0; i < c->inputs; i++)
        if (is_in_score(c->input_name[i]))
            product *= largest_of(x[i], at_shape_count(c->shape[i]));
    for (int i = 0; i < c->inputs; i++) {
        char name[32];
        const int64_t count = at_shape_count(c->shape[i]);
        const double scale = is_in_score(c->input_name[i]) ? product / largest_of(x[i], count) : slope;
        snprintf(name, sizeof name, "gradient of %s", c->input_name[i]);
        add_part(r, name, grad[i], count, scale);
    }
}

/* dL/dx for L = sum out g + sum log_prob g */
static void run_backward(results *r, const attention_case *c, at_real *const *x)
{
    at_tape *tape = at_tape_new(r->arena, true);
    at_tensor *leaf[MOST_INPUTS];
    at_real *grad[MOST_INPUTS];
    for (int i = 0; i < c->inputs; i++) {
        grad[i] = zeros(r, at_shape_count(c->shape[i]));
        leaf[i] = at_leaf(tape, c->shape[i], x[i], grad[i], true);
    }
    at_attention_in in = in_of(c, leaf);
    const at_attention_out out = at_attention_run(tape, &c->attention, &in);
    if (!out.out)
        fail_msg("%s: %s", c->name, at_tape_error(tape)->text);
    const int64_t count = at_shape_count(out.out->shape);
    add_part(r, "out", memcpy(zeros(r, count), out.out->value, (size_t)count * sizeof(at_real)), count, 2);
    at_tensor *loss = NULL;
    for (int i = 0; i < 2; i++) {
        at_tensor *result = i ? out.log_prob : out.out;
        if (!result)
            continue;
        at_rng rng = {.seed = 99};
        at_real *g = zeros(r, at_shape_count(result->shape));
        for (int64_t n = 0; n < at_shape_count(result->shape); n++)
            g[n] = (at_real)(float)at_rng_normal(&rng);
        at_tensor *sum = at_sum(at_mul(result, at_leaf(tape, result->shape, g, NULL, false)), -1);
        loss = loss ? at_add(loss, sum) : sum;
    }
    if (!at_backward(loss))
        fail_msg("%s: %s", c->name, at_tape_error(tape)->text);
    add_gradients(r, c, x, grad);
}

/* Outputs, weights and summaries without a gradient; `summaries` false: decoding's own path for a single query. */
static void run_forward(results *r, const attention_case *c, at_real *const *x, bool summaries)
{
    const int64_t H = c->attention.heads, rows = c->B * H * c->Q;
    at_tape *tape = at_tape_new(r->arena, false);
    at_tensor *leaf[MOST_INPUTS];
    for (int i = 0; i < c->inputs; i++)
        leaf[i] = at_leaf(tape, c->shape[i], x[i], NULL, false);
    at_attention_in in = in_of(c, leaf);
    at_asked asked = {.weights = zeros(r, rows * c->K)};
    if (summaries) {
        asked.entropy = zeros(r, rows);
        asked.key_sums = zeros(r, c->B * H * c->K);
        asked.argmax = at_arena_take(r->arena, (size_t)rows * sizeof *asked.argmax);
    }
    in.asked = &asked;
    const at_attention_out out = at_attention_run(tape, &c->attention, &in);
    if (!out.out)
        fail_msg("%s: %s", c->name, at_tape_error(tape)->text);
    const int64_t count = at_shape_count(out.out->shape);
    add_part(r, "out", memcpy(zeros(r, count), out.out->value, (size_t)count * sizeof(at_real)), count, 2);
    add_part(r, "weights", asked.weights, rows * c->K, 1);
    if (out.log_prob)
        add_part(r, "log-probability", out.log_prob->value, rows, 2);
    if (!summaries)
        return;
    add_part(r, "entropy", asked.entropy, rows, 2);
    add_part(r, "key sums", asked.key_sums, c->B * H * c->K, 1);
    /* Of weights that differ by less than rounding either may be the largest: the weight found is compared. */
    at_real *best = zeros(r, rows);
    for (int64_t i = 0; i < rows; i++)
        best[i] = asked.argmax[i] < 0 ? -1 : asked.weights[i * c->K + asked.argmax[i]];
    add_part(r, "weight of the argmax", best, rows, 1);
}

static results run(attention_case *c, double root, double sign, bool plain)
{
    results r = {.arena = at_arena_new()};
    at_real *x[MOST_INPUTS];
    c->attention.plain = plain;
    for (int i = 0; i < c->inputs; i++) {
        x[i] = zeros(&r, at_shape_count(c->shape[i]));
        fill(c, i, root, sign, x[i]);
    }
    run_backward(&r, c, x);
    run_forward(&r, c, x, true);
    run_forward(&r, c, x, false);
    return r;
}

/* ---- The product ---------------------------------------------------------------------------------------------- */

static void handle(attention_case *c, double root, double sign);

static void each_offset(attention_case *c)
{
    static int number;
    const bool rotates = c->attention.position->rotates;
    c->has_lengths = c->has_lengths && c->K == 5; /* the lengths are those of small cases */
    for (int i = 0; i < (rotates ? 1 : OFFSETS); i++)
        handle(c, roots[i], number++ % 2 ? -1 : 1);
}

static void small_cases(void **state)
{
    (void)state;
    case_sizes.D = 6; /* whose square root has no end */
    case_sizes.no_projections = true;
    over_the_product("large scores", each_offset);
}

/* Several tiles and blocks: the largest score so far moves from tile to tile. */
static void long_cases(void **state)
{
    (void)state;
    int number = 0;
    case_sizes.D = 6;
    case_sizes.K = 600;
    case_sizes.Q = 100;
    case_sizes.no_projections = true;
    for (int n = 0; n < choice_count[AT_NORMALISER]; n++)
        for (int p = 0; p < choice_count[AT_POSITION]; p++, number++) {
            const choice *chosen[] = {&choices[AT_SCORE][1], &choices[AT_NORMALISER][n],
                                      &choices[AT_WINDOW][number % 2], &choices[AT_POSITION][p]};
            attention_case c = case_of("long", chosen, number);
            c.B = 1;
            if (nonsense(chosen))
                continue;
            c.attention = parsed(&c.settings);
            add_arrays(&c, chosen);
            each_offset(&c);
        }
}

/* ---- The two programs ----------------------------------------------------------------------------------------- */

/* Equal scores at distances whose biases differ by 1 are exactly on the edge of a support, where the gradient jumps. */
static bool is_on_edge(const attention_case *c)
{
    return c->attention.position == &at_position_alibi && c->attention.normaliser == &at_normaliser_sparsemax;
}

static void compare(const attention_case *c, double root, const part *p, const double *right, double tolerance)
{
    if (is_on_edge(c) && strncmp(p->name, "gradient", 8) == 0)
        return;
    for (int64_t i = 0; i < p->count; i++)
        if (!(fabs((double)p->value[i] - right[i]) <= tolerance * fmax(p->scale, fabs(right[i]))))
            fail_msg("%s, offset %g: %s, number %lld: plain path %.9g, fused path %.9g", c->name, root * root, p->name,
                     (long long)i, right[i], (double)p->value[i]);
}

#ifdef AT_DOUBLE

static bool writes;

static void handle(attention_case *c, double root, double sign)
{
    results plain = run(c, root, sign, true);
    if (writes) {
        for (int i = 0; i < plain.parts; i++) {
            fwrite(&plain.part[i].count, sizeof plain.part[i].count, 1, stdout);
            fwrite(plain.part[i].value, sizeof(double), (size_t)plain.part[i].count, stdout);
        }
    } else {
        results fused = run(c, root, sign, false);
        assert_int_equal(plain.parts, fused.parts);
        for (int i = 0; i < fused.parts; i++)
            compare(c, root, &fused.part[i], plain.part[i].value, 1e-8); /* e itself is rounded at 1e6 */
        at_arena_free(fused.arena);
    }
    at_arena_free(plain.arena);
}

int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(small_cases), cmocka_unit_test(long_cases)};
    writes = count == 2 && strcmp(words[1], "write") == 0;
    if (!writes)
        return cmocka_run_group_tests(tests, collect, NULL);
    collect(NULL);
    small_cases(NULL);
    long_cases(NULL);
    return fflush(stdout) != 0;
}

#else

static FILE *reference;

static void handle(attention_case *c, double root, double sign)
{
    results fused = run(c, root, sign, false);
    for (int i = 0; i < fused.parts; i++) {
        const part *p = &fused.part[i];
        int64_t count = -1;
        assert_int_equal(fread(&count, sizeof count, 1, reference), 1);
        assert_int_equal(count, p->count);
        double *right = at_arena_take(fused.arena, (size_t)(count + 1) * sizeof *right);
        assert_int_equal(fread(right, sizeof *right, (size_t)count, reference), count);
        compare(c, root, p, right, 1e-5);
    }
    at_arena_free(fused.arena);
}

static int start(void **state)
{
    reference = popen(REFERENCE " write", "r");
    return reference ? collect(state) : -1;
}

static int end(void **state)
{
    (void)state;
    return fgetc(reference) == EOF && pclose(reference) == 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(small_cases), cmocka_unit_test(long_cases)};
    return cmocka_run_group_tests(tests, start, end);
}

#endif
#endif
