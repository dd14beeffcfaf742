/* BLEU, chrF and TER: published values of sacreBLEU, stored values of many settings, and the bootstrap. */
#include "attend.h"
#include "base/rng.h"
#include "score/ngrams_internal.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { MOST = 64 };

/* Lines from a text with a newline after each. */
typedef struct lines {
    at_line line[MOST];
    int64_t count;
} lines;

static const at_line *cut(const char *text, lines *into)
{
    int64_t count = 0;
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1)
        into->line[count++] = (at_line){text, (size_t)(end - text)};
    into->count = count;
    return into->line;
}

/* Scores by one or two references; the second may be NULL. */
static at_scores *scores_of(const char *metric, const at_score_settings *settings, const char *hypotheses,
                            const char *first, const char *second, at_error *error)
{
    static lines all[3];
    const at_line *references[2] = {cut(first, &all[1]), second ? cut(second, &all[2]) : NULL};
    cut(hypotheses, &all[0]);
    return at_scores_new(metric, settings, all[0].line, all[0].count, references, second ? 2 : 1, error);
}

static void near(const char *what, double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance))
        fail_msg("%s is %.17g instead of %.17g", what, got, expected);
}

static void expect(const char *metric, at_score_settings settings, const char *hypotheses, const char *first,
                   const char *second, double expected, double tolerance)
{
    at_error error = {0};
    at_scores *scores = scores_of(metric, &settings, hypotheses, first, second, &error);
    if (scores == NULL)
        fail_msg("%s", error.text);
    near(metric, settings.sentences ? at_scores_line(scores, 0) : at_scores_total(scores), expected, tolerance);
    at_scores_free(scores);
}

/* ---- Published figures ---------------------------------------------------------------------------------------- */

static const char dog[] = "The dog bit the man.\nIt wasn't surprising.\nThe man had just bitten him.\n";
static const char dog_first[] = "The dog bit the man.\nIt was not unexpected.\nThe man bit him first.\n";
static const char dog_second[] = "The dog had bit the man.\nNo one was surprised.\nThe man had bitten the dog.\n";
static const char sugar[] = "Produc\xc8\x9bia de zah\xc4\x83r prim\xc4\x83 va fi exprimat\xc4\x83 \xc3\xaen ceea ce "
                            "prive\xc8\x99te zah\xc4\x83rul alb;\n";
static const char sugar_reference[] =
    "produc\xc5\xa3ia de zah\xc4\x83r brut se exprim\xc4\x83 \xc3\xaen zah\xc4\x83r alb;\n";

/* From the examples and the tests of sacreBLEU 2. */
static void test_published(void **state)
{
    (void)state;
    const at_score_settings plain = {0}, none = {.tokenise = "none"}, sentence = {.sentences = true};
    const at_score_settings sentence_none = {.tokenise = "none", .sentences = true};
    const at_score_settings letters = {.tokenise = "char", .sentences = true};
    const at_score_settings small_letters = {.tokenise = "char", .lowercase = true, .sentences = true};
    expect("bleu", plain, dog, dog_first, dog_second, 48.530827, 1e-6);
    expect("bleu", none, dog, dog_first, dog_second, 49.1919566, 1e-6);
    expect("bleu", plain, "\n\n\n", dog_first, dog_second, 0, 0);
    expect("chrf", plain, dog, dog_first, dog_second, 59.73, 5e-3);
    expect("bleu", sentence, sugar, sugar_reference, NULL, 8.493, 1e-3);
    expect("bleu", sentence_none, sugar, sugar_reference, NULL, 7.347, 1e-3);
    expect("bleu", letters, sugar, sugar_reference, NULL, 40.8759, 1e-3);
    expect("bleu", small_letters, sugar, sugar_reference, NULL, 42.0267, 1e-3);
    expect("bleu", sentence, "this is a cat\n", "okay thanks\n", NULL, 0, 0);
    expect("bleu", plain, "this is a test\nanother test\n", "ref1\nref2\n", NULL, 0, 0);
    expect("bleu", sentence_none, "test\n", "a test\n", NULL, 36.78794411714425, 1e-10);
    expect("bleu", sentence_none, "a test\n", "a test\n", NULL, 100, 1e-10);
    expect("ter", plain, "aaaa bbbb cccc dddd\n", "aaaa bbbb cccc dddd\n", NULL, 0, 0);
    expect("ter", plain, "dddd eeee ffff\n", "aaaa bbbb cccc\n", NULL, 100, 0);
    expect("ter", plain, "\n", "a\n", NULL, 100, 0);
    expect("ter", plain, "d e f g h a b c\n", "a b c d e f g h\n", NULL, 12.5, 0);
    expect("chrf", plain, "a b c\n", "abc\n", NULL, 100, 1e-10);
    expect("chrf", plain, "a\nb\n", "a\nc\n", NULL, 50, 1e-10);
    expect("chrf", plain, "aa\n", "ab\n", NULL, 25, 1e-10);
    expect("chrf", plain, "\n", "reference\n", NULL, 0, 0);
}

/* ---- Stored figures ------------------------------------------------------------------------------------------- */

static void take_lines(const json_t *from, lines *into)
{
    into->count = (int64_t)json_array_size(from);
    assert_true(into->count <= MOST);
    for (size_t i = 0; i < json_array_size(from); i++) {
        const json_t *text = json_array_get(from, i);
        into->line[i] = (at_line){json_string_value(text), json_string_length(text)};
    }
}

static void check_case(const json_t *one, const lines *hypotheses, const lines *references)
{
    const char *metric = json_string_value(json_object_get(one, "metric"));
    at_score_settings settings = {.tokenise = json_string_value(json_object_get(one, "tokenise")),
                                  .lowercase = json_boolean_value(json_object_get(one, "lowercase"))};
    const at_line *by[2] = {references[0].line, references[1].line};
    int count = (int)json_integer_value(json_object_get(one, "references"));
    char what[100];
    at_error error = {0};
    at_scores *scores = at_scores_new(metric, &settings, hypotheses->line, hypotheses->count, by, count, &error);
    if (scores == NULL)
        fail_msg("%s", error.text);
    snprintf(what, sizeof what, "%s %s, %s, %d references", metric, settings.tokenise ? settings.tokenise : "",
             settings.lowercase ? "lower-cased" : "as it is", count);
    near(what, at_scores_total(scores), json_number_value(json_object_get(one, "total")), 1e-10);
    const json_t *by_line = json_object_get(one, "lines");
    for (size_t i = 0; i < json_array_size(by_line); i++) {
        char line[160];
        snprintf(line, sizeof line, "%s, line %zu", what, i + 1);
        near(line, at_scores_line(scores, (int64_t)i), json_number_value(json_array_get(by_line, i)), 1e-10);
    }
    at_scores_free(scores);
}

static void test_stored(void **state)
{
    (void)state;
    json_error_t where;
    json_t *stored = json_load_file(TESTS_DIR "/ref/scores.json", 0, &where);
    if (stored == NULL)
        fail_msg("scores.json:%d: %s", where.line, where.text);
    static lines hypotheses, references[2];
    take_lines(json_object_get(stored, "hypotheses"), &hypotheses);
    for (int r = 0; r < 2; r++)
        take_lines(json_array_get(json_object_get(stored, "references"), (size_t)r), &references[r]);
    const json_t *cases = json_object_get(stored, "cases");
    assert_int_equal(json_array_size(cases), 28);
    for (size_t i = 0; i < json_array_size(cases); i++)
        check_case(json_array_get(cases, i), &hypotheses, references);
    const json_t *moves = json_object_get(stored, "moves");
    assert_int_equal(json_array_size(moves), 80);
    for (size_t i = 0; i < json_array_size(moves); i++) {
        const json_t *pair = json_array_get(moves, i);
        at_line line[2];
        double words = 1, score;
        at_error error = {0};
        for (size_t side = 0; side < 2; side++)
            line[side] = (at_line){json_string_value(json_array_get(pair, side)),
                                   json_string_length(json_array_get(pair, side))};
        for (size_t at = 0; at < line[1].size; at++)
            words += line[1].text[at] == ' ';
        assert_true(at_score_lines("ter", &line[0], &line[1], 1, &score, &error));
        near(line[0].text, score * words / 100, json_number_value(json_array_get(pair, 2)), 1e-9);
    }
    json_decref(stored);
}

/* ---- Rules one by one ----------------------------------------------------------------------------------------- */

/* `hypothesis` has the tokens of `spaced`: every n-gram matches, and so does the length. */
static void same_words(const char *tokenise, const char *hypothesis, const char *spaced)
{
    char left[400], right[400];
    lines a, b;
    at_error error = {0};
    /* Both with the same suffix, so that there are 4-grams; the reference is tokenised already. */
    snprintf(left, sizeof left, "%s\n", hypothesis);
    snprintf(right, sizeof right, "%s\n", spaced);
    at_score_settings settings = {.tokenise = tokenise}, split = {.tokenise = "none"};
    const at_line *one = cut(left, &a), *other = cut(right, &b);
    at_scores *tokenised = at_scores_new("bleu", &settings, one, a.count, &one, 1, &error);
    at_scores *plain = at_scores_new("bleu", &split, other, b.count, &other, 1, &error);
    assert_non_null(tokenised);
    assert_non_null(plain);
    if (strcmp(at_scores_details(tokenised), at_scores_details(plain)) != 0)
        fail_msg("'%s' by %s has %s, and '%s' has %s", hypothesis, tokenise, at_scores_details(tokenised), spaced,
                 at_scores_details(plain));
    at_scores_free(tokenised);
    at_scores_free(plain);
    /* And as a reference, where the tokens themselves matter: they occur in a line that is split at blanks only. */
    tokenised = at_scores_new("bleu", &settings, other, b.count, &one, 1, &error);
    assert_non_null(tokenised);
    if (at_scores_line(tokenised, 0) < 99.999)
        fail_msg("'%s' by %s is not '%s'", hypothesis, tokenise, spaced);
    at_scores_free(tokenised);
}

static void test_tokenisers(void **state)
{
    (void)state;
    same_words("13a", "Hello, world!", "Hello , world !");
    same_words("13a", "pi is 3.14, not 3,5.", "pi is 3.14 , not 3,5 .");
    same_words("13a", "from 1990-91 on", "from 1990 - 91 on");
    same_words("13a", "well-known don't", "well-known don't");
    same_words("13a", "a...b", "a . . . b");
    same_words("13a", "ends with 5.", "ends with 5 .");
    same_words("13a", "(a/b) [c] {d} <e> $f", "( a / b ) [ c ] { d } < e > $ f");
    same_words("13a", "gone <skipped>away", "gone away");
    same_words("13a", "x\xc2\xa0y\xe2\x80\x83z\xe3\x80\x80w", "x y z w");
    same_words("13a",
               "\xe2\x80\x9e"
               "Ja\xe2\x80\x9c, gut",
               "\xe2\x80\x9e"
               "Ja\xe2\x80\x9c , gut");
    same_words("zh",
               "\xe4\xbd\xa0\xe5\xa5\xbd\xef\xbc\x8c"
               "abc",
               "\xe4\xbd\xa0 \xe5\xa5\xbd \xef\xbc\x8c abc");
    same_words("zh",
               "a\xe2\x80\x94"
               "b \xf0\xa0\x80\x80\xf0\xa0\x80\x81",
               "a \xe2\x80\x94 b \xf0\xa0\x80\x80\xf0\xa0\x80\x81");
    same_words("zh", " 7.", "7.");
    same_words("char", "ab \xc3\xa9", "a b \xc3\xa9");
    same_words("none", "a,b \x1c c", "a,b c");
}

/* Entities are for 13a alone, one after the other. */
static void test_entities(void **state)
{
    (void)state;
    expect("bleu", (at_score_settings){0}, "a &amp;lt; b &quot;c&quot;\n", "a < b \"c\"\n", NULL, 100, 1e-10);
}

static void test_small_letters(void **state)
{
    (void)state;
    const at_score_settings lower = {.lowercase = true};
    expect("accuracy", lower, "\xc3\x89TUDE\n", "\xc3\xa9tude\n", NULL, 100, 0);
    expect("accuracy", lower, "\xce\x9f\xce\x94\xce\x9f\xce\xa3.\n", "\xce\xbf\xce\xb4\xce\xbf\xcf\x82.\n", NULL, 100,
           0);
    expect("accuracy", lower, "\xce\xa3\n", "\xcf\x83\n", NULL, 100, 0);
    expect("accuracy", lower, "\xce\x91\xce\xa3\xce\x91\n", "\xce\xb1\xcf\x83\xce\xb1\n", NULL, 100, 0);
    expect("accuracy", lower, "\xc4\xb0\n", "i\xcc\x87\n", NULL, 100, 0);
    expect("accuracy", lower, "A\xff\n", "a\xef\xbf\xbd\n", NULL, 100, 0);
    expect("wer", lower, "The Cat\n", "the cat\n", NULL, 0, 0);
    expect("wer", (at_score_settings){0}, "The Cat\n", "the cat\n", NULL, 100, 0);
    expect("ter", (at_score_settings){0}, "The Cat\n", "the cat\n", NULL, 0, 0);
}

static void test_several_references(void **state)
{
    (void)state;
    const at_score_settings plain = {0};
    expect("wer", plain, "a b c\n", "a b c d\n", "x b c\n", 25, 0);
    expect("accuracy", plain, "a\nb\n", "x\nb\n", "a\ny\n", 100, 0);
    expect("ter", plain, "a b c\n", "a b c d e\n", "a b x\n", 100.0 / 4, 1e-12); /* 1 edit / the mean of 5 and 3 */
    at_error error = {0};
    assert_null(scores_of("aer", NULL, "0-0\n", "0-0\n", "0-0\n", &error));
    assert_string_equal(error.text, "aer takes 1 reference, not 2");
    error = (at_error){0};
    assert_null(scores_of("bleu", &(at_score_settings){.tokenise = "13b"}, "a\n", "a\n", NULL, &error));
    assert_string_equal(error.text, "no tokeniser '13b'; did you mean '13a'?");
    assert_int_equal(error.code, AT_USAGE);
    lines hypotheses;
    error = (at_error){0};
    assert_null(at_scores_new("bleu", NULL, cut("a\n", &hypotheses), 1, NULL, 0, &error));
    assert_string_equal(error.text, "bleu needs a reference");
}

static void signed_as(const char *metric, at_score_settings settings, const char *title, const char *signature)
{
    at_error error = {0};
    at_scores *scores = scores_of(metric, &settings, dog, dog_first, dog_second, &error);
    assert_non_null(scores);
    assert_string_equal(at_scores_metric(scores)->title, title);
    assert_string_equal(at_scores_signature(scores), signature);
    at_scores_free(scores);
}

static void test_signatures(void **state)
{
    (void)state;
    signed_as("bleu", (at_score_settings){0}, "BLEU",
              "nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:attend-" AT_VERSION);
    signed_as("bleu", (at_score_settings){.tokenise = "zh", .lowercase = true, .sentences = true}, "BLEU",
              "nrefs:2|case:lc|eff:yes|tok:zh|smooth:exp|version:attend-" AT_VERSION);
    signed_as("chrf", (at_score_settings){.resamples = 50, .seed = 9}, "chrF2",
              "nrefs:2|bs:50|seed:9|case:mixed|eff:yes|nc:6|nw:0|space:no|version:attend-" AT_VERSION);
    signed_as("chrf++", (at_score_settings){.lowercase = true}, "chrF2++",
              "nrefs:2|case:lc|eff:yes|nc:6|nw:2|space:no|version:attend-" AT_VERSION);
    signed_as("ter", (at_score_settings){0}, "TER",
              "nrefs:2|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:attend-" AT_VERSION);
    at_error error = {0};
    at_scores *scores = scores_of("bleu", NULL, dog, dog_first, dog_second, &error);
    assert_string_equal(at_scores_details(scores),
                        "82.4/50.0/45.5/37.5 (BP = 0.943 ratio = 0.944 hyp_len = 17 ref_len = 18)");
    at_scores_free(scores);
    scores = scores_of("wer", NULL, "a\n", "a\n", NULL, &error);
    assert_string_equal(at_scores_metric(scores)->title, "WER");
    assert_string_equal(at_scores_signature(scores), "");
    assert_string_equal(at_scores_details(scores), "");
    at_scores_free(scores);
}

/* A line without words has a score, although a text of such lines has none. */
static void test_empty_lines(void **state)
{
    (void)state;
    const at_score_settings single = {.sentences = true};
    expect("wer", single, "\n", "\n", NULL, 0, 0);
    expect("wer", single, "a\n", "\n", NULL, 100, 0);
    expect("ter", single, "a\n", "\n", NULL, 100, 0);
    expect("ter", single, "\n", "\n", NULL, 0, 0);
    expect("bleu", single, "\n", "\n", NULL, 0, 0);
    expect("chrf", single, "\n", "\n", NULL, 0, 0);
    expect("aer", single, "\n", "\n", NULL, 0, 0);
}

/* Sequences without a single id have an array: an offset to NULL, even 0, is undefined. */
static void test_sequences_without_ids(void **state)
{
    (void)state;
    at_sequences sequences = {0};
    at_grams grams = {0};
    assert_true(at_sequences_end(&sequences) && at_sequences_end(&sequences));
    assert_non_null(sequences.id);
    assert_true(at_grams_start(&grams, &sequences));
    for (int order = 1; order <= 4; order++) {
        at_grams_step(&grams);
        assert_int_equal(at_grams_count(&grams, 0), 0);
        assert_int_equal(at_grams_common(&grams, 1, 1), 0);
    }
    at_grams_free(&grams);
    at_sequences_free(&sequences);
}

/* Some lines of a text have the score of a separate text of these lines. */
static void test_parts(void **state)
{
    (void)state;
    static const char *const metrics[] = {"bleu", "chrf", "chrf++", "ter", "wer", "cer", "accuracy"};
    const int64_t chosen[] = {2, 0};
    for (int m = 0; m < 7; m++) {
        at_error error = {0};
        at_scores *whole = scores_of(metrics[m], NULL, dog, dog_first, dog_second, &error);
        at_scores *part = scores_of(metrics[m], NULL, "The dog bit the man.\nThe man had just bitten him.\n",
                                    "The dog bit the man.\nThe man bit him first.\n",
                                    "The dog had bit the man.\nThe man had bitten the dog.\n", &error);
        assert_true(whole && part);
        near(metrics[m], at_scores_part(whole, chosen, 2), at_scores_total(part), 1e-12);
        assert_true(isnan(at_scores_part(whole, chosen, 0)));
        at_scores_free(whole);
        at_scores_free(part);
    }
    at_error error = {0};
    at_scores *scores = scores_of("wer", NULL, "a\nb\n", "\nb\n", NULL, &error);
    assert_true(isnan(at_scores_part(scores, (int64_t[]){0}, 1))); /* no reference word */
    assert_true(at_scores_part(scores, (int64_t[]){1}, 1) == 0);
    at_scores_free(scores);
}

/* ---- Chance --------------------------------------------------------------------------------------------------- */

/* Many lines of three words, some of them wrong. */
typedef struct long_text {
    char bytes[4000][8];
    at_line line[4000];
    int64_t count;
} long_text;

static void write_text(long_text *into, int64_t count, uint32_t wrong, uint64_t seed)
{
    at_rng rng = {seed, 0};
    into->count = count;
    for (int64_t i = 0; i < count; i++) {
        memcpy(into->bytes[i], "a b c d", 7);
        for (int w = 0; w < 4; w++)
            if (at_rng_below(&rng, 1000) < wrong)
                into->bytes[i][2 * w] = 'x';
        into->line[i] = (at_line){into->bytes[i], 7};
    }
}

/* For a rate that is a mean over n lines, the interval is 1.96 standard errors to each side, and its mean is the
 * rate. */
static void test_spread(void **state)
{
    (void)state;
    static long_text hypotheses, references;
    enum { LINES = 1000 };
    write_text(&hypotheses, LINES, 200, 3);
    write_text(&references, LINES, 0, 0);
    const at_line *by = references.line;
    at_score_settings settings = {.resamples = 2000, .seed = 5};
    at_error error = {0};
    at_spread spread, again;
    at_scores *scores = at_scores_new("accuracy", &settings, hypotheses.line, hypotheses.count, &by, 1, &error);
    assert_true(at_scores_spread(scores, &spread, &error));
    double rate = at_scores_total(scores) / 100, wide = 196 * sqrt(rate * (1 - rate) / LINES);
    near("the mean", spread.mean, 100 * rate, 0.15);
    near("the width", (spread.high - spread.low) / 2, wide, 0.1 * wide);
    assert_int_equal(spread.resamples, 2000);
    for (int threads = 1; threads <= 3; threads++) { /* the same bits for any number of them */
        at_threads_set(threads);
        assert_true(at_scores_spread(scores, &again, &error));
        assert_memory_equal(&spread, &again, sizeof spread);
    }
    at_threads_set(0);
    at_scores_free(scores);
    settings.seed = 6;
    scores = at_scores_new("accuracy", &settings, hypotheses.line, hypotheses.count, &by, 1, &error);
    assert_true(at_scores_spread(scores, &again, &error));
    assert_true(again.mean != spread.mean);
    at_scores_free(scores);
}

static void compare(uint32_t wrong, uint32_t other_wrong, const char *metric, at_comparison *comparison)
{
    static long_text hypotheses, others, references;
    write_text(&hypotheses, 1000, wrong, 3);
    write_text(&others, 1000, other_wrong, 4);
    write_text(&references, 1000, 0, 0);
    const at_line *by = references.line;
    at_error error = {0};
    at_scores *scores = at_scores_new(metric, NULL, hypotheses.line, hypotheses.count, &by, 1, &error);
    at_scores *other = at_scores_new(metric, NULL, others.line, others.count, &by, 1, &error);
    assert_true(at_scores_compare(scores, other, comparison, &error));
    near("the difference", comparison->difference, at_scores_total(scores) - at_scores_total(other), 0);
    assert_int_equal(comparison->spread.resamples, 1000);
    at_scores_free(scores);
    at_scores_free(other);
}

static void test_comparison(void **state)
{
    (void)state;
    at_comparison c;
    compare(100, 200, "bleu", &c); /* clearly better */
    assert_true(c.difference > 5 && c.spread.low > 0 && c.spread.low < c.spread.mean && c.spread.mean < c.spread.high);
    near("p", c.p, 1.0 / 1001, 1e-12);
    compare(100, 200, "wer", &c); /* fewer errors */
    assert_true(c.difference < -5 && c.spread.high < 0);
    compare(200, 200, "bleu", &c); /* equally good */
    assert_true(c.p > 0.05 && c.spread.low < 0 && c.spread.high > 0);
    at_error error = {0};
    at_scores *one = scores_of("wer", NULL, "a\n", "a\n", NULL, &error);
    at_scores *two = scores_of("wer", NULL, "a\nb\n", "a\nb\n", NULL, &error);
    assert_false(at_scores_compare(one, two, &c, &error));
    assert_string_equal(error.text, "1 lines by wer and 2 lines by wer cannot be compared");
    at_scores_free(one);
    at_scores_free(two);
}

/* ---- Bounds --------------------------------------------------------------------------------------------------- */

/* A line of `count` words, each one letter of `letters`. */
static char *long_line(size_t count, uint32_t letters, uint64_t seed)
{
    char *line = malloc(2 * count + 1);
    at_rng rng = {seed, 0};
    for (size_t i = 0; i < count; i++) {
        line[2 * i] = (char)('a' + at_rng_below(&rng, letters));
        line[2 * i + 1] = ' ';
    }
    line[2 * count] = '\0';
    return line;
}

/* The worst cases end in time: many words, few different ones, very different lengths. */
static void test_long_lines(void **state)
{
    (void)state;
    static const struct {
        size_t count[2];
        uint32_t letters;
    } sizes[] = {{{20000, 20000}, 2}, {{20000, 20000}, 26}, {{30000, 3}, 3}, {{3, 30000}, 3}, {{1200000, 1200000}, 3}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *text[2];
        at_line line[2];
        for (int side = 0; side < 2; side++) {
            text[side] = long_line(sizes[i].count[side], sizes[i].letters, i * 2 + (size_t)side);
            line[side] = (at_line){text[side], 2 * sizes[i].count[side]};
        }
        const char *const metrics[] = {"ter", "bleu", "chrf++"};
        for (int m = 0; m < 3; m++) {
            at_error error = {0};
            double score = -1;
            clock_t start = clock();
            assert_true(at_score_lines(metrics[m], &line[0], &line[1], 1, &score, &error));
            assert_true(score >= 0);
            double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
            if (seconds > 60)
                fail_msg("%s of lines of %zu and %zu words took %.1f s", metrics[m], sizes[i].count[0],
                         sizes[i].count[1], seconds);
        }
        free(text[0]);
        free(text[1]);
    }
}

/* The same statistics on any number of threads. */
static void test_threads(void **state)
{
    (void)state;
    static long_text hypotheses, references;
    write_text(&hypotheses, 3000, 300, 1);
    write_text(&references, 3000, 100, 2);
    for (int m = 0; at_metric(m); m++) {
        if (at_metric(m)->alignments)
            continue;
        double score[3];
        for (int threads = 1; threads <= 3; threads++) {
            at_error error = {0};
            at_threads_set(threads);
            assert_true(at_score_lines(at_metric(m)->name, hypotheses.line, references.line, 3000, &score[threads - 1],
                                       &error));
        }
        assert_true(score[0] == score[1] && score[1] == score[2]);
    }
    at_threads_set(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_stored),
        cmocka_unit_test(test_tokenisers),
        cmocka_unit_test(test_entities),
        cmocka_unit_test(test_small_letters),
        cmocka_unit_test(test_several_references),
        cmocka_unit_test(test_signatures),
        cmocka_unit_test(test_empty_lines),
        cmocka_unit_test(test_sequences_without_ids),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_comparison),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
