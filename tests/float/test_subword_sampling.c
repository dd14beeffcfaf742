/* Subword sampling: segmentations have the right probabilities and do not depend on the number of threads. */
#include "base/files.h"
#include "base/rng.h"
#include "text/pairs_internal.h"
#include "text/sampler_internal.h"
#include "text/spm_check_internal.h"
#include "text/subword_sampling.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT_FILE TESTS_DIR "/ref/text.txt" /* a file of its own, so that editing a document changes no test */
#define BLANK     "\u2581"

static at_vocabulary *learn(const char *kind)
{
    at_error error = {0};
    at_line_list *list = at_line_list_read(TEXT_FILE, &error);
    at_vocabulary *vocabulary = at_vocabulary_new(kind, &error);
    for (int64_t i = 0; i < list->count; i++)
        assert_true(at_vocabulary_count(vocabulary, list->line[i].text, list->line[i].size, &error));
    assert_true(at_vocabulary_fix(vocabulary, &error));
    at_line_list_free(list);
    return vocabulary;
}

/* For every line of the text: a sampled segmentation joins to the same text as the line. */
static void check_samples(const at_vocabulary *vocabulary, double alpha, bool best)
{
    at_error error = {0};
    at_line_list *list = at_line_list_read(TEXT_FILE, &error);
    at_sampler *sampler = at_sampler_new(vocabulary, alpha, &error);
    at_sampler_scratch *scratch = at_sampler_scratch_new();
    int64_t differ = 0;
    assert_string_equal(error.text, "");
    for (int64_t i = 0; i < list->count; i++) {
        const at_line *line = &list->line[i];
        at_buffer text = {0}, back[2] = {{0}, {0}};
        int32_t ids[2][2000];
        int64_t count[2], replaced;
        at_buffer_add(&text, "", 0);
        assert_true(at_vocabulary_spell(vocabulary, line->text, line->size, &text));
        count[0] = at_vocabulary_encode(vocabulary, line->text, line->size, ids[0], 2000, &replaced, NULL);
        count[1] = at_sampler_segment(sampler, scratch, text.bytes, text.size, 5, (uint64_t)i, ids[1]);
        for (int k = 0; k < 2; k++)
            assert_true(at_vocabulary_decode(vocabulary, ids[k], count[k], &back[k]));
        assert_string_equal(back[0].bytes, back[1].bytes);
        differ += count[0] != count[1] || memcmp(ids[0], ids[1], (size_t)count[0] * sizeof **ids) != 0;
        at_buffer_free(&text);
        at_buffer_free(&back[0]);
        at_buffer_free(&back[1]);
    }
    if (best)
        assert_int_equal(differ, 0);
    else
        assert_true(differ > list->count / 4);
    at_sampler_scratch_free(scratch);
    at_sampler_free(sampler);
    at_line_list_free(list);
}

/* With almost no dropped merge, and with a power that leaves only the most likely one, samples are the best
 * segmentation. The text must have no line with two equally likely ones, such as 0|00 and 00|0. */
static void test_best(void **state)
{
    (void)state;
    at_vocabulary *unigram = learn("spm:400"), *bpe = learn("spm:400:bpe");
    check_samples(bpe, 1e-12, true);
    check_samples(bpe, 0.1, false);
    check_samples(unigram, 1e6, true);
    check_samples(unigram, 0.2, false);
    at_vocabulary_free(unigram);
    at_vocabulary_free(bpe);
}

/* ---- Probabilities -------------------------------------------------------------------------------------------- */

typedef struct path {
    char text[64]; /* ids as text */
    double weight;
    int64_t count;
} path;

enum { MOST_PATHS = 600 };
static path paths[MOST_PATHS];
static int path_count;

/* All segmentations of the rest of a text, by trying every piece at every position. */
static void enumerate(const at_vocabulary *vocabulary, const float *score, const char *rest, char *so_far,
                      double log_weight, double alpha)
{
    if (path_count == MOST_PATHS)
        return;
    if (*rest == '\0') {
        snprintf(paths[path_count].text, sizeof paths->text, "%s", so_far);
        paths[path_count++].weight = exp(log_weight);
        return;
    }
    for (int32_t id = AT_SPECIALS + 1; id < at_vocabulary_size(vocabulary); id++) {
        const char *unit = at_vocabulary_unit(vocabulary, id);
        size_t size = strlen(unit), length = strlen(so_far);
        if (strncmp(rest, unit, size) != 0)
            continue;
        sprintf(so_far + length, " %d", id);
        enumerate(vocabulary, score, rest + size, so_far, log_weight + alpha * (double)score[id - AT_SPECIALS], alpha);
        so_far[length] = '\0';
    }
}

static void test_probabilities(void **state)
{
    (void)state;
    at_error error = {0};
    at_vocabulary *vocabulary = learn("spm:400");
    size_t size;
    const unsigned char *bytes = at_vocabulary_subwords(vocabulary, &size);
    at_spm_info info;
    assert_true(at_spm_check(bytes, size, "made", &info, &error));
    float *score = malloc((size_t)info.count * sizeof *score);
    for (int32_t i = 0; i < info.count; i++)
        score[i] = info.piece[i].score;
    /* A word with many segmentations, but not too many to enumerate; which one that is depends on the text. */
    static const char *const words[] = {BLANK "sentence", BLANK "sentences", BLANK "attention", BLANK "translation",
                                        BLANK "translations"};
    const char *text = words[0];
    path_count = 0;
    for (size_t w = 0; (path_count <= 10 || path_count == MOST_PATHS) && w < sizeof words / sizeof *words; w++) {
        char so_far[400] = "";
        text = words[w];
        path_count = 0;
        enumerate(vocabulary, score, text, so_far, 0, 0.3);
    }
    assert_in_range(path_count, 11, MOST_PATHS - 1);
    at_sampler *sampler = at_sampler_new(vocabulary, 0.3, &error);
    at_sampler_scratch *scratch = at_sampler_scratch_new();
    enum { DRAWS = 200000 };
    for (int n = 0; n < DRAWS; n++) {
        int32_t ids[40];
        char found[200] = "";
        int64_t count = at_sampler_segment(sampler, scratch, text, strlen(text), 11, (uint64_t)n, ids);
        for (int64_t i = 0; i < count; i++)
            sprintf(found + strlen(found), " %d", ids[i]);
        int p = 0;
        while (p < path_count && strcmp(paths[p].text, found) != 0)
            p++;
        assert_true(p < path_count);
        paths[p].count++;
    }
    double sum = 0;
    for (int p = 0; p < path_count; p++)
        sum += paths[p].weight;
    for (int p = 0; p < path_count; p++) { /* within five standard deviations */
        double share = paths[p].weight / sum, expected = share * DRAWS;
        assert_true(fabs((double)paths[p].count - expected) < 5 * sqrt(expected * (1 - share)) + 3);
    }
    free(score);
    at_spm_info_free(&info);
    at_sampler_scratch_free(scratch);
    at_sampler_free(sampler);
    at_vocabulary_free(vocabulary);
}

/* ---- A corpus ------------------------------------------------------------------------------------------------- */

static uint64_t hash_corpus(const at_corpus *corpus)
{
    uint64_t hash = 1;
    for (int s = 0; s < 2; s++)
        for (int64_t i = 0; i < corpus->count; i++) {
            hash = hash * 31 + (uint64_t)at_pairs_length(corpus, s, i);
            for (int64_t k = corpus->side[s].start[i]; k < corpus->side[s].start[i + 1]; k++)
                hash = hash * 1000003 + (uint64_t)corpus->side[s].ids[k];
        }
    return hash;
}

static void test_epochs(void **state)
{
    (void)state;
    at_error error = {0};
    at_corpus_files files = {.source = TEXT_FILE, .target = TEXT_FILE};
    at_lines *lines = at_lines_read(&files, &error);
    at_vocabulary *source = learn("spm:400"), *target = learn("spm:400:bpe"), *words = learn("word");
    at_corpus_report report;
    at_corpus *corpus = at_corpus_new(lines, source, target, NULL,
                                      &(at_corpus_limits){.max_length = 60, .rule = AT_TOO_LONG_SKIP}, &report, &error);
    uint64_t best = hash_corpus(corpus), epoch[4];
    at_subword_sampling *sampling = at_subword_sampling_new(corpus, lines, source, target, 0.2, 60, 9, &error);
    assert_non_null(sampling);
    for (int i = 0; i < 4; i++) { /* epochs 1 2 1 2, on one thread and on three */
        at_threads_set(i < 2 ? 1 : 3);
        assert_true(at_subword_sampling_set_epoch(sampling, 1 + i % 2, &error));
        epoch[i] = hash_corpus(corpus);
    }
    at_threads_set(0);
    assert_true(epoch[0] == epoch[2] && epoch[1] == epoch[3] && epoch[0] != epoch[1] && epoch[0] != best);
    for (int s = 0; s < 2; s++)
        for (int64_t i = 0; i < corpus->count; i++)
            assert_in_range(at_pairs_length(corpus, s, i), 1, 60);
    at_subword_sampling_free(sampling);
    assert_null(at_subword_sampling_new(corpus, lines, words, words, 0.2, 60, 9, &error));
    assert_string_equal(error.text,
                        "`subword-sampling` samples the subwords of spm vocabularies, and neither side has one; leave "
                        "it out, or use `source-vocab` spm:8000");
    error = (at_error){0};
    assert_null(at_subword_sampling_new(corpus, lines, source, target, 1.5, 60, 9, &error));
    assert_string_equal(error.text, "`subword-sampling` is a number above 0 and up to 1, not 1.5");
    at_corpus_free(corpus);
    at_lines_free(lines);
    at_vocabulary_free(source);
    at_vocabulary_free(target);
    at_vocabulary_free(words);
}

static void test_refusal(void **state)
{
    (void)state;
    at_error error = {0};
    at_vocabulary *rules = at_vocabulary_new(TESTS_DIR "/ref/rules.spm", &error);
    assert_true(at_sampler_can(rules));
    assert_null(at_sampler_new(rules, 0.1, &error));
    assert_string_equal(error.text,
                        "`subword-sampling` cannot sample from a model with user-defined, unused or byte pieces");
    at_vocabulary_free(rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_best), cmocka_unit_test(test_probabilities),
                                       cmocka_unit_test(test_epochs), cmocka_unit_test(test_refusal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
