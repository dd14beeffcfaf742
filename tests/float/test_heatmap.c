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

static at_heatmap map_of(int64_t rows, int64_t columns, const float *values, const char *const *row_names,
                         const char *const *column_names, bool colour)
{
    return (at_heatmap){.rows = rows,
                        .columns = columns,
                        .values = values,
                        .row_names = row_names,
                        .column_names = column_names,
                        .colour = colour};
}

static const float weights[] = {0.97f, 0.02f, 0.01f, 0.27f, 0.73f, 0, 0.90f, 0.05f, 0.05f};

static void test_plain(void **state)
{
    (void)state;
    const char *columns[] = {"je", "voudrais", "bière"}, *rows[] = {"I", "want", "a beer"};
    at_heatmap map = map_of(3, 3, weights, rows, columns, false);
    expect(&map, "           je    voudrais   bière\n"
                 "     I  ██ 0.97      0.02     0.01\n"
                 "  want  ░░ 0.27   ▓▓ 0.73     0.00\n"
                 "a beer  ██ 0.90      0.05     0.05\n");
}

static void test_colour(void **state)
{
    (void)state;
    const float two[] = {0, 1};
    at_heatmap map = map_of(1, 2, two, NULL, NULL, true);
    expect(&map, "     0     1\n"
                 "0 \x1b[48;2;26;24;48m\x1b[38;2;240;240;240m 0.00 "
                 "\x1b[48;2;250;226;80m\x1b[38;2;0;0;0m 1.00 \x1b[0m\n");
}

static void test_numbered_and_scaled(void **state)
{
    (void)state;
    const float values[] = {-2, 0, 2, NAN, INFINITY, -INFINITY, 1, -0.001f, -NAN};
    at_heatmap map = map_of(3, 3, values, NULL, NULL, false);
    expect(&map, "       0         1         2\n"
                 "0     -2.00  ▒▒  0.00  ██  2.00\n"
                 "1  ??   nan  ██   inf      -inf\n"
                 "2  ▓▓  1.00  ▒▒  0.00  ??   nan\n");
    const float small[] = {0.25f, 0.5f}; /* weights are not scaled to their maximum */
    map = map_of(1, 2, small, NULL, NULL, false);
    expect(&map, "      0        1\n"
                 "0  ░░ 0.25  ▒▒ 0.50\n");
    const float large[] = {1e30f, -1e6f, 12345};
    map = map_of(1, 3, large, NULL, NULL, false);
    expect(&map, "        0            1            2\n"
                 "0  ██  1.0e+30     -1.0e+06     12345.00\n");
    const float same[] = {7, 7};
    map = map_of(1, 2, same, NULL, NULL, false);
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
    at_heatmap map = map_of(4, 5, values, rows, columns, false);
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
    at_heatmap map = map_of(0, 2, NULL, NULL, NULL, false);
    expect(&map, "   0    1\n");
    map = map_of(2, 0, NULL, NULL, NULL, true);
    expect(&map, "\n0 \x1b[0m\n1 \x1b[0m\n");
    map = map_of(0, 0, NULL, NULL, NULL, false);
    expect(&map, "\n");
    at_error error = {0};
    map = map_of(-1, 2, weights, NULL, NULL, false);
    assert_null(at_heatmap_text(&map, &error));
    assert_string_equal(error.text, "a heat map cannot have -1 rows and 2 columns");
    error = (at_error){0};
    map = map_of(INT64_MAX, 2, weights, NULL, NULL, false);
    assert_null(at_heatmap_text(&map, &error));
    error = (at_error){0};
    map = map_of(1, 2, NULL, NULL, NULL, false);
    assert_null(at_heatmap_text(&map, &error));
    assert_string_equal(error.text, "a heat map of 1 rows and 2 columns needs its values");
}

/* ---- Narrow terminals ----------------------------------------------------------------------------------------- */

/* The widest line of a text, without its colours. */
static int widest_line(const char *text)
{
    int widest = 0;
    char line[4096];
    while (*text) {
        size_t used = 0;
        for (; *text != '\n'; text++) {
            if (*text == '\x1b')
                text = strchr(text, 'm');
            else
                line[used++] = *text;
            assert_true(used < sizeof line);
        }
        line[used] = 0;
        int width = at_label_width(line, 10000);
        widest = width > widest ? width : widest;
        text++;
    }
    return widest;
}

static void test_narrow_terminals(void **state)
{
    (void)state;
    const char *columns[] = {"je", "voudrais", "bière"}, *rows[] = {"I", "want", "a beer"};
    at_heatmap map = map_of(3, 3, weights, rows, columns, false);
    map.width = 37; /* all of it fits */
    expect(&map, "           je    voudrais   bière\n"
                 "     I  ██ 0.97      0.02     0.01\n"
                 "  want  ░░ 0.27   ▓▓ 0.73     0.00\n"
                 "a beer  ██ 0.90      0.05     0.05\n");
    map.width = 31; /* names are cut to the numbers */
    expect(&map, "          je    voudra…  bière\n"
                 "     I  ██ 0.97    0.02    0.01\n"
                 "  want  ░░ 0.27 ▓▓ 0.73    0.00\n"
                 "a beer  ██ 0.90    0.05    0.05\n");
    map.width = 30; /* shades alone, names downwards */
    expect(&map, "         v\n"
                 "         o\n"
                 "         u\n"
                 "         d b\n"
                 "         r i\n"
                 "         a è\n"
                 "       j i r\n"
                 "       e s e\n"
                 "     I ██\n"
                 "  want ░░▓▓\n"
                 "a beer ██\n");
    map.width = 8; /* in parts, and row names cut */
    expect(&map, "     v\n"
                 "     o\n"
                 "     u\n"
                 "     d\n"
                 "     r\n"
                 "     a\n"
                 "   j i\n"
                 "   e s\n"
                 " I ██\n"
                 "w… ░░▓▓\n"
                 "a… ██\n"
                 "\n"
                 "   b\n"
                 "   i\n"
                 "   è\n"
                 "   r\n"
                 "   e\n"
                 " I\n"
                 "w…\n"
                 "a…\n");
}

static void test_no_line_is_wider_than_the_terminal(void **state)
{
    (void)state;
    enum { ROWS = 5, COLUMNS = 40 };
    float values[ROWS * COLUMNS];
    const char *names[COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (float)(i * 37 % 101) / 100;
    for (int j = 0; j < COLUMNS; j++)
        names[j] = j % 3 ? "Donaudampfschifffahrt" : j % 2 ? "我想要一杯" : "e\xcc\x81te\xcc\x81";
    for (int colour = 0; colour < 2; colour++)
        for (int width = 4; width < 400; width++) {
            at_error error = {0};
            at_heatmap map = map_of(ROWS, COLUMNS, values, names, names, colour);
            map.width = width;
            map.indexed = width % 2;
            char *text = at_heatmap_text(&map, &error);
            assert_true(text && widest_line(text) <= width);
            at_text_free(text);
            const at_heatmap several[] = {map, map, map};
            const char *const titles[] = {"1.1", "1.2", "2.1"};
            text = at_heatmaps_text(several, titles, 3, &error);
            assert_true(text && widest_line(text) <= width);
            at_text_free(text);
        }
}

static void test_palette(void **state)
{
    (void)state;
    const float three[] = {0, 1, NAN};
    at_heatmap map = map_of(1, 3, three, NULL, NULL, true);
    map.indexed = true;
    expect(&map, "     0     1     2\n"
                 "0 \x1b[48;5;17m\x1b[38;5;231m 0.00 "
                 "\x1b[48;5;221m\x1b[38;5;16m 1.00 "
                 "\x1b[48;5;59m\x1b[38;5;231m  nan \x1b[0m\n");
}

/* ---- Small maps ----------------------------------------------------------------------------------------------- */

static void expect_small(const at_heatmap *maps, const char *const *titles, int count, const char *expected)
{
    at_error error = {0};
    char *text = at_heatmaps_text(maps, titles, count, &error);
    assert_string_equal(error.text, "");
    assert_string_equal(text, expected);
    at_text_free(text);
}

static void test_small_maps(void **state)
{
    (void)state;
    const float identity[] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, one[] = {0.5f, NAN};
    at_heatmap maps[3] = {map_of(3, 3, weights, NULL, NULL, false), map_of(3, 3, identity, NULL, NULL, false),
                          map_of(1, 2, one, NULL, NULL, false)};
    static const char *const titles[] = {"1.1", "head 1.2", "2.1"};
    expect_small(maps, titles, 3,
                 "1.1  head 1.2  2.1\n"
                 "█    █         ▒?\n"
                 "░▓    █\n"
                 "█      █\n");
    for (int i = 0; i < 3; i++)
        maps[i].width = 14; /* two in a line */
    expect_small(maps, titles, 3,
                 "1.1  head 1.2\n"
                 "█    █\n"
                 "░▓    █\n"
                 "█      █\n"
                 "\n"
                 "2.1\n"
                 "▒?\n");
    maps[1].width = 2; /* 3 cells in 2 characters: the largest of each 2 x 2 */
    expect_small(maps + 1, titles, 1, "1…\n█\n █\n");
    expect_small(maps, titles, 0, "");
    const float two[] = {0, 1};
    at_heatmap colours = map_of(2, 1, two, NULL, NULL, true);
    expect_small(&colours, titles, 1, "1.1\n\x1b[38;2;26;24;48m\x1b[48;2;250;226;80m▀\x1b[0m\n");
    colours = map_of(1, 1, two, NULL, NULL, true);
    expect_small(&colours, titles, 1, "1.1\n\x1b[49m\x1b[38;2;26;24;48m▀\x1b[0m\n");
    at_error error = {0};
    colours.values = NULL;
    assert_null(at_heatmaps_text(&colours, titles, 1, &error));
    assert_string_equal(error.text, "a heat map of 1 rows and 1 columns needs its values");
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
        cmocka_unit_test(test_narrow_terminals),
        cmocka_unit_test(test_no_line_is_wider_than_the_terminal),
        cmocka_unit_test(test_palette),
        cmocka_unit_test(test_small_maps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
