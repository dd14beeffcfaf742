/* Any lines as alignments: as reference and hypothesis of aer, and as the links that guide a training on lines of three
 * and two words. An error message, or a score of 0 to 100 and shares that sum to 0 or 1. */
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/guide_internal.h"

enum { MOST_LINES = 50 };

static void score(const at_line_list *list)
{
    const int64_t half = list->count / 2;
    const at_line *references = list->line + half;
    at_error error = {0};
    at_scores *scores = at_scores_new("aer", NULL, list->line, half, &references, 1, &error);
    expect_message(scores, &error);
    if (scores)
        EXPECT(at_scores_total(scores) >= 0 && at_scores_total(scores) <= 100);
    for (int64_t i = 0; scores && i < half; i++)
        EXPECT(!(at_scores_line(scores, i) < 0) && !(at_scores_line(scores, i) > 100));
    at_scores_free(scores);
}

static at_vocabulary *words_of(const at_lines *lines, int side)
{
    at_error error = {0};
    at_vocabulary *words = at_vocabulary_new(side == 0 ? "word" : "char", &error);
    EXPECT(words && at_lines_count_units(lines, side, words, &error) && at_vocabulary_fix(words, &error));
    return words;
}

static void check_shares(const at_guide *guide, const at_batch *batch)
{
    const int64_t cells = batch->rows * batch->target_length * batch->source_length;
    at_real *share = malloc((size_t)(cells + 1) * sizeof *share);
    EXPECT(share);
    at_guide_fill(guide, batch, share);
    for (int64_t row = 0; row < batch->rows * batch->target_length; row++) {
        double sum = 0;
        for (int64_t s = 0; s < batch->source_length; s++)
            sum += (double)share[row * batch->source_length + s];
        EXPECT(fabs(sum) < 1e-5 || fabs(sum - 1) < 1e-5);
    }
    free(share);
}

static void guide(const char *path, int64_t count)
{
    at_line source[MOST_LINES], target[MOST_LINES];
    at_error error = {0};
    at_corpus_report report;
    at_batch batch;
    for (int64_t i = 0; i < count; i++) {
        source[i] = (at_line){"a b c", 5};
        target[i] = (at_line){"xy z", 4};
    }
    at_lines *lines = at_lines_of(source, target, count, &error);
    EXPECT(lines);
    at_vocabulary *vocabulary[2] = {words_of(lines, 0), words_of(lines, 1)};
    at_guide *links = at_guide_new(path, lines, vocabulary[0], vocabulary[1], &error);
    expect_message(links, &error);
    at_error none = {0};
    at_corpus *corpus =
        at_corpus_new(lines, vocabulary[0], vocabulary[1], NULL, &(at_corpus_limits){0}, &report, &none);
    at_batches *batches = at_batches_new(corpus, 2, 0, 1, true, &none);
    EXPECT(batches && at_batches_seek(batches, 1, 0, &none));
    while (links && at_batches_next(batches, &batch))
        check_shares(links, &batch);
    at_batches_free(batches);
    at_corpus_free(corpus);
    at_guide_free(links);
    at_vocabulary_free(vocabulary[0]);
    at_vocabulary_free(vocabulary[1]);
    at_lines_free(lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    at_error error = {0};
    const char *path;
    const int file = open_bytes(bytes, size, &path);
    at_decompressed_limit_set(1 << 20);
    at_line_list *list = at_line_list_read(path, &error);
    if (list && list->count > 0 && list->count <= MOST_LINES) {
        score(list);
        guide(path, list->count);
    }
    at_line_list_free(list);
    close(file);
    return 0;
}
