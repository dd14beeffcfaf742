/* Vocabularies: text to ids and back, for any bytes. */
#include "base/rng.h"
#include "base/utf8.h"
#include "text/units.h"
#include "text/vocabulary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <utf8proc.h>

static at_vocabulary *learn(const char *kind, const char *const *lines)
{
    at_error error = {0};
    at_vocabulary *vocabulary = at_vocabulary_new(kind, &error);
    for (; *lines != NULL; lines++)
        assert_true(at_vocabulary_count(vocabulary, *lines, strlen(*lines), &error));
    assert_true(at_vocabulary_fix(vocabulary, &error));
    assert_int_equal(error.code, AT_OK);
    return vocabulary;
}

/* The units after the special ones, with their counts: "b3 a2 c1" */
static void expect_units(const at_vocabulary *vocabulary, const char *expected)
{
    at_buffer text = {0};
    for (int32_t id = AT_SPECIALS; id < at_vocabulary_size(vocabulary); id++)
        at_buffer_print(&text, "%s%s%lld", id > AT_SPECIALS ? " " : "", at_vocabulary_unit(vocabulary, id),
                        (long long)at_vocabulary_frequency(vocabulary, id));
    assert_string_equal(text.bytes, expected);
    at_buffer_free(&text);
}

static void expect_decoded(const at_vocabulary *vocabulary, const char *line, const char *expected)
{
    int32_t ids[100];
    int64_t replaced;
    int64_t count = at_vocabulary_encode(vocabulary, line, strlen(line), ids, 100, &replaced, NULL);
    at_buffer text = {0};
    assert_true(at_vocabulary_decode(vocabulary, ids, count, &text));
    assert_string_equal(text.bytes, expected);
    at_buffer_free(&text);
}

static void expect_failure(at_error *error, int code, const char *message)
{
    assert_string_equal(error->text, message);
    assert_int_equal(error->code, code);
    *error = (at_error){0};
}

/* By frequency, then by first occurrence; the special units before them. */
static void test_ids_by_frequency(void **state)
{
    (void)state;
    const char *lines[] = {"z a b", "b c\ta", "  b  ", "", "d", NULL};
    at_vocabulary *words = learn("word", lines);
    assert_int_equal(at_vocabulary_size(words), 9);
    expect_units(words, "b3 a2 z1 c1 d1");
    assert_string_equal(at_vocabulary_unit(words, AT_PAD), "<pad>");
    assert_string_equal(at_vocabulary_unit(words, AT_UNKNOWN), "<unk>");
    assert_string_equal(at_vocabulary_unit(words, AT_BEGIN), "<s>");
    assert_string_equal(at_vocabulary_unit(words, AT_END), "</s>");
    assert_null(at_vocabulary_unit(words, 9));
    assert_null(at_vocabulary_unit(words, -1));
    assert_int_equal(at_vocabulary_frequency(words, AT_UNKNOWN), 0);
    at_vocabulary_free(words);

    at_vocabulary *few = learn("word:3", lines);
    expect_units(few, "b3 a2 z1");
    expect_decoded(few, "z d a c", "z <unk> a <unk>");
    at_vocabulary_free(few);

    const char *text[] = {"h\xc3\xa9llo \xe4\xbd\xa0\xe5\xa5\xbd", "oh", NULL};
    at_vocabulary *chars = learn("char", text);
    expect_units(chars, "h2 l2 o2 \xc3\xa9\x31  1 \xe4\xbd\xa0\x31 \xe5\xa5\xbd\x31");
    expect_decoded(chars, "oh \xe5\xa5\xbd", "oh \xe5\xa5\xbd");
    expect_decoded(chars, "", "");
    at_vocabulary_free(chars);
}

/* Enough units for the table to grow many times, each found again. */
static void test_many_units(void **state)
{
    (void)state;
    at_error error = {0};
    at_vocabulary *vocabulary = at_vocabulary_new("word", &error);
    char word[32];
    for (int i = 0; i < 20000; i++)
        assert_true(at_vocabulary_count(vocabulary, word, (size_t)sprintf(word, "w%d w%d", i, i / 2), &error));
    assert_true(at_vocabulary_fix(vocabulary, &error));
    assert_int_equal(at_vocabulary_size(vocabulary), 20000 + AT_SPECIALS);
    for (int i = 0; i < 20000; i++) {
        int32_t id;
        int64_t replaced;
        assert_int_equal(
            at_vocabulary_encode(vocabulary, word, (size_t)sprintf(word, "w%d", i), &id, 1, &replaced, NULL), 1);
        assert_string_equal(at_vocabulary_unit(vocabulary, id), word);
        assert_int_equal(at_vocabulary_frequency(vocabulary, id), i < 10000 ? 3 : 1);
    }
    at_vocabulary_free(vocabulary);
}

/* Text that looks like a special unit is text. */
static void test_specials_are_no_text(void **state)
{
    (void)state;
    const char *lines[] = {"<s> </s> <unk> <pad>", NULL};
    at_vocabulary *words = learn("word", lines);
    int32_t ids[4];
    int64_t replaced;
    assert_int_equal(at_vocabulary_encode(words, lines[0], strlen(lines[0]), ids, 4, &replaced, NULL), 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(ids[i], AT_SPECIALS + i);
    expect_decoded(words, lines[0], lines[0]);

    /* Decoding stops at the end, and leaves out special units. */
    const int32_t mixed[] = {AT_BEGIN, 4, AT_PAD, AT_UNKNOWN, 99, -1, 5, AT_END, 6};
    at_buffer text = {0};
    assert_true(at_vocabulary_decode(words, mixed, 9, &text));
    assert_string_equal(text.bytes, "<s> <unk> </s>");
    at_buffer_free(&text);
    at_vocabulary_free(words);
}

/* Words are split at Unicode white space, and have the right offsets. */
static void test_white_space_and_places(void **state)
{
    (void)state;
    const char *line = "\xe3\x80\x80one\xc2\xa0two\xe2\x80\x89\tthree\r\v four\xc2\x85";
    const char *lines[] = {line, NULL};
    at_vocabulary *words = learn("word", lines);
    expect_units(words, "one1 two1 three1 four1");
    int32_t ids[3], pieces[6];
    int64_t replaced;
    assert_int_equal(at_vocabulary_encode(words, line, strlen(line), ids, 3, &replaced, pieces), 4); /* room for 3 */
    const char *found[] = {"one", "two", "three"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pieces[2 * i + 1] - pieces[2 * i], strlen(found[i]));
        assert_memory_equal(line + pieces[2 * i], found[i], strlen(found[i]));
    }
    at_vocabulary_free(words);
}

/* One replacement for each invalid sequence, as in chapter 3 of the Unicode standard. */
static void test_invalid_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        int replaced;
        const char *clean;
    } cases[] = {
        {"a\xff"
         "b",
         3, 1,
         "a\xef\xbf\xbd"
         "b"},
        {"\x80\x80", 2, 2, "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xc0\xaf", 2, 2, "\xef\xbf\xbd\xef\xbf\xbd"},                                 /* overlong */
        {"\xe0\x80\xaf", 3, 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},                 /* overlong */
        {"\xed\xa0\x80", 3, 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},                 /* a surrogate */
        {"\xf4\x91\x92\x93", 4, 4, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* beyond U+10FFFF */
        {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", 9, 4,
         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
         "A"},
        {"\xe4\xbd", 2, 1, "\xef\xbf\xbd"}, /* cut short */
        {"a\0b\nc", 5, 2,
         "a\xef\xbf\xbd"
         "b\xef\xbf\xbd"
         "c"},
        {"\xef\xbf\xbd", 3, 0, "\xef\xbf\xbd"}, /* itself is valid */
        {"\xf4\x8f\xbf\xbf", 4, 0, "\xf4\x8f\xbf\xbf"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        at_error error = {0};
        at_vocabulary *chars = at_vocabulary_new("char", &error);
        assert_true(at_vocabulary_count(chars, cases[i].bytes, cases[i].size, &error));
        assert_true(at_vocabulary_fix(chars, &error));
        int32_t ids[16];
        int64_t replaced;
        int64_t count = at_vocabulary_encode(chars, cases[i].bytes, cases[i].size, ids, 16, &replaced, NULL);
        assert_int_equal(replaced, cases[i].replaced);
        at_buffer text = {0};
        assert_true(at_vocabulary_decode(chars, ids, count, &text));
        assert_string_equal(text.bytes, cases[i].clean);
        at_buffer_free(&text);
        at_vocabulary_free(chars);
    }
    /* A word with an invalid byte is the word with U+FFFD in it. */
    const char *lines[] = {"x\xff"
                           "y x\xef\xbf\xbdy xy",
                           NULL};
    at_vocabulary *words = learn("word", lines);
    expect_units(words, "x\xef\xbf\xbdy2 xy1");
    expect_decoded(words, "x\xfey", "x\xef\xbf\xbdy");
    expect_decoded(words, "x\xfe", "<unk>");
    at_vocabulary_free(words);
}

static void test_json_round_trip(void **state)
{
    (void)state;
    at_error error = {0};
    const char *lines[] = {"\"quoted\" back\\slash \x01 \xe4\xbd\xa0 \xf0\x9f\x98\x80 \xef\xb7\x90 \xff a a", NULL};
    for (int kind = 0; kind < 2; kind++) {
        at_vocabulary *one = learn(kind ? "word" : "char", lines);
        char *json = at_vocabulary_to_json(one, &error), *again;
        at_vocabulary *two = at_vocabulary_from_json(json, &error);
        assert_non_null(two);
        assert_int_equal(at_vocabulary_size(one), at_vocabulary_size(two));
        for (int32_t id = 0; id < at_vocabulary_size(one); id++) {
            assert_string_equal(at_vocabulary_unit(one, id), at_vocabulary_unit(two, id));
            assert_int_equal(at_vocabulary_frequency(one, id), at_vocabulary_frequency(two, id));
        }
        again = at_vocabulary_to_json(two, &error);
        assert_string_equal(json, again);
        assert_true(kind ? strncmp(json, "{\"kind\":\"word\",\"units\":[\"a\",", 28) == 0
                         : strncmp(json, "{\"kind\":\"char\",\"units\":[\" \",", 28) == 0);
        free(json);
        free(again);
        at_vocabulary_free(one);
        at_vocabulary_free(two);
    }
}

static void test_json_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *json, *message;
    } cases[] = {
        {"[]", "a stored vocabulary needs its kind, its units and a count for each"},
        {"{\"kind\":\"word\",\"units\":[\"a\"],\"counts\":[]}",
         "a stored vocabulary needs its kind, its units and a count for each"},
        {"{\"kind\":\"word\",\"units\":[],\"counts\":[]}", "a stored vocabulary has no unit"},
        {"{\"kind\":\"word\",\"units\":[\"a\",3],\"counts\":[1,1]}",
         "unit 1 of a stored vocabulary is not a text with its count"},
        {"{\"kind\":\"word\",\"units\":[\"a\"],\"counts\":[-1]}",
         "unit 0 of a stored vocabulary is not a text with its count"},
        {"{\"kind\":\"word\",\"units\":[\"a\",\"b c\"],\"counts\":[1,1]}",
         "unit 1 of a stored vocabulary is not one word"},
        {"{\"kind\":\"char\",\"units\":[\"ab\"],\"counts\":[1]}", "unit 0 of a stored vocabulary is not one character"},
        {"{\"kind\":\"char\",\"units\":[\"\\n\"],\"counts\":[1]}",
         "unit 0 of a stored vocabulary is not one character"},
        {"{\"kind\":\"char\",\"units\":[\"\"],\"counts\":[1]}", "unit 0 of a stored vocabulary is not one character"},
        {"{\"kind\":\"word\",\"units\":[\"a\",\"a\"],\"counts\":[1,1]}", "a stored vocabulary has 'a' twice"},
        {"{\"kind\":\"spm\",\"units\":[\"a\"],\"counts\":[1]}",
         "a stored vocabulary lacks the hash of its subword model"},
        {"{\"kind\":\"x.spm\",\"units\":[\"a\"],\"counts\":[1]}",
         "no vocabulary 'x.spm'; there are 'char', 'word' and 'spm'"},
        {"{\"kind\":\"char\",\"normalise\":\"nfd\",\"units\":[\"a\"],\"counts\":[1]}",
         "a stored vocabulary has an unknown normalisation"},
    };
    at_error error = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_null(at_vocabulary_from_json(cases[i].json, &error));
        assert_string_equal(error.text, cases[i].message);
        error = (at_error){0};
    }
    assert_null(at_vocabulary_from_json("{", &error));
    assert_memory_equal(error.text, "a stored vocabulary is not JSON: ", 33);
}

static void test_refusals(void **state)
{
    (void)state;
    at_error error = {0};
    assert_null(at_vocabulary_new("words", &error));
    expect_failure(&error, AT_USAGE, "no vocabulary 'words'; did you mean 'word'?");
    assert_false(at_vocabulary_kind_known("chars:9", &error));
    expect_failure(&error, AT_USAGE, "no vocabulary 'chars:9'; did you mean 'char'?");
    assert_true(at_vocabulary_kind_known("not/there.model", &error)); /* a file is not opened */
    static const char *const sizes[] = {"word:0",  "word:",   "word:-3",
                                        "word: 5", "word:5x", "word:99999999999999999999"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char message[200];
        snprintf(message, sizeof message, "the size of vocabulary '%s' is a whole number, 1 or more, as in 'word:8000'",
                 sizes[i]);
        assert_null(at_vocabulary_new(sizes[i], &error));
        expect_failure(&error, AT_USAGE, message);
    }
    at_vocabulary *words = at_vocabulary_new("word", &error);
    assert_true(at_vocabulary_count(words, " \t ", 3, &error));
    assert_false(at_vocabulary_fix(words, &error));
    expect_failure(&error, AT_FORMAT, "the text has no word to build a vocabulary from");
    int32_t id;
    int64_t replaced;
    assert_int_equal(at_vocabulary_encode(words, "a", 1, &id, 1, &replaced, NULL), 1); /* before it is fixed */
    assert_int_equal(id, AT_UNKNOWN);
    assert_true(at_vocabulary_count(words, "a", 1, &error) && at_vocabulary_fix(words, &error));
    assert_false(at_vocabulary_count(words, "b", 1, &error));
    expect_failure(&error, AT_USAGE, "a fixed vocabulary cannot count more lines");
    at_vocabulary_free(words);
    at_vocabulary_free(NULL);
}

/* Random bytes, mostly those of interesting sequences, in a block of exactly that size, so that the sanitizers notice
 * a read beyond it. */
static char *random_line(at_rng *rng, size_t *size)
{
    static const unsigned char spice[] = {0x00, '\n', '\r', ' ',  0x80, 0xBF, 0xC2, 0xE0, 0xA0,
                                          0xED, 0xEF, 0xBB, 0xF0, 0x90, 0xF4, 0x8F, 0xFF, 0xE3};
    *size = at_rng_below(rng, 24);
    char *line = malloc(*size > 0 ? *size : 1);
    for (size_t i = 0; i < *size; i++)
        line[i] = (char)(at_rng_below(rng, 3) > 0 ? spice[at_rng_below(rng, sizeof spice)] : at_rng_below(rng, 256));
    return line;
}

/* For any bytes: every character is counted, decoding returns one line of UTF-8, and encoding it again the same ids. */
static void test_any_bytes(void **state)
{
    (void)state;
    enum { LINES = 10000 };
    at_error error = {0};
    for (int kind = 0; kind < 2; kind++) {
        at_rng rng = {7, 0};
        at_vocabulary *vocabulary = at_vocabulary_new(kind ? "word:2000" : "char", &error);
        for (int i = 0; i < LINES; i++) {
            size_t size;
            char *line = random_line(&rng, &size);
            assert_true(at_vocabulary_count(vocabulary, line, size, &error));
            free(line);
        }
        assert_true(at_vocabulary_fix(vocabulary, &error));
        char *json = at_vocabulary_to_json(vocabulary, &error);
        at_vocabulary *stored = at_vocabulary_from_json(json, &error);
        assert_int_equal(error.code, AT_OK);
        rng = (at_rng){7, 0};
        for (int i = 0; i < LINES; i++) {
            size_t size;
            char *line = random_line(&rng, &size);
            int32_t ids[32], again[32];
            int64_t replaced, none;
            int64_t count = at_vocabulary_encode(stored, line, size, ids, 32, &replaced, NULL);
            at_buffer text = {0};
            assert_true(at_vocabulary_decode(stored, ids, count, &text));
            assert_true(at_is_utf8(text.bytes));
            assert_int_equal(strlen(text.bytes), text.size);
            assert_null(strchr(text.bytes, '\n'));
            if (kind == 0) /* every unit is known, so the text is the line, cleaned */
                for (int64_t u = 0; u < count; u++)
                    assert_int_not_equal(ids[u], AT_UNKNOWN);
            if (kind == 0 || strstr(text.bytes, "<unk>") == NULL) {
                assert_int_equal(at_vocabulary_encode(vocabulary, text.bytes, text.size, again, 32, &none, NULL),
                                 count);
                assert_memory_equal(ids, again, (size_t)count * sizeof *ids);
                assert_int_equal(none, 0);
            }
            at_buffer_free(&text);
            free(line);
        }
        free(json);
        at_vocabulary_free(vocabulary);
        at_vocabulary_free(stored);
    }
}

/* The rule for invalid sequences against its definition: a maximal prefix of some valid sequence, or one byte. Every
 * string of three relevant bytes. */
static void test_replacement_rule(void **state)
{
    (void)state;
    static const unsigned char bytes[] = {'a',  0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0,
                                          0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF};
    enum { N = sizeof bytes };
    static const char tails[2][4] = {"\x80\x80\x80", "\xbf\xbf\xbf"};
    for (int n = 0; n < N * N * N; n++) {
        char text[3] = {(char)bytes[n / (N * N)], (char)bytes[n / N % N], (char)bytes[n % N]};
        size_t expected = 1;
        for (size_t length = 1; length <= 3; length++)
            for (size_t more = 0; more <= 4 - length; more++)
                for (int tail = 0; tail < 2; tail++) { /* text[0 .. length) and `more` bytes: a whole sequence? */
                    char tried[8] = {0};
                    utf8proc_int32_t point;
                    memcpy(tried, text, length);
                    memcpy(tried + length, tails[tail], more);
                    if (length + more <= 4 &&
                        utf8proc_iterate((const utf8proc_uint8_t *)tried, (utf8proc_ssize_t)(length + more), &point) ==
                            (utf8proc_ssize_t)(length + more))
                        expected = length;
                }
        int32_t point;
        bool broken;
        assert_int_equal(at_point_read(text, 3, &point, &broken), expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids_by_frequency),
        cmocka_unit_test(test_many_units),
        cmocka_unit_test(test_specials_are_no_text),
        cmocka_unit_test(test_white_space_and_places),
        cmocka_unit_test(test_invalid_bytes),
        cmocka_unit_test(test_json_round_trip),
        cmocka_unit_test(test_json_refusals),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_replacement_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
