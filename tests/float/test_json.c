#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

static json_t *read_text(const char *text, at_error *error)
{
    *error = (at_error){0};
    return at_json_read(text, strlen(text), "a text", error);
}

/* What is read is what Jansson reads from the same text. */
static void test_values(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "[]",
        " { \"a\" : [ 1 , 2.5 ,\t-3e2, 0, -0, 1E+2, 0.0625e-3 ] ,\r\n\"b\":{\"a\":true,\"\":false,\"c\":null} } \n",
        "\"\"",
        "\"plain\"",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "\"\\u00e9\\u20AC\\uD83D\\uDE00 \xC3\xA9\xF0\x9F\x98\x80\"",
        "[9223372036854775807,-9223372036854775808,1.7976931348623157e308,5e-324,0.1000000000000000055511151231257827]",
        "[[[[[[]]]],{\"x\":{\"y\":{\"z\":[1,{}]}}}]]",
        "{\"long name of more than sixteen bytes\":\"a value that is longer than that\"}",
        "true",
        "12",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        at_error error;
        json_t *ours = read_text(texts[i], &error);
        json_t *theirs = json_loads(texts[i], JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(theirs);
        if (!ours)
            fail_msg("%s: %s", texts[i], error.text);
        assert_true(json_equal(ours, theirs));
        json_decref(ours);
        json_decref(theirs);
    }
}

static void test_order(void **state)
{
    (void)state;
    at_error error;
    json_t *object = read_text("{\"z\":1,\"a\":2,\"m\":3}", &error);
    char *text = json_dumps(object, JSON_COMPACT);
    assert_string_equal(text, "{\"z\":1,\"a\":2,\"m\":3}");
    free(text);
    json_decref(object);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *fault;
    } cases[] = {
        {"", "neither a value nor a number at byte 0"},
        {"nul", "neither a value nor a number at byte 0"},
        {"[1,]", "neither a value nor a number at byte 3"},
        {"[,1]", "neither a value nor a number at byte 1"},
        {"[1 2]", "neither a comma nor a bracket after a value at byte 3"},
        {"[1", "neither a comma nor a bracket after a value at byte 2"},
        {"{\"a\"}", "no colon after a name at byte 4"},
        {"{a:1}", "no name where one should be at byte 1"},
        {"{\"a\":1,}", "no name where one should be at byte 7"},
        {"{\"a\":1,\"b\":{},\"a\":2}", "a name twice in one object at byte 17"},
        {"\"abc", "a string without an end at byte 4"},
        {"\"a\nb\"", "a control character in a string at byte 2"},
        {"\"\\x\"", "an unknown escape in a string at byte 3"},
        {"\"\\", "an unknown escape in a string at byte 2"},
        {"\"\\u12\"", "a \\u escape that is no character at byte 3"},
        {"\"\\uD83D\"", "a \\u escape that is no character at byte 7"},
        {"\"\\uD83D\\u0041\"", "a \\u escape that is no character at byte 13"},
        {"\"\\uDE00\"", "a \\u escape that is no character at byte 7"},
        {"\"\\u0000\"", "a NUL character in a string at byte 7"},
        {"01", "neither a value nor a number at byte 2"},
        {"1.", "neither a value nor a number at byte 2"},
        {"1e", "neither a value nor a number at byte 2"},
        {"-", "neither a value nor a number at byte 1"},
        {"+1", "neither a value nor a number at byte 0"},
        {".5", "neither a value nor a number at byte 0"},
        {"NaN", "neither a value nor a number at byte 0"},
        {"9223372036854775808", "a number that is too large at byte 19"},
        {"1e999", "a number that is too large at byte 5"},
        {"1 2", "more text after its end at byte 2"},
        {"[\"\xC3\"]", "bytes that are not UTF-8 at byte 2"},
        {"\"\xED\xA0\x80\"", "bytes that are not UTF-8 at byte 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        at_error error;
        char wanted[200];
        assert_null(read_text(cases[i].text, &error));
        snprintf(wanted, sizeof wanted, "a text is not JSON: it has %s", cases[i].fault);
        assert_string_equal(error.text, wanted);
        assert_int_equal(error.code, AT_FORMAT);
    }
    at_error error = {0};
    assert_null(at_json_read("[\0]", 3, "a text", &error)); /* a NUL is not the end of the text */
    assert_string_equal(error.text, "a text is not JSON: it has neither a value nor a number at byte 1");
}

static void test_depth(void **state)
{
    (void)state;
    char text[400] = "";
    at_error error;
    memset(text, '[', 100);
    memset(text + 100, ']', 100);
    json_t *value = read_text(text, &error);
    assert_non_null(value);
    json_decref(value);
    memset(text, '[', 101);
    memset(text + 101, ']', 101);
    assert_null(read_text(text, &error));
    assert_string_equal(error.text, "a text is not JSON: it has brackets nested too deep at byte 101");
}

static long left; /* allocations of Jansson that succeed */

static void *scarce(size_t size)
{
    return left-- > 0 ? malloc(size) : NULL;
}

/* Every allocation of Jansson fails once: no value, and the error says so. */
static void test_memory(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a name of more than sixteen bytes\":[1,2.5,true,\"\\u00e9 and more\",{\"b\":[]}],\"c\":\"d\"}";
    json_t *value = NULL;
    long failed = 0;
    json_set_alloc_funcs(scarce, free);
    for (; !value; failed++) {
        at_error error;
        left = failed;
        value = read_text(text, &error);
        if (!value) {
            assert_string_equal(error.text, "out of memory for a text");
            assert_int_equal(error.code, AT_MEMORY);
        }
    }
    assert_true(failed > 10);
    json_decref(value);
    json_set_alloc_funcs(malloc, free);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_order),  cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_depth),  cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
