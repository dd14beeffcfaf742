/* What limits a search: N-grams that do not repeat, the coverage penalty, the terms of a glossary. Against a hand-written
 * model whose hypotheses can all be enumerated: a beam that holds them all finds the best of those that fit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_model.h"
#include "search/search_internal.h"
#include "text/glossary.h"

/* ---- Every hypothesis there is -------------------------------------------------------------------------------- */

enum { LONGEST_PATH = 10, SOURCE = 8 };

typedef struct path {
    int32_t id[16];
    int64_t count;
    double score, penalised, sums[SOURCE]; /* of the weights */
} path;

typedef struct all {
    path *paths;
    int64_t count, vocabulary, source, units;
    double penalty;                                   /* of coverage */
    bool (*fits)(const struct all *a, const path *p); /* NULL: all do */
    int64_t n;                                        /* of the N-grams */
    int32_t terms[2][3];                              /* that it has, or has not */
    int64_t term_count[2];
    bool forbidden[2];
} all;

static double log_prob_of(const all *a, int64_t hash, int32_t id)
{
    double sum = 0;
    for (int64_t v = 0; v < a->vocabulary; v++)
        sum += exp((double)logit(a->source, hash, v));
    return (double)logit(a->source, hash, id) - log(sum);
}

static void add_weights(const all *a, path *p, int64_t hash)
{
    for (int64_t s = 0; s < a->units; s++)
        p->sums[s] += (double)weight(a->source, hash, s);
}

static void enumerate_paths(all *a, path so_far, int64_t hash)
{
    path end = so_far;
    end.score += log_prob_of(a, hash, AT_END);
    add_weights(a, &end, hash);
    end.penalised = end.score;
    for (int64_t s = 0; s < a->units; s++)
        end.penalised += a->penalty * log(fmin(fmax(end.sums[s], 1e-6), 1));
    if (!a->fits || a->fits(a, &end))
        a->paths[a->count++] = end;
    for (int32_t id = 1; so_far.count < LONGEST_PATH && id < a->vocabulary; id++) {
        if (id == AT_BEGIN || id == AT_END)
            continue;
        path longer = so_far;
        longer.id[longer.count++] = id;
        longer.score += log_prob_of(a, hash, id);
        add_weights(a, &longer, hash);
        enumerate_paths(a, longer, hash_next(hash, id));
    }
}

static int by_penalised(const void *left, const void *right)
{
    double a = ((const path *)left)->penalised, b = ((const path *)right)->penalised;
    return a > b ? -1 : a < b;
}

static bool compare_to_all(void *context, int64_t line, const at_result *result)
{
    const all *a = context;
    (void)line;
    assert_true(result->count >= 1 && a->count >= result->count);
    for (int64_t i = 0; i < result->count; i++) {
        const at_hypothesis *h = &result->best[i];
        assert_true(fabs(h->penalised - a->paths[i].penalised) < 1e-4);
        assert_true(fabs(h->score - a->paths[i].score) < 1e-4 || i > 0);
        if (i == 0) {
            assert_int_equal(h->count, a->paths[0].count);
            assert_memory_equal(h->ids, a->paths[0].id, (size_t)h->count * sizeof *h->ids);
        }
    }
    return true;
}

static bool search(fake *f, const at_search_settings *settings, const at_line *lines, int64_t count,
                   at_on_result *on_result, void *context)
{
    at_error error = {0};
    at_search_settings complete = *settings;
    const at_search_job job = {.translator = &f->translator,
                               .settings = &complete,
                               .lines = lines,
                               .count = count,
                               .on_result = on_result,
                               .context = context};
    const bool good = at_search_complete(&complete, &error) && at_search(&job, &error);
    if (!good)
        print_message("%s\n", error.text);
    return good;
}

static const char *const some[] = {"a", "b", "ca", "abcabc", "cccc", "bb"};

/* Two symbols and ten units at most: 2047 hypotheses, which a beam of so many holds. */
static void expect_best_of_all(fake *f, at_search_settings settings, all limits)
{
    settings.beam = 2047;
    settings.max_length_factor = 1e-9;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        const at_line line = {some[i], strlen(some[i])};
        int32_t ids[SOURCE];
        int64_t replaced;
        all a = limits;
        a.units = at_vocabulary_encode(f->translator.source, line.text, line.size, ids, SOURCE, &replaced, NULL);
        a.source = source_sum(ids, a.units);
        a.vocabulary = f->model.settings.target_size;
        a.paths = malloc(2048 * sizeof *a.paths);
        enumerate_paths(&a, (path){0}, hash_next(0, AT_BEGIN));
        assert_true(a.count > 0);
        qsort(a.paths, (size_t)a.count, sizeof *a.paths, by_penalised);
        settings.n_best = a.count < 7 ? a.count : 7;
        assert_true(search(f, &settings, &line, 1, compare_to_all, &a));
        free(a.paths);
    }
}

/* ---- N-grams and coverage ------------------------------------------------------------------------------------- */

static bool repeats_nothing(const all *a, const path *p)
{
    for (int64_t i = 0; i + a->n <= p->count; i++)
        for (int64_t k = 0; k < i; k++)
            if (memcmp(p->id + i, p->id + k, (size_t)a->n * sizeof *p->id) == 0)
                return false;
    return true;
}

static void test_no_ngram_repeats(void **unused)
{
    (void)unused;
    fake f;
    fake_open(&f, "char", "abc", "char", "a");
    shape.end = -3; /* long hypotheses are likelier */
    for (int64_t n = 1; n <= 4; n++)
        expect_best_of_all(&f, (at_search_settings){.no_repeat = n}, (all){.n = n, .fits = repeats_nothing});
    shape.end = 0.5f;
    fake_close(&f);
}

static bool expect_no_repeat(void *context, int64_t line, const at_result *result)
{
    (void)line;
    assert_true(result->count >= 1);
    for (int64_t i = 0; i < result->count; i++) {
        path p = {.count = result->best[i].count};
        assert_true(p.count <= 16);
        memcpy(p.id, result->best[i].ids, (size_t)p.count * sizeof *p.id);
        assert_true(repeats_nothing(context, &p));
    }
    return true;
}

/* Samples do not repeat either; and where everything would, and nothing may end yet, the line ends. */
static void test_samples_repeat_nothing(void **unused)
{
    (void)unused;
    fake f;
    at_line lines[40];
    for (int i = 0; i < 40; i++)
        lines[i] = (at_line){some[i % 6], strlen(some[i % 6])};
    fake_open(&f, "char", "abc", "char", "abc");
    all a = {.n = 2};
    assert_true(search(&f, &(at_search_settings){.no_repeat = 2, .temperature = 2, .n_best = 5, .max_length = 16},
                       lines, 40, expect_no_repeat, &a));
    a.n = 1;
    assert_true(search(&f, &(at_search_settings){.no_repeat = 1, .min_length_factor = 9, .max_length = 16, .beam = 3},
                       lines, 40, expect_no_repeat, &a));
    fake_close(&f);
}

static void test_coverage_ranks(void **unused)
{
    (void)unused;
    fake f;
    fake_open(&f, "char", "abc", "char", "a");
    const double penalties[] = {0.2, 1, 5};
    for (size_t i = 0; i < 3; i++)
        expect_best_of_all(&f, (at_search_settings){.coverage_penalty = penalties[i]}, (all){.penalty = penalties[i]});
    fake_close(&f);
}

/* ---- A glossary ----------------------------------------------------------------------------------------------- */

static at_glossary *glossary_of(const char *text, at_error *error)
{
    char name[] = "/tmp/attend-glossary-XXXXXX";
    const int file = mkstemp(name);
    assert_true(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text) && close(file) == 0);
    at_glossary *glossary = at_glossary_load(name, error);
    unlink(name);
    return glossary;
}

static bool has(const path *p, const int32_t *term, int64_t count)
{
    for (int64_t i = 0; i + count <= p->count; i++)
        if (memcmp(p->id + i, term, (size_t)count * sizeof *term) == 0)
            return true;
    return false;
}

static bool has_terms(const all *a, const path *p)
{
    for (int i = 0; i < 2; i++)
        if (a->term_count[i] > 0 && has(p, a->terms[i], a->term_count[i]) == a->forbidden[i])
            return false;
    return true;
}

static void read_term(const fake *f, const char *text, bool forbidden, int i, all *a)
{
    int64_t replaced;
    a->forbidden[i] = forbidden;
    a->term_count[i] = at_vocabulary_encode(f->translator.target, text, strlen(text), a->terms[i], 3, &replaced, NULL);
}

/* The vocabulary has one word and the unknown one; "one one" is a term of two units, which overlaps itself. */
static void test_the_best_with_all_terms(void **unused)
{
    (void)unused;
    static const struct {
        const char *first, *second; /* the second may be missing; ! forbids */
    } cases[] = {{"one", NULL},       {"one one", NULL}, {"one one one", NULL}, {"!one one", NULL},
                 {"one", "!one one"}, {"!one", NULL},    {"one one", "one"}};
    fake f;
    fake_open(&f, "char", "abc", "word", "one");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[100];
        at_error error = {0};
        all a = {.fits = has_terms};
        const char *const terms[] = {cases[i].first, cases[i].second};
        size_t size = 0;
        for (int k = 0; k < 2 && terms[k]; k++) {
            size += (size_t)snprintf(text + size, sizeof text - size, "\t%s\n", terms[k]);
            read_term(&f, terms[k] + (*terms[k] == '!'), *terms[k] == '!', k, &a);
        }
        at_glossary *glossary = glossary_of(text, &error);
        assert_non_null(glossary);
        for (int k = 0; k < 2; k++) { /* in the second turn long hypotheses are likelier */
            shape.end = k ? -3 : 0.5f;
            expect_best_of_all(&f, (at_search_settings){.glossary = glossary}, a);
        }
        shape.end = 0.5f;
        at_glossary_free(glossary);
    }
    fake_close(&f);
}

typedef struct told {
    int lacking, forbidden;
    const at_glossary *glossary;
    const at_line *lines;
    at_buffer bytes;
} told;

static void count_term(void *context, int64_t line, at_line term, bool forbidden)
{
    told *t = context;
    (void)line;
    assert_true(term.size > 0);
    t->lacking += !forbidden;
    t->forbidden += forbidden;
}

/* The texts say whether the terms are there. */
static bool check_terms(void *context, int64_t line, const at_result *result)
{
    told *t = context;
    int64_t found[100];
    const int64_t count = at_glossary_find(t->glossary, t->lines[line], found, 100);
    for (int64_t i = 0; i < result->count; i++) {
        const at_hypothesis *h = &result->best[i];
        for (int64_t k = 0; k < count && h->count > 0; k++) {
            const at_term *term = at_glossary_term(t->glossary, found[k]);
            if (at_glossary_has((at_line){h->text, h->size}, term->target) == term->forbidden)
                fail_msg("'%.*s' becomes '%s', the term being '%.*s'", (int)t->lines[line].size, t->lines[line].text,
                         h->text, (int)term->target.size, term->target.text);
        }
        at_buffer_print(&t->bytes, "%lld %s %a %a\n", (long long)line, h->text, h->score, h->penalised);
    }
    return true;
}

enum { LINES = 60, LONGEST = 20 };

static void random_lines(char bytes[][LONGEST], at_line *lines)
{
    at_rng rng = {12, 0};
    for (int i = 0; i < LINES; i++) {
        lines[i] = (at_line){bytes[i], at_rng_below(&rng, LONGEST)};
        for (size_t c = 0; c < lines[i].size; c++)
            bytes[i][c] = "abcd "[at_rng_below(&rng, 5)];
    }
}

/* In lines with many terms, some of several units, overlapping, with a beam of 1 too: each is there, each forbidden one is
 * not, and neither batches nor threads nor an ensemble change that or a byte. */
static void test_terms_are_there(void **unused)
{
    (void)unused;
    static const char text[] = "# terms\n\na\tthe cat\nab\tcat sat on\nb b\t!a\nc\t!mat\nd\trained\nd d\tit rained\n"
                               "c\tit\n\t!while\n";
    char bytes[LINES][LONGEST];
    at_line lines[LINES];
    at_error error = {0};
    fake f;
    random_lines(bytes, lines);
    fake_open(&f, "char", "abcd ", "word", "the cat sat on a mat while it rained");
    at_glossary *glossary = glossary_of(text, &error);
    assert_non_null(glossary);
    const at_search_settings variants[] = {{.beam = 1},
                                           {.beam = 5, .n_best = 3},
                                           {.beam = 12, .n_best = 12, .length_penalty = 1, .no_repeat = 3},
                                           {.beam = 4, .coverage_penalty = 0.4}};
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        told judge = {.glossary = glossary, .lines = lines};
        fake_ensemble(&f, v % 2);
        for (int run = 0; run < 4; run++) {
            told other = {.glossary = glossary, .lines = lines};
            told *to = run ? &other : &judge;
            at_search_settings settings = variants[v];
            settings.glossary = glossary;
            settings.on_term = count_term;
            settings.batch = (int64_t[]){64, 1, 7, 200}[run];
            at_threads_set(1 + run % 3);
            assert_true(search(&f, &settings, lines, LINES, check_terms, to));
            assert_int_equal(to->lacking + to->forbidden, 0);
            assert_int_equal(to->bytes.size, judge.bytes.size);
            assert_memory_equal(to->bytes.bytes, judge.bytes.bytes, to->bytes.size);
            at_buffer_free(&other.bytes);
        }
        at_buffer_free(&judge.bytes);
    }
    at_threads_set(0);
    at_glossary_free(glossary);
    fake_close(&f);
}

static bool count_words(void *context, int64_t line, const at_result *result)
{
    int *counts = context;
    (void)line;
    for (int64_t i = 0; i < result->count; i++) {
        const at_line text = {result->best[i].text, result->best[i].size};
        counts[0] += at_glossary_has(text, (at_line){"one", 3});
        counts[1] += at_glossary_has(text, (at_line){"ones", 4});
        counts[2] += at_glossary_has(text, (at_line){"someone", 7});
    }
    return true;
}

/* A word that only begins or ends as a forbidden one does is not forbidden. */
static void test_longer_words_are_not_forbidden(void **unused)
{
    (void)unused;
    at_error error = {0};
    fake f;
    char bytes[LINES][LONGEST];
    at_line lines[LINES];
    random_lines(bytes, lines);
    for (int free_of_terms = 0; free_of_terms < 2; free_of_terms++) {
        int counts[3] = {0};
        fake_open(&f, "char", "abcd ", "word", "one ones someone");
        at_glossary *glossary = glossary_of("\t!one\n", &error);
        assert_true(search(&f,
                           &(at_search_settings){.beam = 4, .n_best = 4, .glossary = free_of_terms ? NULL : glossary},
                           lines, LINES, count_words, counts));
        assert_int_equal(counts[0] > 0, free_of_terms);
        assert_true(counts[1] > 10 && counts[2] > 10);
        at_glossary_free(glossary);
        fake_close(&f);
    }
}

static bool ignore(void *context, int64_t line, const at_result *result)
{
    (void)context;
    (void)line;
    assert_true(result->count >= 1);
    return true;
}

/* An output that is too short, a term without units, terms that exclude each other: told, and there is an output. */
static void test_what_cannot_be_is_told(void **unused)
{
    (void)unused;
    at_error error = {0};
    fake f;
    const at_line line = {"a", 1};
    fake_open(&f, "char", "abcd ", "word", "the cat sat on a mat");
    static const struct {
        const char *text;
        int64_t longest;
        int lacking, forbidden;
    } cases[] = {{"a\tthe cat sat\n", 2, 1, 0},
                 {"a\tthe cat sat\n", 3, 0, 0},
                 {"a\tzebra\n", 0, 1, 0},
                 {"a\tthe cat\na\t!cat\n", 0, 0, 1},
                 {"b\tthe cat sat\n", 2, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        told t = {0};
        at_glossary *glossary = glossary_of(cases[i].text, &error);
        assert_non_null(glossary);
        const at_search_settings settings = {
            .beam = 2, .glossary = glossary, .on_term = count_term, .max_length = cases[i].longest};
        assert_true(search(&f, &settings, &line, 1, ignore, &t));
        assert_int_equal(t.lacking, cases[i].lacking);
        assert_int_equal(t.forbidden, cases[i].forbidden);
        at_glossary_free(glossary);
    }
    fake_close(&f);
}

/* Where terms begin and end in a line: at words, at characters of scripts without blanks, the longest first. */
static void test_terms_of_a_line(void **unused)
{
    (void)unused;
    static const char text[] = "New York\tA\nYork\tB\n\xe5\x8c\x97\xe4\xba\xac\tC\nYork\t!D\n\t!E\ncaf\xc3\xa9\tF\n";
    static const struct {
        const char *line, *targets;
    } cases[] = {
        {"in New York", "EA"}, {"New York, York.", "EABD"}, {"Yorkshire", "E"},
        {"NewYork", "E"},      {"(York)", "EBD"},           {"\xe6\x88\x91\xe5\x8c\x97\xe4\xba\xac\xe4\xba\xba", "EC"},
        {"caf\xc3\xa9s", "E"}, {"caf\xc3\xa9 \xff", "EF"},  {"", "E"}};
    at_error error = {0};
    at_glossary *glossary = glossary_of(text, &error);
    assert_non_null(glossary);
    assert_int_equal(at_glossary_count(glossary), 6);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t found[10];
        char targets[10] = "";
        const int64_t count = at_glossary_find(glossary, (at_line){cases[i].line, strlen(cases[i].line)}, found, 10);
        for (int64_t k = 0; k < count; k++)
            targets[k] = *at_glossary_term(glossary, found[k])->target.text;
        for (const char *t = cases[i].targets; *t; t++)
            assert_non_null(strchr(targets, *t));
        assert_int_equal(count, (int64_t)strlen(cases[i].targets));
    }
    at_glossary_free(glossary);
}

static void test_what_is_no_glossary(void **unused)
{
    (void)unused;
    static const char *const cases[][2] = {{"a\tb\nc d\n", "line 2 of the glossary"},
                                           {"a\tb\tc\n", "has more than one tab"},
                                           {"a\t\n", "has no target term"},
                                           {"a\t! \n", "has no target term"},
                                           {"a\t\xff\n", "is not UTF-8"},
                                           {"a\tb\na\t!b\n", "both wants and forbids 'b' for 'a'"},
                                           {"x\tb\na\tb\na\tc\n", "two target terms for 'a', in lines 2 and 3"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        at_error error = {0};
        assert_null(glossary_of(cases[i][0], &error));
        assert_int_equal(error.code, AT_FORMAT);
        assert_non_null(strstr(error.text, cases[i][1]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_ngram_repeats),
        cmocka_unit_test(test_samples_repeat_nothing),
        cmocka_unit_test(test_coverage_ranks),
        cmocka_unit_test(test_the_best_with_all_terms),
        cmocka_unit_test(test_terms_are_there),
        cmocka_unit_test(test_what_cannot_be_is_told),
        cmocka_unit_test(test_longer_words_are_not_forbidden),
        cmocka_unit_test(test_terms_of_a_line),
        cmocka_unit_test(test_what_is_no_glossary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
