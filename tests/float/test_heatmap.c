/* The heat map in the terminal: aligned columns for any script, readable values for any number. */
#include "attend.h"
#include "draw/label_internal.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect(const at_heatmap *map, const char *expected)
{
    at_error error = {0};
    char *text = at_heatmap_text(map, &error);
    assert_string_equal(error.text, "");
    assert_string_equal(text, expected);
    at_text_free(text);
}

static const float weights[] = {0.97f, 0.02f, 0.01f, 0.27f, 0.73f, 0, 0.90f, 0.05f, 0.05f};

static void test_plain(void **state)
{
    (void)state;
    const char *columns[] = {"je", "voudrais", "bière"}, *rows[] = {"I", "want", "a beer"};
    at_heatmap map = {3, 3, weights, rows, columns, false};
    expect(&map, "           je    voudrais   bière\n"
                 "     I  ██ 0.97      0.02     0.01\n"
                 "  want  ░░ 0.27   ▓▓ 0.73     0.00\n"
                 "a beer  ██ 0.90      0.05     0.05\n");
}

static void test_colour(void **state)
{
    (void)state;
    const float two[] = {0, 1};
    at_heatmap map = {1, 2, two, NULL, NULL, true};
    expect(&map, "     0     1\n"
                 "0 \x1b[48;2;26;24;48m\x1b[38;2;240;240;240m 0.00 "
                 "\x1b[48;2;250;226;80m\x1b[38;2;0;0;0m 1.00 \x1b[0m\n");
}

static void test_numbered_and_scaled(void **state)
{
    (void)state;
    const float values[] = {-2, 0, 2, NAN, INFINITY, -INFINITY, 1, -0.001f, -NAN};
    at_heatmap map = {3, 3, values, NULL, NULL, false};
    expect(&map, "       0         1         2\n"
                 "0     -2.00  ▒▒  0.00  ██  2.00\n"
                 "1  ??   nan  ██   inf      -inf\n"
                 "2  ▓▓  1.00  ▒▒  0.00  ??   nan\n");
    const float small[] = {0.25f, 0.5f}; /* weights are not scaled to their maximum */
    map = (at_heatmap){1, 2, small, NULL, NULL, false};
    expect(&map, "      0        1\n"
                 "0  ░░ 0.25  ▒▒ 0.50\n");
    const float large[] = {1e30f, -1e6f, 12345};
    map = (at_heatmap){1, 3, large, NULL, NULL, false};
    expect(&map, "        0            1            2\n"
                 "0  ██  1.0e+30     -1.0e+06     12345.00\n");
    const float same[] = {7, 7};
    map = (at_heatmap){1, 2, same, NULL, NULL, false};
    expect(&map, "      0        1\n"
                 "0  ▒▒ 7.00  ▒▒ 7.00\n");
}

/* The terminal column in which the last number of each line ends. */
static void expect_aligned(const char *text, int lines)
{
    int end = -1;
    const char *line = strchr(text, '\n') + 1;
    for (int i = 1; i < lines; i++) {
        size_t length = strcspn(line, "\n");
        char copy[512];
        memcpy(copy, line, length);
        copy[length] = '\0';
        int width = at_label_width(copy, 10000);
        if (end >= 0)
            assert_int_equal(width, end);
        end = width;
        line += length + 1;
    }
    assert_int_equal(*line, '\0');
}

static void test_wide_and_combining_characters(void **state)
{
    (void)state;
    float values[20];
    for (int i = 0; i < 20; i++)
        values[i] = (float)i / 19;
    const char *columns[] = {"我", "想要一杯", "啤酒", "e\xcc\x81te\xcc\x81", "Donaudampfschifffahrt"};
    const char *rows[] = {"ein", "我喜欢", "ganz langer Zeilenname", "x\xff\x1b[2J\n\xe2\x80\xae"};
    at_heatmap map = {4, 5, values, rows, columns, false};
    at_error error = {0};
    char *text = at_heatmap_text(&map, &error);
    expect_aligned(text, 5);
    assert_non_null(strstr(text, "Donaudampfs…\n"));
    assert_non_null(strstr(text, "ganz langer Zeilenn… "));
    assert_non_null(strstr(text, "   x��[2J�� "));
    assert_null(strchr(text, '\x1b'));
    at_text_free(text);
}

static void test_labels(void **state)
{
    (void)state;
    static const struct {
        const char *name, *shown;
        int most, width;
    } cases[] = {
        {"abc", "abc", 3, 3},
        {"abcd", "ab…", 3, 3},
        {"", "", 3, 0},
        {"我我", "我我", 4, 4},
        {"我我我", "我…", 4, 3}, /* a half of a wide character cannot be shown */
        {"我我我", "我我…", 5, 5},
        {"e\xcc\x81"
         "bc",
         "e\xcc\x81"
         "bc",
         3, 3},
        {"abe\xcc\x81", "abe\xcc\x81", 3, 3},
        {"ae\xcc\x81"
         "cd",
         "ae\xcc\x81…", 3, 3}, /* the accent stays with its letter */
        {"a\tb", "a�b", 3, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        at_buffer text = {0};
        assert_int_equal(at_label_width(cases[i].name, cases[i].most), cases[i].width);
        assert_int_equal(at_label_add(&text, cases[i].name, cases[i].most), cases[i].width);
        assert_string_equal(text.bytes == NULL ? "" : text.bytes, cases[i].shown);
        at_buffer_free(&text);
    }
}

static void test_edges(void **state)
{
    (void)state;
    at_heatmap map = {0, 2, NULL, NULL, NULL, false};
    expect(&map, "   0    1\n");
    map = (at_heatmap){2, 0, NULL, NULL, NULL, true};
    expect(&map, "\n0 \x1b[0m\n1 \x1b[0m\n");
    map = (at_heatmap){0, 0, NULL, NULL, NULL, false};
    expect(&map, "\n");
    at_error error = {0};
    map = (at_heatmap){-1, 2, weights, NULL, NULL, false};
    assert_null(at_heatmap_text(&map, &error));
    assert_string_equal(error.text, "a heat map cannot have -1 rows and 2 columns");
    error = (at_error){0};
    map = (at_heatmap){INT64_MAX, 2, weights, NULL, NULL, false};
    assert_null(at_heatmap_text(&map, &error));
    error = (at_error){0};
    map = (at_heatmap){1, 2, NULL, NULL, NULL, false};
    assert_null(at_heatmap_text(&map, &error));
    assert_string_equal(error.text, "a heat map of 1 rows and 2 columns needs its values");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_colour),
        cmocka_unit_test(test_numbered_and_scaled),
        cmocka_unit_test(test_wide_and_combining_characters),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
