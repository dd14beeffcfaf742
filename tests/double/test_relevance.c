/* Gradient x attention against NumPy's numbers (tests/ref/relevance.json, with the script that made them). */
/* cmocka.h needs these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>

#include "model_of.h"
#include "search/relevance_internal.h"
#include "transformer_parameters.h"

enum { MOST = 8 };

static int64_t ids_of(const json_t *array, int32_t *ids)
{
    const int64_t count = (int64_t)json_array_size(array);
    assert_true(count > 0 && count <= MOST);
    for (int64_t i = 0; i < count; i++)
        ids[i] = (int32_t)json_integer_value(json_array_get(array, (size_t)i));
    return count;
}

static void compare(const char *model, const char *part, const json_t *rows, const float *got, int64_t n, int64_t m)
{
    double largest = 0;
    assert_int_equal(json_array_size(rows), n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) {
            const double want = json_real_value(json_array_get(json_array_get(rows, (size_t)i), (size_t)j));
            largest = fmax(largest, want);
            if (!(fabs((double)got[i * m + j] - want) <= 1e-6))
                fail_msg("%s: %s[%d,%d] is %.8g, NumPy has %.8g", model, part, (int)i, (int)j, (double)got[i * m + j],
                         want);
        }
    assert_true(largest > 0.3);
}

static void test_numpy(void **state)
{
    (void)state;
    json_error_t why;
    json_t *reference = json_load_file(TESTS_DIR "/ref/relevance.json", 0, &why), *one;
    int32_t source[MOST], target[MOST];
    size_t i;
    if (!reference)
        fail_msg("relevance.json: %s", why.text);
    const int64_t S = ids_of(json_object_get(reference, "source"), source),
                  T = ids_of(json_object_get(reference, "target"), target);
    json_array_foreach(json_object_get(reference, "cases"), i, one)
    {
        const char *text = json_string_value(json_object_get(one, "model"));
        const bool has_source = json_object_get(one, "cross");
        at_model *model = model_of(text, "", has_source ? 11 : 0, 11, 1);
        float encoder[MOST * MOST] = {0}, decoder[MOST * MOST] = {0}, cross[MOST * MOST] = {0};
        at_error error = {0};
        for (int p = 0; p < at_params_number(model->params); p++)
            fill_random(model->params, p);
        at_params_changed(model->params);
        const at_relevance relevance = {.model = model,
                                        .source = has_source ? source : NULL,
                                        .S = has_source ? S : 0,
                                        .target = target,
                                        .T = T,
                                        .encoder = has_source ? encoder : NULL,
                                        .decoder = decoder,
                                        .cross = has_source ? cross : NULL};
        if (!at_relevance_compute(&relevance, &error))
            fail_msg("%s", error.text);
        compare(text, "decoder", json_object_get(one, "decoder"), decoder, T, T);
        if (has_source) {
            compare(text, "cross", json_object_get(one, "cross"), cross, T, S);
            compare(text, "encoder", json_object_get(one, "encoder"), encoder, S, S);
        }
        at_model_free(model);
    }
    assert_int_equal(i, 3);
    json_decref(reference);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numpy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
