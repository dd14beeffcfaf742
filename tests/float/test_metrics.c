/* Scores against values computed by hand. */
#include "attend.h"
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 16 };

/* Lines from a text with a newline after each; returns their count. */
static int64_t cut(const char *text, at_line *lines)
{
    int64_t count = 0;
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1)
        lines[count++] = (at_line){text, (size_t)(end - text)};
    return count;
}

static bool score(const char *metric, const char *hypotheses, const char *references, double *result, at_error *error)
{
    at_line hypothesis[MOST], reference[MOST];
    const int64_t count = cut(hypotheses, hypothesis);
    assert_int_equal(cut(references, reference), count);
    return at_score_lines(metric, hypothesis, reference, count, result, error);
}

static void expect_score(const char *metric, const char *hypotheses, const char *references, double expected)
{
    at_error error = {0};
    double result = -1;
    if (!score(metric, hypotheses, references, &result, &error))
        fail_msg("%s", error.text);
    if (!(result > expected - 1e-12 && result < expected + 1e-12))
        fail_msg("%s of '%s' by '%s' is %.17g instead of %.17g", metric, hypotheses, references, result, expected);
}

static void refuse(const char *metric, const char *hypotheses, const char *references, int code, const char *message)
{
    at_error error = {0};
    double result;
    assert_false(score(metric, hypotheses, references, &result, &error));
    assert_string_equal(error.text, message);
    assert_int_equal(error.code, code);
}

static void test_word_error_rate(void **state)
{
    (void)state;
    expect_score("wer", "a b c\n", "a b c\n", 0);
    expect_score("wer", "a x c\n", "a b c\n", 100.0 / 3);              /* a substitution */
    expect_score("wer", "a c\n", "a b c\n", 100.0 / 3);                /* a deletion */
    expect_score("wer", "a b b c\n", "a b c\n", 100.0 / 3);            /* an insertion */
    expect_score("wer", "b a\n", "a b\n", 100);                        /* swapped: two edits */
    expect_score("wer", "\n", "a b c\n", 100);                         /* an empty hypothesis */
    expect_score("wer", "a b c d e f g\n", "x\n", 700);                /* above 100 */
    expect_score("wer", "  a\tb \xe3\x80\x80 c \n", "a b c\n", 0);     /* any Unicode white space */
    expect_score("wer", "ab\n", "a b\n", 100);                         /* a substitution and a deletion */
    expect_score("wer", "a\nb c\n\n", "a\nb d e\nf\n", 100.0 * 3 / 5); /* over all lines, not their mean */
    expect_score("wer", "x\na\n", "\na\n", 100);                       /* insertions count for an empty reference */
    expect_score("wer", "kitten sitting on the mat\n", "the kitten sat on the mat\n", 100.0 * 2 / 6);
    expect_score("wer", "A\n", "a\n", 100);
    expect_score("wer", "Aa\n", "BB\n", 100); /* two words with the same hash */
    at_error error = {0};
    double result;
    at_line nul = {"\0", 1}, two = {"\0\0", 2};
    assert_true(at_score_lines("wer", &nul, &two, 1, &result, &error) && result == 100);
}

static void test_character_error_rate(void **state)
{
    (void)state;
    expect_score("cer", "kitten\n", "sitting\n", 100.0 * 3 / 7);
    expect_score("cer", "sitting\n", "kitten\n", 100.0 * 3 / 6);
    expect_score("cer", "flaw\n", "lawn\n", 50);
    expect_score("cer", "intention\n", "execution\n", 100.0 * 5 / 9);
    expect_score("cer", "a b\n", "ab\n", 50);                                /* a blank is a character */
    expect_score("cer", "\xe4\xbd\xa0\n", "\xe4\xbd\xa0\xe5\xa5\xbd\n", 50); /* not bytes */
    expect_score("cer", "\xc3\xa9\n", "\xc3\xa8\n", 100); /* a substitution, although one byte is equal */
    expect_score("cer", "\xff\n", "\xef\xbf\xbd\n", 0);   /* invalid bytes count as U+FFFD */
}

static void test_accuracy(void **state)
{
    (void)state;
    expect_score("accuracy", "a\nb\nc\n\n", "a\nB\nc\n\n", 75);
    expect_score("accuracy", "a \n", "a\n", 0);
    expect_score("accuracy", "ab\n", "abc\n", 0);
    expect_score("accuracy", "\n", "\n", 100);
}

/* A = {00 11 22 31}, S = {00 11 23}, P = S and {22}: 1 - (2 + 3) / (4 + 3). */
static void test_alignment_error_rate(void **state)
{
    (void)state;
    expect_score("aer", "0-0 1-1 2-2 3-1\n", "0-0 1-1 2-3 2?2\n", 100 * (1 - 5.0 / 7));
    expect_score("aer", "0-0 1-1 2-2 3-1 0-0\n", "2?2 2-3 1-1 0-0 1-1 0?0\n", 100 * (1 - 5.0 / 7)); /* sets */
    expect_score("aer", "0-0\n1-1\n", "0-0\n1-1\n", 0);
    expect_score("aer", "1-0\n", "0-1\n", 100); /* source first */
    expect_score("aer", "1-0\n", "2-0\n", 100);
    expect_score("aer", "0-1\n", "0-2\n", 100);
    expect_score("aer", "0-0\n0-0\n", "0-0\n1-1\n", 50);
    expect_score("aer", "0-0\n\n", "0?0\n\n", 0); /* a possible link is no error */
    expect_score("aer", "\n", "0-0\n", 100);
    expect_score("aer", "2-10 10-2\n", "10-2 2-10\n", 0);
}

static void test_refusals(void **state)
{
    (void)state;
    refuse("wre", "a\n", "a\n", AT_USAGE, "no metric 'wre'; did you mean 'wer'?");
    refuse("blue", "a\n", "a\n", AT_USAGE, "no metric 'blue'; did you mean 'bleu'?");
    refuse("meteor", "a\n", "a\n", AT_USAGE, "no metric 'meteor'");
    refuse("accuracy", "", "", AT_FAILED, "there is no line to score");
    refuse("wer", "a\n", " \n", AT_FAILED, "the references have no word, so there is no error rate");
    refuse("cer", "a\n", "\n", AT_FAILED, "the references have no character, so there is no error rate");
    refuse("aer", "\n", "\n", AT_FAILED, "neither side has a sure link, so there is no alignment error rate");
    refuse("aer", "\n", "0?0\n", AT_FAILED, "neither side has a sure link, so there is no alignment error rate");
    refuse("aer", "0-0\n0:0\n", "0-0\n0-0\n", AT_FORMAT,
           "line 2 of the hypotheses: '0:0' is not a link; a link is written like 0-1");
    refuse("aer", "0?0\n", "0-0\n", AT_FORMAT,
           "line 1 of the hypotheses: '0?0' is not a link; a link is written like 0-1");
    refuse("aer", "0-0\n", "0-\n", AT_FORMAT,
           "line 1 of the references: '0-' is not a link; a link is written like 0-1, or 0?1 if it is only possible");
    static const char *const bad[] = {"-1", "1", "1-2-3", "1-2?", "a-1", "1--2", "1-1234567890", "+1-2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char line[40], message[200];
        snprintf(line, sizeof line, "%s\n", bad[i]);
        snprintf(message, sizeof message, "line 1 of the hypotheses: '%s' is not a link; a link is written like 0-1",
                 bad[i]);
        refuse("aer", line, "0-0\n", AT_FORMAT, message);
    }
}

static void test_names(void **state)
{
    (void)state;
    const char *names[] = {"accuracy", "aer", "bleu", "cer", "chrf", "chrf++", "ter", "wer"};
    for (int i = 0; i < 8; i++)
        assert_string_equal(at_metric(i)->name, names[i]);
    assert_null(at_metric(8));
    assert_null(at_metric(-1));
    assert_null(at_metric_named("blue"));
    const char *tokenisers[] = {"13a", "none", "char", "zh"};
    for (int i = 0; i < 4; i++)
        assert_string_equal(at_tokeniser_name(i), tokenisers[i]);
    assert_null(at_tokeniser_name(4));
    assert_null(at_tokeniser_name(-1));
}

/* Every metric declares its direction and its description; there are no defaults. */
static void test_infos(void **state)
{
    (void)state;
    for (int i = 0; at_metric(i); i++) {
        const at_metric_info *metric = at_metric(i);
        if (metric->better != AT_LARGER_IS_BETTER && metric->better != AT_SMALLER_IS_BETTER)
            fail_msg("%s has not decided which scores are better", metric->name);
        assert_true(metric->title && metric->title[0] && metric->meaning && metric->meaning[0]);
        assert_ptr_equal(at_metric_named(metric->name), metric);
        if (i > 0)
            assert_true(strcmp(at_metric(i - 1)->name, metric->name) < 0);
    }
}

/* A better line has the better score, so that no direction is reversed. */
static void test_directions(void **state)
{
    (void)state;
    for (int i = 0; at_metric(i); i++) {
        const at_metric_info *metric = at_metric(i);
        const char *good = metric->alignments ? "0-0 1-1 2-2 3-3\n" : "the cat sat on the mat\n";
        const char *bad = metric->alignments ? "0-0 1-1 2-3 3-2\n" : "a cat sits on one mat\n";
        double better = 0, worse = 0;
        at_error error = {0};
        assert_true(score(metric->name, good, good, &better, &error));
        assert_true(score(metric->name, bad, good, &worse, &error));
        if (!(metric->better * better > metric->better * worse))
            fail_msg("%s: the better line has %g, the worse one %g", metric->name, better, worse);
    }
}

/* The edit distance by its definition, on short lines over three letters: the minimum over all edit sequences. */
static int slow_distance(const char *a, const char *b)
{
    if (*a == '\0' || *b == '\0')
        return (int)(strlen(a) + strlen(b));
    if (*a == *b)
        return slow_distance(a + 1, b + 1);
    int change = slow_distance(a + 1, b + 1), drop = slow_distance(a + 1, b), put = slow_distance(a, b + 1);
    int least = change < drop ? change : drop;
    return 1 + (least < put ? least : put);
}

static void test_against_the_definition(void **state)
{
    (void)state;
    at_rng rng = {11, 0};
    for (int i = 0; i < 2000; i++) {
        char text[2][8] = {{0}};
        at_error error = {0};
        double result;
        for (int side = 0; side < 2; side++)
            for (uint32_t n = side + at_rng_below(&rng, 6), at = 0; at < n; at++)
                text[side][at] = (char)('a' + at_rng_below(&rng, 3));
        at_line hypothesis = {text[0], strlen(text[0])}, reference = {text[1], strlen(text[1])};
        assert_true(at_score_lines("cer", &hypothesis, &reference, 1, &result, &error));
        assert_true(result == 100.0 * slow_distance(text[0], text[1]) / (double)strlen(text[1]));
    }
}

/* The score of a line against itself: no error, or the maximum of the metric, or 0 if the line is too short for
 * n-grams. */
static void expect_own_score(const at_metric_info *metric, double result)
{
    bool empty = strcmp(metric->name, "bleu") == 0 || strncmp(metric->name, "chrf", 4) == 0;
    if (!(fabs(result - (metric->better == AT_LARGER_IS_BETTER ? 100 : 0)) < 1e-9) && !(empty && result == 0))
        fail_msg("%s of a line by itself is %.17g", metric->name, result);
}

/* The same by the full table, for lines of any length. */
static int cell_distance(const char *a, const char *b)
{
    int row[300], m = (int)strlen(b);
    for (int j = 0; j <= m; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int before = row[0];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int least = before + (a[i - 1] != b[j - 1]);
            before = row[j];
            least = row[j] + 1 < least ? row[j] + 1 : least;
            row[j] = row[j - 1] + 1 < least ? row[j - 1] + 1 : least;
        }
    }
    return row[m];
}

/* Around the 64 rows that the library takes at a time, with few and with many letters, similar and different lines. */
static void test_long_lines(void **state)
{
    (void)state;
    static const int lengths[] = {1, 2, 31, 62, 63, 64, 65, 66, 126, 127, 128, 129, 130, 200, 255};
    enum { LENGTHS = sizeof lengths / sizeof *lengths };
    at_rng rng = {29, 0};
    for (int i = 0; i < LENGTHS * LENGTHS * 3; i++) {
        const int n = lengths[i % LENGTHS], m = lengths[i / LENGTHS % LENGTHS];
        const uint32_t letters = (const uint32_t[]){2, 5, 26}[i / (LENGTHS * LENGTHS)];
        char a[300] = "", b[300] = "", spaced[2][600] = {{0}};
        for (int j = 0; j < m; j++)
            b[j] = (char)('a' + at_rng_below(&rng, letters));
        for (int j = 0; j < n; j++) /* now and then a letter that differs from the other line */
            a[j] = j < m && at_rng_below(&rng, 4) ? b[j + (j % 50 > 25 && j + 1 < m)]
                                                  : (char)('a' + at_rng_below(&rng, letters));
        for (int side = 0; side < 2; side++)
            for (int j = 0; (side ? b : a)[j]; j++) {
                spaced[side][2 * j] = (side ? b : a)[j];
                spaced[side][2 * j + 1] = ' ';
            }
        const double expected = 100.0 * cell_distance(a, b) / m;
        const at_line line[2] = {{a, (size_t)n}, {b, (size_t)m}},
                      word[2] = {{spaced[0], strlen(spaced[0])}, {spaced[1], strlen(spaced[1])}};
        at_error error = {0};
        double letter_rate, word_rate;
        assert_true(at_score_lines("cer", &line[0], &line[1], 1, &letter_rate, &error));
        assert_true(at_score_lines("wer", &word[0], &word[1], 1, &word_rate, &error));
        if (fabs(letter_rate - expected) > 1e-9 || fabs(word_rate - expected) > 1e-9)
            fail_msg("'%s' by '%s': cer %g and wer %g instead of %g", a, b, letter_rate, word_rate, expected);
    }
}

/* Any bytes are scored without a fault, and a line has no error against itself. */
static void test_any_bytes(void **state)
{
    (void)state;
    static const unsigned char spice[8] = {'0', '-', '1', '?', ' ', 0xE3, 0x80, 0xFF};
    at_rng rng = {13, 0};
    for (int i = 0; i < 3000; i++) {
        at_line line[2];
        char *bytes[2];
        for (int side = 0; side < 2;
             side++) { /* blocks of exactly that size, so that the sanitizers notice a read beyond */
            size_t size = at_rng_below(&rng, 20);
            bytes[side] = malloc(size > 0 ? size : 1);
            for (size_t b = 0; b < size; b++)
                bytes[side][b] =
                    (char)(at_rng_below(&rng, 3) > 0 ? spice[at_rng_below(&rng, 8)] : at_rng_below(&rng, 256));
            line[side] = (at_line){bytes[side], size};
        }
        for (int metric = 0; at_metric(metric); metric++) {
            at_error error = {0};
            double result;
            bool good = at_score_lines(at_metric(metric)->name, &line[0], &line[1], 1, &result, &error);
            assert_true(good == (error.text[0] == '\0'));
            error = (at_error){0};
            if (at_score_lines(at_metric(metric)->name, &line[0], &line[0], 1, &result, &error))
                expect_own_score(at_metric(metric), result);
        }
        free(bytes[0]);
        free(bytes[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_word_error_rate),
        cmocka_unit_test(test_character_error_rate),
        cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_alignment_error_rate),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_infos),
        cmocka_unit_test(test_directions),
        cmocka_unit_test(test_against_the_definition),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
