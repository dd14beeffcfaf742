/* A tiny Transformer against PyTorch's numbers (tests/ref, with the script that made them): the logits, the loss and
 * the gradient of every parameter, with each set of kernels. And sinusoidal positions against their formulas. */
/* cmocka.h needs these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend.h"
#include "kernels/rows.h"
#include "model_of.h"
#include "models/transformer_internal.h"
#include "tape/ops.h"
#include "transformer_parameters.h"

enum { MOST_ROWS = 8, MOST_LENGTH = 16 };

static at_tensors *reference;
static json_t *batch;

/* Sentences of the batch as ids [B,n], `fill` beyond their lengths; returns n. */
static int64_t sentences(const char *part, int32_t fill, int32_t *ids, int64_t *lengths)
{
    json_t *rows = json_object_get(batch, part);
    int64_t longest = 0;
    for (size_t b = 0; b < json_array_size(rows); b++) {
        lengths[b] = (int64_t)json_array_size(json_array_get(rows, b));
        longest = lengths[b] > longest ? lengths[b] : longest;
    }
    assert_true(json_array_size(rows) <= MOST_ROWS && longest <= MOST_LENGTH);
    for (size_t b = 0; b < json_array_size(rows); b++)
        for (int64_t i = 0; i < longest; i++)
            ids[(int64_t)b * longest + i] =
                i < lengths[b] ? (int32_t)json_integer_value(json_array_get(json_array_get(rows, b), (size_t)i)) : fill;
    return longest;
}

/* The stored numbers are float32. Sums of gradients through several norms lose two or three digits in float, and how
 * many depends on how the compiler orders them; in double nothing is lost, so there the bound is tight. */
#ifdef AT_DOUBLE
#define TOLERANCE 2e-7
#else
#define TOLERANCE 5e-5
#endif

static void compare(const char *name, const char *part, const at_real *got, int64_t count, const char *kernels)
{
    char full[128];
    snprintf(full, sizeof full, "%s/%s", name, part);
    const at_array *want = at_tensors_get(reference, full);
    if (!want || at_array_count(want) != count)
        fail_msg("the reference file has no %s of %d numbers", full, (int)count);
    const float *values = want->data;
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - (double)values[i]) <= TOLERANCE * (1 + fabs((double)values[i]))))
            fail_msg("%s, %s kernels: %s[%d] is %.8g, PyTorch has %.8g", name, kernels, part, (int)i, (double)got[i],
                     (double)values[i]);
}

static void check(json_t *spec, const char *kernels)
{
    const char *name = json_string_value(json_object_get(spec, "name"));
    int32_t source_ids[MOST_ROWS * MOST_LENGTH], input[MOST_ROWS * MOST_LENGTH], target[MOST_ROWS * MOST_LENGTH];
    int64_t source_lengths[MOST_ROWS], lengths[MOST_ROWS];
    const int64_t rows = (int64_t)json_array_size(json_object_get(batch, "source"));
    at_source source = {.rows = rows, .ids = source_ids, .lengths = source_lengths};
    source.length = sentences("source", -1, source_ids, source_lengths);
    const int64_t n = sentences("input", 0, input, lengths),
                  words = json_integer_value(json_object_get(batch, "words"));
    sentences("target", -1, target, lengths);
    int64_t counted = 0; /* the targets without padding, one sentence after another */
    for (int64_t i = 0; i < rows * n; i++)
        if (target[i] >= 0)
            target[counted++] = target[i];

    at_model *model = model_of("transformer norm=post", json_string_value(json_object_get(spec, "settings")), words, words, 1);
    for (int i = 0; i < at_params_number(model->params); i++)
        fill_random(model->params, i);
    at_params_changed(model->params);
    at_arena *arena = at_arena_new();
    at_pass pass = {.tape = at_tape_new(arena, true), .lengths = lengths};
    at_parts encoded = at_model_encode(model, &pass, &source);
    at_parts state = at_model_start(model, &pass, &source, &encoded);
    at_decoded d = at_model_decode(model, &pass, &source, &encoded, &state, input, n);
    if (!d.logits)
        fail_msg("%s: %s", name, at_tape_error(pass.tape)->text);
    assert_true(d.packed && d.logits->shape.dim[0] == counted);
    compare(name, "logits", d.logits->value, counted * words, kernels); /* before their gradient overwrites them */
    at_tensor *loss = at_cross_entropy(d.logits, target, (at_real)json_real_value(json_object_get(batch, "smoothing")));
    assert_true(at_backward(loss));
    compare(name, "loss", loss->value, 1, kernels);
    const at_real *grad = at_params_grads(model->params), *value = at_params_values(model->params);
    for (int i = 0; i < at_params_number(model->params); i++)
        compare(name, at_params_name(model->params, i), grad + (at_params_value(model->params, i) - value),
                at_shape_count(at_params_shape(model->params, i)), kernels);
    at_arena_free(arena);
    at_model_free(model);
}

static void agrees_with_pytorch(void **state)
{
    static const char *const kernels[] = {"plain", AT_FAST_KERNELS};
    for (int i = 0; i < 2; i++)
        if (at_kernels_choose(kernels[i])) /* else this CPU lacks it */
            check(*state, kernels[i]);
    at_kernels_choose(NULL);
}

/* Every gradient of PyTorch belongs to a parameter of the model. */
static void no_parameter_is_missing(void **state)
{
    const char *name = json_string_value(json_object_get(*state, "name"));
    const int64_t words = json_integer_value(json_object_get(batch, "words"));
    at_model *model = model_of("transformer norm=post", json_string_value(json_object_get(*state, "settings")), words, words, 1);
    int count = 0;
    const size_t length = strlen(name);
    for (int i = 0; i < at_tensors_count(reference); i++) {
        const char *full = at_tensors_name(reference, i);
        count += strncmp(full, name, length) == 0 && full[length] == '/';
    }
    assert_int_equal(count, at_params_number(model->params) + 2);
    at_model_free(model);
}

/* ---- Sinusoidal positions --------------------------------------------------------------------------------------- */

/* PE(p,2i) = sin(p / 10000^(2i/d)) and PE(p,2i+1) its cosine; in halves P[p][j] = sin(p / 10000^(2j/d)) for j < d/2 and
 * P[p][d/2+j] its cosine; with d/2 - 1 instead of d/2, and from position 1, as in other toolkits. */
static void positions_match_their_formulas(void **unused)
{
    (void)unused;
    enum { D = 12, COUNT = 40, FROM = 3 };
    static const struct {
        const char *settings;
        bool halves;
        double over, first;
    } cases[] = {
        {"hidden=12 heads=2 ffn=8 layers=1", false, 6, 0},
        {"hidden=12 heads=2 ffn=8 layers=1 position-layout=halves", true, 6, 0},
        {"hidden=12 heads=2 ffn=8 layers=1 position-layout=halves position-denominator=half-1", true, 5, 0},
        {"hidden=12 heads=2 ffn=8 layers=1 position-denominator=half-1 first-position=1", false, 5, 1},
        {"hidden=12 heads=2 ffn=8 layers=1 position-layout=halves first-position=2", true, 6, 2},
    };
    at_arena *arena = at_arena_new();
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        at_model *model = model_of("transformer", cases[c].settings, 5, 5, 1);
        at_pass pass = {.tape = at_tape_new(arena, false)};
        /* every other one beyond the precomputed table */
        const int from = c % 2 ? AT_TABLE_POSITIONS - 1 : FROM;
        at_tensor *table = at_position_vectors(model, &pass, -1, from, COUNT);
        assert_non_null(table);
        for (int p = 0; p < COUNT; p++)
            for (int j = 0; j < D / 2; j++) {
                const double angle = (from + p + cases[c].first) / pow(10000, j / cases[c].over);
                const at_real *row = table->value + p * D;
                const at_real sine = row[cases[c].halves ? j : 2 * j];
                const at_real cosine = row[cases[c].halves ? D / 2 + j : 2 * j + 1];
                if (!(fabs((double)sine - sin(angle)) <= 1e-7 && fabs((double)cosine - cos(angle)) <= 1e-7))
                    fail_msg("%s: position %d, pair %d is %.8g and %.8g, not %.8g and %.8g", cases[c].settings, p, j,
                             (double)sine, (double)cosine, sin(angle), cos(angle));
            }
        at_model_free(model);
    }
    at_arena_free(arena);
}

int main(void)
{
    enum { MOST_CASES = 20 };
    at_error error = {0};
    reference = at_tensors_read(TESTS_DIR "/ref/transformer.safetensors", &error);
    json_t *cases = reference ? json_loads(at_tensors_meta(reference, "cases"), 0, NULL) : NULL;
    batch = reference ? json_loads(at_tensors_meta(reference, "batch"), 0, NULL) : NULL;
    if (!cases || !batch || json_array_size(cases) > MOST_CASES) {
        fprintf(stderr, "tests/ref/transformer.safetensors: %s\n",
                reference ? "its list of cases is no JSON" : error.text);
        return 1;
    }
    struct CMUnitTest tests[2 * MOST_CASES + 1];
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        json_t *spec = json_array_get(cases, i);
        const char *name = json_string_value(json_object_get(spec, "name"));
        tests[count++] = (struct CMUnitTest){.name = name, .test_func = agrees_with_pytorch, .initial_state = spec};
        tests[count++] = (struct CMUnitTest){.name = name, .test_func = no_parameter_is_missing, .initial_state = spec};
    }
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(positions_match_their_formulas);
    at_threads_set(1);
    int failed = _cmocka_run_group_tests("transformer reference", tests, count, NULL, NULL);
    json_decref(cases);
    json_decref(batch);
    at_tensors_free(reference);
    return failed != 0;
}
