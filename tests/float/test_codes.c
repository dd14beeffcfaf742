/* Every error code is raised by the public functions, for the reason that attend.h states. */
#include "attend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* An allocation that is too large returns NULL under the address sanitizer too. */
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void write_bytes(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

/* ---- Usage ---------------------------------------------------------------------------------------------------- */

static void unknown_setting(at_error *error)
{
    at_training *training = at_training_new(error);
    assert_false(at_training_set(training, "learning-rat", "1", error));
    at_training_free(training);
}

static void unknown_score(at_error *error)
{
    at_call call = {.batch = 1, .queries = 1, .keys = 1};
    assert_false(at_attend(&(at_settings){.score = "scalled"}, &call, error));
}

static const at_line line = {"a", 1};

static void unknown_metric(at_error *error)
{
    double score;
    assert_false(at_score_lines("blue", &line, &line, 1, &score, error));
}

static void unknown_tokeniser(at_error *error)
{
    const at_line *references = &line;
    assert_null(at_scores_new("bleu", &(at_score_settings){.tokenise = "13b"}, &line, 1, &references, 1, error));
}

static void no_array(at_error *error)
{
    assert_false(at_npy_write("none.npy", NULL, error));
}

/* ---- Memory --------------------------------------------------------------------------------------------------- */

static void huge_array(at_error *error)
{
    assert_null(at_array_new(AT_U8, 1, (int64_t[]){INT64_C(1) << 61}, error));
}

/* ---- Files ---------------------------------------------------------------------------------------------------- */

static void missing_array(at_error *error)
{
    assert_null(at_npy_read("missing.npy", error));
}

static void missing_tensors(at_error *error)
{
    assert_null(at_tensors_read("missing.safetensors", error));
}

static void missing_model(at_error *error)
{
    assert_null(at_translator_load("missing", error));
}

static void unwritable(at_error *error)
{
    at_array *array = at_array_new(AT_F32, 0, NULL, error);
    assert_false(at_npy_write("no-such-directory/a.npy", array, error));
    at_array_free(array);
}

static void directory(at_error *error)
{
    assert_null(at_npy_read(".", error));
}

/* ---- Formats -------------------------------------------------------------------------------------------------- */

/* A file of one tensor, without its last byte. */
static void truncated_tensors(at_error *error)
{
    static const char whole[] =
        "\x38\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}   1234";
    size_t size = sizeof whole - 1;
    at_tensors *tensors;
    write_bytes("whole.safetensors", whole, size);
    assert_non_null(tensors = at_tensors_read("whole.safetensors", error));
    at_tensors_free(tensors);
    write_bytes("cut.safetensors", whole, size - 1);
    assert_null(at_tensors_read("cut.safetensors", error));
}

static void not_an_array(at_error *error)
{
    write_bytes("text.npy", "text", 4);
    assert_null(at_npy_read("text.npy", error));
}

static void not_a_link(at_error *error)
{
    double score;
    assert_false(at_score_lines("aer", &line, &line, 1, &score, error));
}

/* ---- Shapes --------------------------------------------------------------------------------------------------- */

static void heads_that_do_not_divide(at_error *error)
{
    float query[5] = {0}, out[5];
    at_call call = {.batch = 1,
                    .queries = 1,
                    .keys = 1,
                    .query_width = 5,
                    .key_width = 5,
                    .value_width = 5,
                    .query = query,
                    .key = query,
                    .value = query,
                    .out = out};
    assert_false(at_attend(&(at_settings){.heads = 2}, &call, error));
}

static void too_many_dimensions(at_error *error)
{
    assert_null(at_array_new(AT_F32, AT_MAX_RANK + 1, (int64_t[AT_MAX_RANK + 1]){0}, error));
}

static void negative_map(at_error *error)
{
    assert_null(at_heatmap_text(&(at_heatmap){.rows = -1, .columns = 1}, error));
}

/* ---- What is not supported ------------------------------------------------------------------------------------ */

static void type_without_npy(at_error *error)
{
    at_array *array = at_array_new(AT_BF16, 0, NULL, error);
    assert_false(at_npy_write("bf16.npy", array, error));
    at_array_free(array);
}

static void unknown_dtype(at_error *error)
{
    static const char file[] = "\x38\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"C64\",\"shape\":[0],\"data_offsets\":[0,0]}}  ";
    write_bytes("complex.safetensors", file, sizeof file - 1);
    assert_null(at_tensors_read("complex.safetensors", error));
}

/* A model without attention, trained for one update. */
static at_translator *load_model(at_error *error)
{
    static const char *const settings[][2] = {{"source", "lines"},     {"target", "lines"},  {"output", "model"},
                                              {"model", "rnn-encdec"}, {"embedding", "4"},   {"hidden", "4"},
                                              {"updates", "1"},        {"overwrite", "true"}};
    at_training *training = at_training_new(error);
    at_train_result result;
    write_bytes("lines", "a b\nc d\n", 8);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        assert_true(at_training_set(training, settings[i][0], settings[i][1], error));
    assert_true(at_training_run(training, NULL, NULL, NULL, &result, error));
    at_training_free(training);
    at_translator *translator = at_translator_load("model", error);
    assert_non_null(translator);
    return translator;
}

static bool go_on(void *context, int64_t number, const at_result *result)
{
    (void)context, (void)number, (void)result;
    return true;
}

static void weights_without_attention(at_error *error)
{
    at_translator *translator = load_model(error);
    assert_false(
        at_align(translator, &(at_search_settings){.wants_weights = true}, &line, &line, 1, go_on, NULL, error));
    at_translator_free(translator);
}

static void features_of_one_vector(at_error *error)
{
    at_translator *translator = load_model(error);
    assert_false(at_encode(translator, &(at_search_settings){0}, &line, 1, go_on, NULL, error));
    at_translator_free(translator);
}

/* ---- Interruptions -------------------------------------------------------------------------------------------- */

static bool stop_now(void *context, int64_t number, const at_result *result)
{
    (void)context, (void)number, (void)result;
    return false;
}

static void stopped_translation(at_error *error)
{
    at_translator *translator = load_model(error);
    assert_false(at_translate(translator, &(at_search_settings){0}, &line, 1, stop_now, NULL, error));
    at_translator_free(translator);
}

/* ---- None of these -------------------------------------------------------------------------------------------- */

static void nothing_to_score(at_error *error)
{
    double score;
    assert_false(at_score_lines("wer", &line, &line, 0, &score, error));
}

/* ---- All of them ---------------------------------------------------------------------------------------------- */

static const struct {
    const char *what;
    at_code code;
    void (*provoke)(at_error *error);
} cases[] = {
    {"a setting that does not exist", AT_USAGE, unknown_setting},
    {"a score that does not exist", AT_USAGE, unknown_score},
    {"a metric that does not exist", AT_USAGE, unknown_metric},
    {"a tokeniser that does not exist", AT_USAGE, unknown_tokeniser},
    {"no array", AT_USAGE, no_array},
    {"an array larger than memory", AT_MEMORY, huge_array},
    {"a missing .npy file", AT_FILE, missing_array},
    {"a missing safetensors file", AT_FILE, missing_tensors},
    {"a missing model", AT_FILE, missing_model},
    {"a directory that does not exist", AT_FILE, unwritable},
    {"a directory instead of a file", AT_FILE, directory},
    {"a truncated safetensors file", AT_FORMAT, truncated_tensors},
    {"a text instead of a .npy file", AT_FORMAT, not_an_array},
    {"a line that is not an alignment", AT_FORMAT, not_a_link},
    {"heads that do not divide the width", AT_SHAPE, heads_that_do_not_divide},
    {"an array of nine dimensions", AT_SHAPE, too_many_dimensions},
    {"a heat map of -1 rows", AT_SHAPE, negative_map},
    {"bfloat16 in a .npy file", AT_UNSUPPORTED, type_without_npy},
    {"a dtype that is not read", AT_UNSUPPORTED, unknown_dtype},
    {"weights of a model without attention", AT_UNSUPPORTED, weights_without_attention},
    {"features of a model that keeps one vector", AT_UNSUPPORTED, features_of_one_vector},
    {"a callback that returns false", AT_INTERRUPTED, stopped_translation},
    {"no line to score", AT_FAILED, nothing_to_score},
};

static void test_cases(void **state)
{
    (void)state;
    bool raised[AT_INTERRUPTED + 1] = {true}; /* AT_OK is none */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        raised[cases[i].code] = true;
    for (int code = 0; code <= AT_INTERRUPTED; code++)
        if (!raised[code])
            fail_msg("no case has the code %d", code);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        at_error error = {0};
        cases[i].provoke(&error);
        if (error.code != (int)cases[i].code)
            fail_msg("%s: code %d instead of %d (%s)", cases[i].what, error.code, cases[i].code, error.text);
        assert_true(strlen(error.text) > 10 && !strchr(error.text, '\n'));
    }
}

static void enter_directory(void)
{
    static char name[] = "/tmp/attend-codes-XXXXXX";
    if (!mkdtemp(name) || chdir(name) != 0)
        abort();
}

static int remove_directory(void **state)
{
    (void)state;
    return system("rm -r \"$PWD\"") != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};
    enter_directory();
    return cmocka_run_group_tests(tests, NULL, remove_directory);
}
