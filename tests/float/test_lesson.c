/* The lesson: the numbers of the worked examples, what the operator returns for the same arrays, small models that learn
 * by requests, and bad requests, each refused with one message. */
/* cmocka.h needs these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "lesson/lesson.h"

#define WORDS_X "[[1,3,2],[1,1,3],[1,2,1]]"

static json_t *ask(at_lesson *lesson, const char *request)
{
    at_error error = {0};
    char *text = at_lesson_answer(lesson, request, strlen(request), &error);
    if (!text)
        fail_msg("%s: %s", request, error.text);
    json_t *answer = at_json_read(text, strlen(text), "the answer", &error);
    assert_non_null(answer);
    free(text);
    return answer;
}

static json_t *ask_alone(const char *request)
{
    at_error error = {0};
    at_lesson *lesson = at_lesson_new(&error);
    json_t *answer = ask(lesson, request);
    at_lesson_free(lesson);
    return answer;
}

/* A number inside arrays; -1 where there are fewer. */
static double at(const json_t *answer, const char *name, int i, int j, int k)
{
    const json_t *value = json_object_get(answer, name);
    const int index[] = {i, j, k};
    for (int n = 0; n < 3 && index[n] >= 0; n++)
        value = json_array_get(value, (size_t)index[n]);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static void expect_rows(const json_t *answer, const char *name, const double *expected, int rows, int columns,
                        double tolerance)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            assert_true(fabs(at(answer, name, i, j, -1) - expected[i * columns + j]) <= tolerance);
}

/* "I am good": softmax(X Xᵀ) X */
static void test_worked_example(void **state)
{
    (void)state;
    static const double scores[] = {14, 10, 9, 10, 11, 6, 9, 6, 6};
    static const double z[] = {1, 2.957691, 2.011295, 1, 1.540148, 2.722573, 1, 2.864164, 2};
    static const double rounded[] = {0.97, 0.02, 0.01, 0.27, 0.73, 0.00, 0.90, 0.05, 0.05};
    json_t *answer = ask_alone("{\"ask\":\"attend\",\"score\":\"dot\",\"query\":" WORDS_X "}");
    expect_rows(answer, "output", z, 3, 3, 1e-6);
    for (int i = 0; i < 9; i++) {
        assert_true(at(answer, "scores", 0, i / 3, i % 3) == scores[i]);
        assert_true(fabs(at(answer, "weights", 0, i / 3, i % 3) - rounded[i]) < 0.011);
    }
    assert_true(fabs(at(answer, "sums", 0, 0, -1) - 2.14) < 0.03);
    json_decref(answer);
}

/* Queries from X, keys and values from Y: the weights of the second example. */
static void test_other_words(void **state)
{
    (void)state;
    static const double rounded[] = {0.10, 0.66, 0.24, 0.49, 0.49, 0.02, 0.16, 0.42, 0.42};
    json_t *answer = ask_alone("{\"ask\":\"attend\",\"score\":\"dot\",\"query\":" WORDS_X
                               ",\"key\":[[1.95,1.05,2],[1,2,2],[1.6,2.4,0.6]]}");
    for (int i = 0; i < 9; i++)
        assert_true(fabs(at(answer, "weights", 0, i / 3, i % 3) - rounded[i]) < 0.0051);
    json_decref(answer);
}

/* Two heads with projections, against the operator called by hand. */
static void test_same_as_operator(void **state)
{
    (void)state;
    static const float x[] = {1, 0.5F, -1, 2, 0.25F, 1};
    static const float w[] = {1, 0, 0.5F, 0, 1, 0, 0.25F, 0, 1, 1, 1, 1};
    float out[8], weights[8];
    at_error error = {0};
    const at_settings settings = {.heads = 2, .normaliser = "sparsemax", .window = "causal", .position = "alibi"};
    at_parameter p[] = {{.name = "WQ", .rank = 2, .dim = {4, 3}, .value = w},
                        {.name = "WK", .rank = 2, .dim = {4, 3}, .value = w},
                        {.name = "WV", .rank = 2, .dim = {4, 3}, .value = w}};
    at_call call = {.batch = 1,
                    .queries = 2,
                    .keys = 2,
                    .query_width = 3,
                    .key_width = 3,
                    .value_width = 3,
                    .query = x,
                    .key = x,
                    .value = x,
                    .parameters = p,
                    .parameter_count = 3,
                    .out = out,
                    .weights = weights};
    assert_true(at_attend(&settings, &call, &error));
#define W "[[1,0,0.5],[0,1,0],[0.25,0,1],[1,1,1]]"
    json_t *answer = ask_alone("{\"ask\":\"attend\",\"query\":[[1,0.5,-1],[2,0.25,1]],\"heads\":2,\"normaliser\":"
                               "\"sparsemax\",\"window\":\"causal\",\"position\":\"alibi\",\"parameters\":{\"WQ\":" W
                               ",\"WK\":" W ",\"WV\":" W "}}");
    for (int i = 0; i < 8; i++) {
        assert_true(fabs(at(answer, "output", i / 4, i % 4, -1) - (double)out[i]) < 1e-5);
        assert_true(fabs(at(answer, "weights", i / 4, i / 2 % 2, i % 2) - (double)weights[i]) < 1e-5);
    }
    assert_true(json_is_null(
        json_array_get(json_array_get(json_array_get(json_object_get(answer, "scores"), 0), 0), 1))); /* causal */
    assert_true(fabs(at(answer, "q", 0, 0, -1) - 0.5) < 1e-6 && fabs(at(answer, "q", 1, 3, -1) - 3.25) < 1e-6);
    json_decref(answer);
}

/* The same word has the same vector wherever it stands; positions tell its places apart. */
static void test_words(void **state)
{
    (void)state;
    json_t *same = ask_alone("{\"ask\":\"attend\",\"query\":{\"words\":[\"a\",\"b\",\"a\"],\"size\":8}}");
    json_t *placed =
        ask_alone("{\"ask\":\"attend\",\"query\":{\"words\":[\"a\",\"b\",\"a\"],\"size\":8,\"added\":\"sinusoidal\"}}");
    json_t *table = ask_alone("{\"ask\":\"positions\",\"kind\":\"sinusoidal\",\"length\":3,\"size\":8}");
    double apart = 0;
    for (int i = 0; i < 8; i++) {
        assert_true(fabs(at(same, "query", 0, i, -1)) == 1);
        assert_true(at(same, "query", 0, i, -1) == at(same, "query", 2, i, -1));
        assert_true(at(same, "output", 0, i, -1) == at(same, "output", 2, i, -1));
        apart += fabs(at(placed, "output", 0, i, -1) - at(placed, "output", 2, i, -1));
        assert_true(fabs(at(placed, "query", 2, i, -1) - at(same, "query", 2, i, -1) - at(table, "table", 2, i, -1)) <
                    1e-6);
    }
    assert_true(apart > 0.1);
    assert_true(fabs(at(table, "table", 2, 0, -1) - sin(2)) < 1e-6);
    assert_true(fabs(at(table, "table", 2, 3, -1) - cos(2 / pow(10000, 2.0 / 8))) < 1e-6);
    json_decref(same);
    json_decref(placed);
    json_decref(table);
}

static void test_rope(void **state)
{
    (void)state;
    json_t *table = ask_alone("{\"ask\":\"positions\",\"kind\":\"rope\",\"length\":4,\"size\":4}");
    for (int p = 0; p < 4; p++)
        for (int m = 0; m < 2; m++) {
            const double x = at(table, "table", p, 2 * m, -1), y = at(table, "table", p, 2 * m + 1, -1);
            assert_true(fabs(x - cos(p * pow(10000, -m / 2.0))) < 1e-6);
            assert_true(fabs(fabs(y) - fabs(sin(p * pow(10000, -m / 2.0)))) < 1e-6);
        }
    json_decref(table);
}

/* Many draws come near the soft weights and the exact gradient, and the baseline makes them less noisy. */
static void test_draws(void **state)
{
    (void)state;
    json_t *answer = ask_alone("{\"ask\":\"draw\",\"score\":\"dot\",\"query\":[1,0.5],\"key\":[[1,0],[0,1],[-1,0.5]],"
                               "\"value\":[[5,1],[6,0],[7,2]],\"reward\":[1,0],\"draws\":2000,\"seed\":3}");
    const json_t *estimate[] = {json_object_get(answer, "plain"), json_object_get(answer, "baseline")};
    for (int j = 0; j < 3; j++)
        assert_true(fabs(at(answer, "frequency", j, -1, -1) - at(answer, "weights", j, -1, -1)) < 0.04);
    for (int c = 0; c < 2; c++) {
        const double exact = at(answer, "exact", c, -1, -1);
        for (int e = 0; e < 2; e++)
            assert_true(fabs(at(estimate[e], "mean", c, -1, -1) - exact) <
                        4 * at(estimate[e], "deviation", c, -1, -1) / sqrt(2000));
        assert_true(at(estimate[1], "deviation", c, -1, -1) < 0.5 * at(estimate[0], "deviation", c, -1, -1));
    }
    json_decref(answer);
}

static void test_scaling(void **state)
{
    (void)state;
    json_t *answer = ask_alone("{\"ask\":\"scaling\",\"d\":1024}");
    const json_t *dot = json_object_get(answer, "dot"), *scaled = json_object_get(answer, "scaled");
    assert_true(at(dot, "largest", -1, -1, -1) > 0.95);
    assert_true(at(scaled, "largest", -1, -1, -1) < 0.5);
    assert_true(at(scaled, "gradient", -1, -1, -1) > 5 * at(dot, "gradient", -1, -1, -1));
    json_decref(answer);
}

/* The parts of an encoder layer fit together, and its rows are normalised; heads matter, the order of the rows does not. */
static void test_layer(void **state)
{
    (void)state;
    json_t *one = ask_alone("{\"ask\":\"layer\",\"query\":[[1,3,2,0],[1,1,3,0]],\"seed\":2}");
    json_t *two = ask_alone("{\"ask\":\"layer\",\"query\":[[1,3,2,0],[1,1,3,0]],\"seed\":2,\"heads\":2}");
    json_t *turned = ask_alone("{\"ask\":\"layer\",\"query\":[[1,1,3,0],[1,3,2,0]],\"seed\":2}");
    static const double x[] = {1, 3, 2, 0, 1, 1, 3, 0};
    double apart = 0;
    for (int i = 0; i < 2; i++) {
        double mean[2] = {0}, squares[2] = {0};
        for (int c = 0; c < 4; c++) {
            static const char *const names[] = {"normed", "output"};
            assert_true(fabs(at(one, "sum", i, c, -1) - x[4 * i + c] - at(one, "attention", i, c, -1)) < 1e-5);
            assert_true(fabs(at(one, "output", i, c, -1) - at(turned, "output", 1 - i, c, -1)) < 1e-5);
            apart += fabs(at(one, "output", i, c, -1) - at(two, "output", i, c, -1));
            for (int n = 0; n < 2; n++) {
                mean[n] += at(one, names[n], i, c, -1) / 4;
                squares[n] += at(one, names[n], i, c, -1) * at(one, names[n], i, c, -1) / 4;
            }
        }
        for (int n = 0; n < 2; n++)
            assert_true(fabs(mean[n]) < 1e-5 && fabs(squares[n] - 1) < 1e-3);
    }
    assert_true(apart > 0.01);
    json_decref(one);
    json_decref(two);
    json_decref(turned);
}

/* What arrives of a change: a recurrent layer loses it with every step. */
static void test_recurrent(void **state)
{
    (void)state;
    json_t *answer = ask_alone("{\"ask\":\"recurrent\"}");
    const json_t *left = json_object_get(answer, "left"), *times = json_object_get(answer, "milliseconds");
    assert_true(at(left, "rnn", 0, -1, -1) == 1 && at(left, "rnn", 63, -1, -1) < 1e-3);
    assert_true(at(left, "attention", 63, -1, -1) > 10 * at(left, "rnn", 63, -1, -1));
    for (int i = 0; i < 3; i++)
        assert_true(at(times, "rnn", i, -1, -1) > 0 && at(times, "attention", i, -1, -1) > 0);
    json_decref(answer);
}

/* Requests make the same run as one listing does, chunk by chunk, whoever asks and whatever else is asked between. */
static void test_learn(void **state)
{
    (void)state;
    at_error error = {0};
    at_lesson *lesson = at_lesson_new(&error);
    json_t *answer = NULL, *again;
    for (int update = 0; update <= 400; update += AT_LESSON_CHUNK) {
        char request[100];
        json_decref(answer);
        snprintf(request, sizeof request,
                 "{\"ask\":\"learn\",\"task\":\"beer\",\"model\":\"rnn-attention\",\"update\":%d}", update);
        answer = ask(lesson, request);
        assert_true(at(answer, "update", -1, -1, -1) == update);
        assert_int_equal(json_array_size(json_object_get(answer, "losses")), update ? update / AT_LESSON_CHUNK + 1 : 0);
        json_decref(ask(lesson, "{\"ask\":\"learn\",\"task\":\"antonyms\",\"word\":\"mans\",\"update\":25}"));
    }
    const json_t *says = json_array_get(json_object_get(answer, "says"), 0), *output = json_object_get(says, "output");
    static const char *const words[] = {"i", "want", "a", "beer", "E"};
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(json_string_value(json_array_get(output, i)), words[i]);
    assert_int_equal(json_array_size(json_object_get(says, "weights")), 5);
    assert_true(at(answer, "losses", 16, -1, -1) < 0.01 && at(answer, "losses", 0, -1, -1) > 1);
    /* 0.000868 is what attend demo beer prints for epoch 400 */
    assert_true(fabs(at(answer, "losses", 16, -1, -1) - 0.000868) < 1e-6);
    /* An earlier update is not gone back to. */
    again = ask(lesson, "{\"ask\":\"learn\",\"task\":\"beer\",\"model\":\"rnn-attention\",\"update\":100}");
    assert_true(json_equal(answer, again));
    json_decref(again);
    /* Other runs push it out; asked for again, it begins again. */
    for (int seed = 2; seed < 2 + AT_LESSON_RUNS; seed++) {
        char request[100];
        snprintf(request, sizeof request, "{\"ask\":\"learn\",\"task\":\"beer\",\"seed\":%d,\"update\":25}", seed);
        json_decref(ask(lesson, request));
    }
    again = ask(lesson, "{\"ask\":\"learn\",\"task\":\"beer\",\"model\":\"rnn-attention\",\"update\":400}");
    assert_true(at(again, "update", -1, -1, -1) == AT_LESSON_CHUNK);
    assert_true(at(again, "losses", 1, -1, -1) == at(answer, "losses", 1, -1, -1));
    json_decref(again);
    json_decref(answer);
    at_lesson_free(lesson);
}

/* Both languages have all texts of the page and no other, and the files are there. */
static void test_files(void **state)
{
    (void)state;
    static const char *const files[] = {"/lesson.css", "/lesson.js", "/plays.js", "/en.json", "/zh.json"};
    at_error error = {0};
    const char *type;
    json_t *table[2];
    for (int i = 0; i < 2; i++) {
        char *text = at_lesson_file(i ? "/zh.json" : "/en.json", false, &type, &error);
        assert_non_null(text);
        assert_string_equal(type, "application/json");
        table[i] = at_json_read(text, strlen(text), "the texts", &error);
        assert_non_null(table[i]);
        free(text);
        text = at_lesson_file("", i, &type, &error);
        assert_non_null(text);
        assert_null(strstr(text, "{{"));
        assert_non_null(strstr(text, i ? "<html lang=\"zh\">" : "<html lang=\"en\">"));
        char *same = at_lesson_file(i ? "/zh" : "/en", !i, &type, &error);
        assert_string_equal(same, text);
        free(same);
        free(text);
    }
    for (int i = 0; i < 2; i++) {
        const char *name;
        json_t *value;
        json_object_foreach(table[i], name,
                            value) if (!json_is_string(json_object_get(table[!i], name)) || !*json_string_value(value))
            fail_msg("the text '%s' is in one language only", name);
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *text = at_lesson_file(files[i], false, &type, &error);
        assert_non_null(text);
        free(text);
    }
    assert_null(at_lesson_file("/other", false, &type, &error));
    assert_int_equal(error.code, AT_OK);
    json_decref(table[0]);
    json_decref(table[1]);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *request, *message;
        int code;
    } bad[] = {
        {"", "the request is not JSON", AT_FORMAT},
        {"[1]", "a request of the lesson is an object such as", AT_USAGE},
        {"{}", "a request of the lesson is an object such as", AT_USAGE},
        {"{\"ask\":\"atend\"}", "no `ask` 'atend'; did you mean 'attend'?", AT_USAGE},
        {"{\"ask\":1}", "`ask` must be a text", AT_USAGE},
        {"{\"ask\":\"attend\",\"quary\":[1]}", "there is no `quary` in such a request", AT_USAGE},
        {"{\"ask\":\"attend\"}", "`query` must be 1 to 64 rows of 1 to 64 numbers", AT_SHAPE},
        {"{\"ask\":\"attend\",\"query\":[[1,2],[3]]}", "row 2 of `query` must have 2 numbers", AT_SHAPE},
        {"{\"ask\":\"attend\",\"query\":[[1,\"2\"]]}", "row 1 of `query` must have numbers from", AT_USAGE},
        {"{\"ask\":\"attend\",\"query\":[[1,2e6]]}", "row 1 of `query` must have numbers from", AT_USAGE},
        {"{\"ask\":\"attend\",\"query\":[[1]],\"value\":[[1],[2]]}", "`key` has 1 rows and `value` 2", AT_SHAPE},
        {"{\"ask\":\"attend\",\"query\":[[1]],\"heads\":17}", "`heads` must be a whole number from 1 to 16", AT_USAGE},
        {"{\"ask\":\"attend\",\"query\":[[1]],\"heads\":2}", "`heads` is 2 and does not divide the query width 1",
         AT_SHAPE},
        {"{\"ask\":\"attend\",\"query\":[[1]],\"score\":\"dott\"}", "no score 'dott'", AT_USAGE},
        {"{\"ask\":\"attend\",\"query\":[[1]],\"score\":\"general\"}", "score 'general' needs parameter 'W'",
         AT_FAILED},
        {"{\"ask\":\"attend\",\"query\":{\"words\":[]}}", "the `words` of `query` must be a list of 1 to 64", AT_SHAPE},
        {"{\"ask\":\"attend\",\"query\":{\"words\":[1]}}", "the `words` of `query` must be texts", AT_USAGE},
        {"{\"ask\":\"attend\",\"query\":{\"words\":[\"a\"],\"added\":\"sines\"}}", "no `added` 'sines'", AT_USAGE},
        {"{\"ask\":\"attend\",\"query\":{\"words\":[\"a\"],\"size\":3,\"added\":\"learned\"}}", "must be even",
         AT_SHAPE},
        {"{\"ask\":\"draw\",\"query\":[1],\"reward\":[1,2]}", "a `reward` with as many numbers as a value has, 1",
         AT_SHAPE},
        {"{\"ask\":\"layer\",\"query\":[1,2,3],\"heads\":2}", "`heads` is 2 and does not divide the 3 numbers",
         AT_SHAPE},
        {"{\"ask\":\"positions\",\"kind\":\"ropes\"}", "no `kind` 'ropes'", AT_USAGE},
        {"{\"ask\":\"scaling\",\"d\":4096}", "`d` must be a whole number from 1 to 1024", AT_USAGE},
        {"{\"ask\":\"learn\",\"task\":\"wine\"}", "no `task` 'wine'", AT_USAGE},
        {"{\"ask\":\"learn\",\"word\":\"Man\"}", "`word` must be 1 to 5 letters from a to z", AT_USAGE},
        {"{\"ask\":\"learn\",\"task\":\"beer\",\"word\":\"man\"}", "takes no `word`", AT_USAGE},
        {"{\"ask\":\"learn\",\"update\":5001}", "`update` must be a whole number from 0 to 5000", AT_USAGE},
    };
    at_error none = {0};
    at_lesson *lesson = at_lesson_new(&none);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        at_error error = {0};
        char *text = at_lesson_answer(lesson, bad[i].request, strlen(bad[i].request), &error);
        if (text || error.code != bad[i].code || !strstr(error.text, bad[i].message))
            fail_msg("%s: %d %s", bad[i].request, error.code, error.text);
    }
    at_error error = {0};
    char *large = calloc(1, AT_LESSON_REQUEST + 1);
    assert_null(at_lesson_answer(lesson, large, AT_LESSON_REQUEST + 1, &error));
    assert_non_null(strstr(error.text, "the lesson takes 65536 at most"));
    free(large);
    at_lesson_free(lesson);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worked_example),
        cmocka_unit_test(test_other_words),
        cmocka_unit_test(test_same_as_operator),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_rope),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_scaling),
        cmocka_unit_test(test_layer),
        cmocka_unit_test(test_recurrent),
        cmocka_unit_test(test_learn),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
