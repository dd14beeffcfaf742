/* Corpora and their batches: every line is counted, every sentence occurs once per epoch, in an order that seed and
 * epoch determine. */
#include "base/rng.h"
#include "text/corpus.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[64];

static int enter(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "%s/attend-test-XXXXXX", P_tmpdir);
    return mkdtemp(directory) == NULL || chdir(directory) != 0;
}

static int leave(void **state)
{
    (void)state;
    static const char *const files[] = {"s", "t", "tsv"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        unlink(files[i]);
    return chdir("/") != 0 || rmdir(directory) != 0;
}

static void put_bytes(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void put(const char *path, const char *text)
{
    put_bytes(path, text, strlen(text));
}

static const at_corpus_files parallel = {.source = "s", .target = "t"};

static void expect_line(const at_lines *lines, int64_t line, int side, const char *expected)
{
    const at_line found = lines->side[side][line];
    assert_int_equal(found.size, strlen(expected));
    assert_memory_equal(found.text, expected, found.size);
}

static void refuse(const at_corpus_files *files, int code, const char *message)
{
    at_error error = {0};
    assert_null(at_lines_read(files, &error));
    assert_string_equal(error.text, message);
    assert_int_equal(error.code, code);
}

/* ---- Lines ---------------------------------------------------------------------------------------------------- */

static void test_lines_of_two_files(void **state)
{
    (void)state;
    at_error error = {0};
    put("s", "\xef\xbb\xbfone\r\n\r\nthr\ree\n four"); /* a byte order mark first, no newline at the end */
    put("t", "eins\nzwei\n\nvier\n");
    at_lines *lines = at_lines_read(&parallel, &error);
    assert_non_null(lines);
    assert_int_equal(lines->count, 4);
    const char *source[] = {"one", "", "thr\ree", " four"}, *target[] = {"eins", "zwei", "", "vier"};
    for (int i = 0; i < 4; i++) {
        expect_line(lines, i, 0, source[i]);
        expect_line(lines, i, 1, target[i]);
    }
    at_lines_free(lines);
}

static void test_lines_of_columns(void **state)
{
    (void)state;
    at_error error = {0};
    put("tsv", "a\tb\tc\r\n\t\t\nx\ty\tz\tw");
    at_corpus_files files = {.tsv = "tsv", .source_column = 3, .target_column = 1};
    at_lines *lines = at_lines_read(&files, &error);
    assert_non_null(lines);
    assert_int_equal(lines->count, 3);
    const char *source[] = {"c", "", "z"}, *target[] = {"a", "", "x"};
    for (int i = 0; i < 3; i++) {
        expect_line(lines, i, 0, source[i]);
        expect_line(lines, i, 1, target[i]);
    }
    at_lines_free(lines);
}

static void test_line_refusals(void **state)
{
    (void)state;
    put("s", "1\n2\n3\n");
    put("t", "1\n2");
    refuse(&parallel, AT_FORMAT, "line 3 of 's' has no partner: 't' ends after 2 lines");
    put("t", "1\n2\n3\n\n");
    refuse(&parallel, AT_FORMAT, "line 4 of 't' has no partner: 's' ends after 3 lines");
    put("s", "1");
    refuse(&parallel, AT_FORMAT, "line 2 of 't' has no partner: 's' ends after 1 line");
    put("s", "");
    refuse(&parallel, AT_FORMAT, "'s' is empty: it has no line");
    put("s", "1\n");
    put("t", "");
    refuse(&parallel, AT_FORMAT, "'t' is empty: it has no line");
    refuse(&(at_corpus_files){.source = "none", .target = "t"}, AT_FILE,
           "cannot read 'none': No such file or directory");

    put("tsv", "a\tb\nc\n");
    refuse(&(at_corpus_files){.tsv = "tsv", .source_column = 1, .target_column = 2}, AT_FORMAT,
           "line 2 of 'tsv' has 1 column, so there is no column 2");
    refuse(&(at_corpus_files){.tsv = "tsv", .source_column = 3, .target_column = 1}, AT_FORMAT,
           "line 1 of 'tsv' has 2 columns, so there is no column 3");
    refuse(&(at_corpus_files){.tsv = "tsv", .source_column = 1}, AT_USAGE,
           "columns count from 1, so there is no column 0");
    put("tsv", "");
    refuse(&(at_corpus_files){.tsv = "tsv", .source_column = 1, .target_column = 2}, AT_FORMAT,
           "'tsv' is empty: it has no line");
    refuse(&(at_corpus_files){.source = "s"}, AT_USAGE,
           "a corpus is a source file and a target file, or one tab-separated file");
    refuse(&(at_corpus_files){.tsv = "tsv", .target = "t"}, AT_USAGE,
           "a tab-separated file holds both sides, so 't' must not be given");
}

/* ---- Corpora -------------------------------------------------------------------------------------------------- */

/* The corpus of the files s and t, by words. */
static at_corpus *read_limited(const at_corpus_limits *limits, at_corpus_report *report, at_error *error)
{
    at_lines *lines = at_lines_read(&parallel, error);
    assert_non_null(lines);
    at_vocabulary *vocabulary[2];
    for (int side = 0; side < 2; side++) {
        vocabulary[side] = at_vocabulary_new("word", error);
        assert_true(at_lines_count_units(lines, side, vocabulary[side], error));
        assert_true(at_vocabulary_fix(vocabulary[side], error));
    }
    at_corpus *corpus = at_corpus_new(lines, vocabulary[0], vocabulary[1], NULL, limits, report, error);
    for (int side = 0; side < 2; side++)
        at_vocabulary_free(vocabulary[side]);
    at_lines_free(lines); /* the corpus does not need them */
    return corpus;
}

static at_corpus *read_corpus(int64_t max_length, at_too_long rule, at_corpus_report *report, at_error *error)
{
    return read_limited(&(at_corpus_limits){.max_length = max_length, .rule = rule}, report, error);
}

static void expect_report(const at_corpus_report *report, const char *expected)
{
    char text[200];
    snprintf(text, sizeof text,
             "%lld lines, %lld kept; empty %lld from %lld, long %lld from %lld, replaced %lld from %lld",
             (long long)report->lines, (long long)report->kept, (long long)report->empty,
             (long long)report->first_empty, (long long)report->too_long, (long long)report->first_too_long,
             (long long)report->replaced, (long long)report->first_replaced);
    assert_string_equal(text, expected);
}

/* The batches in the order of the corpus: "line:source>target | ..." with lengths, end included. */
static void expect_pairs(const at_corpus *corpus, const char *expected)
{
    at_error error = {0};
    at_buffer text = {0};
    at_batches *batches = at_batches_new(corpus, 1, 0, 1, false, &error);
    for (at_batch batch; at_batches_next(batches, &batch);)
        at_buffer_print(&text, "%s%lld:%lld>%lld", text.size > 0 ? " " : "", (long long)batch.lines[0],
                        (long long)batch.source_lengths[0], (long long)batch.target_lengths[0]);
    assert_string_equal(text.bytes, expected);
    at_buffer_free(&text);
    at_batches_free(batches);
}

static void test_reports(void **state)
{
    (void)state;
    at_error error = {0};
    at_corpus_report report;
    put("s", "a b x\n \nc\nd e f g\nh\xff\ni\nj\n");
    put("t", "A\nB\nC\xc3 C\nD\n\nF F F F\nG\xfe\n");

    at_corpus *corpus = read_corpus(3, AT_TOO_LONG_SKIP, &report, &error);
    expect_report(&report, "7 lines, 3 kept; empty 2 from 2, long 2 from 4, replaced 3 from 3");
    expect_pairs(corpus, "1:3>2 3:1>3 7:1>2");
    assert_int_equal(at_corpus_count(corpus), 3);
    at_corpus_free(corpus);

    corpus = read_corpus(3, AT_TOO_LONG_CUT, &report, &error);
    expect_report(&report, "7 lines, 5 kept; empty 2 from 2, long 2 from 4, replaced 3 from 3");
    expect_pairs(corpus, "1:3>2 3:1>3 4:3>2 6:1>4 7:1>2");
    at_corpus_free(corpus);

    corpus = read_corpus(3, AT_TOO_LONG_KEEP, &report, &error);
    expect_report(&report, "7 lines, 5 kept; empty 2 from 2, long 2 from 4, replaced 3 from 3");
    expect_pairs(corpus, "1:3>2 3:1>3 4:4>2 6:1>5 7:1>2");
    at_corpus_free(corpus);

    corpus = read_corpus(0, AT_TOO_LONG_SKIP, &report, &error); /* no limit */
    expect_report(&report, "7 lines, 5 kept; empty 2 from 2, long 0 from 0, replaced 3 from 3");
    at_corpus_free(corpus);
    assert_int_equal(error.code, AT_OK);

    put("s", "a b\n\n");
    put("t", "A\nB\n");
    assert_null(read_corpus(1, AT_TOO_LONG_SKIP, &report, &error));
    assert_string_equal(error.text, "no pair of lines is left: of 2, 1 have an empty side (first line 2) and 1 are "
                                    "longer than 1 units (first line 1)");
    error = (at_error){0};
    put("s", "a b\na c\n");
    assert_null(read_corpus(1, AT_TOO_LONG_SKIP, &report, &error));
    assert_string_equal(error.text, "no pair of lines is left: of 2, 2 are longer than 1 units (first line 1)");
}

/* Lengths 3:1, 1:2, 2:2, 4:1, 1:5 by words. */
static void test_ratios(void **state)
{
    (void)state;
    at_error error = {0};
    at_corpus_report report;
    put("s", "a b c\na\na b\na b c d\na\n");
    put("t", "A\nA B\nA B\nA\nA B C D E\n");
    static const struct {
        double ratio;
        const char *kept;
        int64_t over_ratio, first;
    } cases[] = {{0, "1:3>2 2:1>3 3:2>3 4:4>2 5:1>6", 0, 0},
                 {5, "1:3>2 2:1>3 3:2>3 4:4>2 5:1>6", 0, 0},
                 {4.9, "1:3>2 2:1>3 3:2>3 4:4>2", 1, 5},
                 {3, "1:3>2 2:1>3 3:2>3", 2, 4},
                 {2.5, "2:1>3 3:2>3", 3, 1},
                 {1, "3:2>3", 4, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        at_corpus *corpus = read_limited(&(at_corpus_limits){.max_ratio = cases[i].ratio}, &report, &error);
        expect_pairs(corpus, cases[i].kept);
        assert_int_equal(report.over_ratio, cases[i].over_ratio);
        assert_int_equal(report.first_over_ratio, cases[i].first);
        at_corpus_free(corpus);
    }
    /* The ratio is that of the lines before they are cut; a pair that is too long and skipped is not counted twice. */
    at_corpus_limits limits = {.max_length = 3, .rule = AT_TOO_LONG_CUT, .max_ratio = 3};
    at_corpus *corpus = read_limited(&limits, &report, &error);
    expect_pairs(corpus, "1:3>2 2:1>3 3:2>3");
    assert_int_equal(report.over_ratio, 2);
    at_corpus_free(corpus);
    limits.rule = AT_TOO_LONG_SKIP;
    corpus = read_limited(&limits, &report, &error);
    assert_int_equal(report.over_ratio, 0);
    assert_int_equal(report.too_long, 2);
    at_corpus_free(corpus);

    put("s", "a b c d\n\na b c\n");
    put("t", "A\nB\nA\n");
    assert_null(
        read_limited(&(at_corpus_limits){.max_length = 3, .rule = AT_TOO_LONG_SKIP, .max_ratio = 2}, &report, &error));
    assert_string_equal(error.text, "no pair of lines is left: of 3, 1 have an empty side (first line 2), 1 are longer "
                                    "than 3 units (first line 1) and 1 have a side more than 2 times as long as the "
                                    "other (first line 3)");
}

/* ---- Batches -------------------------------------------------------------------------------------------------- */

enum { SENTENCES = 1000 };

/* Two lines "a a b" and "b": a twice, b twice, the end twice, so 1/3 each; 4 specials and 2 words are 6 entries. */
static void test_entropy(void **state)
{
    (void)state;
    at_error error = {0};
    at_corpus_report report;
    double entropy;
    put("s", "x\nx\n");
    put("t", "a a b\nb\n");
    at_corpus *corpus = read_corpus(0, AT_TOO_LONG_KEEP, &report, &error);
    assert_true(at_corpus_entropy(corpus, 6, 0, &entropy, &error));
    assert_true(fabs(entropy - log(3)) < 1e-12);
    /* with 0.3 spread over six entries: three of 0.7 / 3 + 0.05 and three of 0.05 */
    const double often = 0.7 / 3 + 0.05, seldom = 0.05;
    assert_true(at_corpus_entropy(corpus, 6, 0.3, &entropy, &error));
    assert_true(fabs(entropy + 3 * often * log(often) + 3 * seldom * log(seldom)) < 1e-12);
    at_corpus_free(corpus);
}

/* Sentences of 1 to 12 words and 1 to 9, line n has only the words sNUMBER and tNUMBER. */
static at_corpus *numbered_corpus(at_error *error)
{
    at_corpus_report report;
    at_rng rng = {3, 0};
    FILE *source = fopen("s", "w"), *target = fopen("t", "w");
    for (int i = 0; i < SENTENCES; i++) {
        for (uint32_t n = 1 + at_rng_below(&rng, 12); n > 0; n--)
            fprintf(source, "s%d%s", i, n > 1 ? " " : "\n");
        for (uint32_t n = 1 + at_rng_below(&rng, 9); n > 0; n--)
            fprintf(target, "t%d%s", i, n > 1 ? " " : "\n");
    }
    fclose(source);
    fclose(target);
    return read_corpus(0, AT_TOO_LONG_KEEP, &report, error);
}

/* The layout of one batch, as corpus.h promises it. */
static void check_batch(const at_batch *batch)
{
    int64_t longest_source = 0, longest_target = 0, source_tokens = 0, target_tokens = 0;
    for (int64_t row = 0; row < batch->rows; row++) {
        int64_t S = batch->source_lengths[row], T = batch->target_lengths[row];
        const int32_t *source = batch->source + row * batch->source_length;
        const int32_t *input = batch->input + row * batch->target_length;
        const int32_t *target = batch->target + row * batch->target_length;
        for (int64_t i = 0; i < batch->source_length; i++)
            assert_true(i < S ? source[i] >= AT_SPECIALS : source[i] == -1);
        assert_int_equal(input[0], AT_BEGIN);
        for (int64_t i = 0; i < batch->target_length; i++) {
            assert_true(i < T - 1 ? target[i] >= AT_SPECIALS : target[i] == (i == T - 1 ? AT_END : -1));
            assert_true(i == 0 || input[i] == (i < T ? target[i - 1] : AT_PAD));
        }
        longest_source = S > longest_source ? S : longest_source;
        longest_target = T > longest_target ? T : longest_target;
        source_tokens += S;
        target_tokens += T;
    }
    assert_int_equal(batch->source_length, longest_source);
    assert_int_equal(batch->target_length, longest_target);
    assert_int_equal(batch->source_tokens, source_tokens);
    assert_int_equal(batch->target_tokens, target_tokens);
}

/* The rest of an epoch: the line numbers of its batches, with a 0 after each batch. */
static int64_t *rest_of_epoch(at_batches *batches, int64_t *count)
{
    int64_t *lines = malloc((2 * SENTENCES + 1) * sizeof *lines);
    *count = 0;
    for (at_batch batch; at_batches_next(batches, &batch);) {
        check_batch(&batch);
        for (int64_t row = 0; row < batch.rows; row++)
            lines[(*count)++] = batch.lines[row];
        lines[(*count)++] = 0;
    }
    return lines;
}

static bool same_rest(const int64_t *a, int64_t a_count, const int64_t *b, int64_t b_count)
{
    return a_count == b_count && memcmp(a, b, (size_t)a_count * sizeof *a) == 0;
}

static int64_t *epoch_of(const at_corpus *corpus, int64_t sentences, int64_t tokens, uint64_t seed, int64_t epoch,
                         int64_t *count)
{
    at_error error = {0};
    at_batches *batches = at_batches_new(corpus, sentences, tokens, seed, true, &error);
    assert_non_null(batches);
    assert_true(at_batches_seek(batches, epoch, 0, &error));
    int64_t *rest = rest_of_epoch(batches, count);
    at_batches_free(batches);
    return rest;
}

/* Every sentence once, whatever the sizes; a pool smaller than the corpus included (5 sentences a batch: 500). */
static void test_every_sentence_once(void **state)
{
    (void)state;
    at_error error = {0};
    at_corpus *corpus = numbered_corpus(&error);
    static const int64_t sizes[][2] = {{1, 0}, {5, 0}, {64, 0}, {5000, 0}, {0, 1}, {0, 40}, {0, 500}, {0, 100000}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            int64_t count;
            int64_t *rest = epoch_of(corpus, sizes[i][0], sizes[i][1], 1, epoch, &count);
            char seen[SENTENCES + 1] = {0};
            for (int64_t n = 0; n < count; n++)
                if (rest[n] > 0)
                    assert_int_equal(++seen[rest[n]], 1);
            for (int n = 1; n <= SENTENCES; n++)
                assert_int_equal(seen[n], 1);
            free(rest);
        }
    at_corpus_free(corpus);
}

static void test_sizes_and_padding(void **state)
{
    (void)state;
    at_error error = {0};
    at_corpus *corpus = numbered_corpus(&error);
    at_batches *batches = at_batches_new(corpus, 64, 0, 1, true, &error);
    int64_t smaller = 0, used = 0, padded = 0, source_used = 0, source_padded = 0;
    for (at_batch batch; at_batches_next(batches, &batch);) {
        smaller += batch.rows < 64;
        assert_in_range(batch.rows, 1, 64);
        used += batch.target_tokens;
        padded += batch.rows * batch.target_length;
        source_used += batch.source_tokens;
        source_padded += batch.rows * batch.source_length;
    }
    assert_int_equal(smaller, 1);
    assert_int_equal(at_batches_count(batches), (SENTENCES + 63) / 64);
    assert_true(padded < used + used / 10);                     /* two thirds more without sorting */
    assert_true(source_padded < source_used + source_used / 2); /* three quarters if all classes were ascending */
    at_batches_free(batches);

    batches = at_batches_new(corpus, 0, 200, 1, true, &error);
    for (at_batch batch; at_batches_next(batches, &batch);)
        assert_true(batch.rows * batch.target_length <= 200);
    assert_true(at_batches_count(batches) < 40); /* 1000 sentences of 6 tokens on average: 30 full batches */
    at_batches_free(batches);

    batches = at_batches_new(corpus, 10, 0, 1, false, &error); /* in the corpus's order */
    int64_t line = 0;
    for (at_batch batch; at_batches_next(batches, &batch);)
        for (int64_t row = 0; row < batch.rows; row++)
            assert_int_equal(batch.lines[row], ++line);
    assert_int_equal(line, SENTENCES);
    at_batches_free(batches);
    at_corpus_free(corpus);
}

static void test_order_by_seed_and_epoch(void **state)
{
    (void)state;
    at_error error = {0};
    at_corpus *corpus = numbered_corpus(&error);
    int64_t n[5];
    int64_t *order[5] = {
        epoch_of(corpus, 16, 0, 1, 1, &n[0]),
        epoch_of(corpus, 16, 0, 1, 1, &n[1]),
        epoch_of(corpus, 16, 0, 1, 2, &n[2]),
        epoch_of(corpus, 16, 0, 2, 1, &n[3]),
        epoch_of(corpus, 16, 0, UINT64_C(1) << 32 | 1, 1, &n[4]),
    };
    assert_true(same_rest(order[0], n[0], order[1], n[1]));
    for (int other = 2; other < 5; other++)
        assert_false(same_rest(order[0], n[0], order[other], n[other]));
    /* The sentences of a batch change from epoch to epoch, not only the order of the batches. */
    int64_t company[2][SENTENCES + 1], changed = 0;
    for (int which = 0; which < 2; which++)
        for (int64_t i = 0, first = 0; i < n[which * 2]; i++) {
            int64_t line = order[which * 2][i];
            first = line == 0 ? 0 : first == 0 ? line : first;
            company[which][line] = first;
        }
    for (int i = 1; i <= SENTENCES; i++)
        changed += company[0][i] != company[1][i];
    assert_true(changed > SENTENCES * 9 / 10);
    for (int i = 0; i < 5; i++)
        free(order[i]);
    at_corpus_free(corpus);
}

/* The stored first batches of a run: a change of the order would break --resume across versions. */
static void test_order_is_stable(void **state)
{
    (void)state;
    at_error error = {0};
    at_corpus *corpus = numbered_corpus(&error);
    at_batches *batches = at_batches_new(corpus, 4, 0, 42, true, &error);
    assert_true(at_batches_seek(batches, 3, 0, &error));
    at_buffer text = {0};
    for (int b = 0; b < 3; b++) {
        at_batch batch;
        assert_true(at_batches_next(batches, &batch));
        for (int row = 0; row < 4; row++)
            at_buffer_print(&text, "%lld ", (long long)batch.lines[row]);
    }
    assert_string_equal(text.bytes, "308 147 950 20 487 9 640 61 560 608 383 676 ");
    at_buffer_free(&text);
    at_batches_free(batches);
    at_corpus_free(corpus);
}

static void test_resume_anywhere(void **state)
{
    (void)state;
    at_error error = {0};
    at_corpus *corpus = numbered_corpus(&error);
    at_batches *whole = at_batches_new(corpus, 0, 90, 9, true, &error);
    at_batches *resumed = at_batches_new(corpus, 0, 90, 9, true, &error);
    assert_true(at_batches_seek(whole, 4, 0, &error));
    int64_t batch_count = at_batches_count(whole);
    for (int64_t index = 0; index <= batch_count; index += 7) {
        int64_t a_count, b_count;
        at_batch batch;
        assert_true(at_batches_seek(whole, 4, 0, &error));
        for (int64_t i = 0; i < index; i++)
            assert_true(at_batches_next(whole, &batch));
        assert_true(at_batches_seek(resumed, 4, index, &error));
        int64_t *a = rest_of_epoch(whole, &a_count), *b = rest_of_epoch(resumed, &b_count);
        assert_true(same_rest(a, a_count, b, b_count));
        free(a);
        free(b);
    }
    assert_true(at_batches_seek(resumed, 4, batch_count, &error)); /* the end is a valid position */
    at_batch batch;
    assert_false(at_batches_next(resumed, &batch));
    assert_false(at_batches_next(resumed, &batch));
    assert_false(at_batches_seek(resumed, 4, batch_count + 1, &error));
    char message[100];
    snprintf(message, sizeof message, "epoch 4 has %lld batches, so there is no batch %lld", (long long)batch_count,
             (long long)batch_count + 1);
    assert_string_equal(error.text, message);
    at_batches_free(whole);
    at_batches_free(resumed);
    at_corpus_free(corpus);
}

/* Batches and epochs reuse the same memory. */
static void test_memory_stays(void **state)
{
    (void)state;
    at_error error = {0};
    at_corpus *corpus = numbered_corpus(&error);
    at_batches *batches = at_batches_new(corpus, 0, 300, 5, true, &error);
    const int32_t *source = NULL, *input = NULL;
    const int64_t *lines = NULL;
    for (int64_t epoch = 0; epoch < 20; epoch++) {
        assert_true(at_batches_seek(batches, epoch, 0, &error));
        for (at_batch batch; at_batches_next(batches, &batch);) {
            assert_true(source == NULL || (source == batch.source && input == batch.input && lines == batch.lines));
            source = batch.source;
            input = batch.input;
            lines = batch.lines;
        }
    }
    at_batches_free(batches);
    at_corpus_free(corpus);
}

static void test_batch_refusals(void **state)
{
    (void)state;
    at_error error = {0};
    at_corpus *corpus = numbered_corpus(&error);
    static const int64_t sizes[][2] = {{0, 0}, {4, 4}, {-1, 0}, {0, -5}, {-1, 5}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_null(at_batches_new(corpus, sizes[i][0], sizes[i][1], 1, true, &error));
        assert_int_equal(error.code, AT_USAGE);
        assert_string_equal(error.text,
                            "a batch has a number of sentences or a number of tokens, 1 or more: one of the two");
        error = (at_error){0};
    }
    at_batches_free(NULL);
    at_corpus_free(corpus);
}

/* Lines of every length class are sorted correctly, including lengths above 255. */
static void test_long_sentences(void **state)
{
    (void)state;
    at_error error = {0};
    at_corpus_report report;
    FILE *source = fopen("s", "w"), *target = fopen("t", "w");
    for (int i = 0; i < 40; i++) {
        for (int n = 0; n <= i * 37 % 40 * 20; n++)
            fputs("a ", target);
        fputs("\n", target);
        fputs("b\n", source);
    }
    fclose(source);
    fclose(target);
    at_corpus *corpus = read_corpus(0, AT_TOO_LONG_KEEP, &report, &error);
    at_batches *batches = at_batches_new(corpus, 2, 0, 1, true, &error);
    for (at_batch batch; at_batches_next(batches, &batch);) { /* neighbours are at most two classes apart */
        int64_t longest = batch.target_length, shortest = batch.target_tokens - longest;
        check_batch(&batch);
        assert_true(longest - shortest <= 40 || longest * 8 <= shortest * 11);
    }
    at_batches_free(batches);
    at_corpus_free(corpus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lines_of_two_files, enter, leave),
        cmocka_unit_test_setup_teardown(test_lines_of_columns, enter, leave),
        cmocka_unit_test_setup_teardown(test_line_refusals, enter, leave),
        cmocka_unit_test_setup_teardown(test_reports, enter, leave),
        cmocka_unit_test_setup_teardown(test_ratios, enter, leave),
        cmocka_unit_test_setup_teardown(test_entropy, enter, leave),
        cmocka_unit_test_setup_teardown(test_every_sentence_once, enter, leave),
        cmocka_unit_test_setup_teardown(test_sizes_and_padding, enter, leave),
        cmocka_unit_test_setup_teardown(test_order_by_seed_and_epoch, enter, leave),
        cmocka_unit_test_setup_teardown(test_order_is_stable, enter, leave),
        cmocka_unit_test_setup_teardown(test_resume_anywhere, enter, leave),
        cmocka_unit_test_setup_teardown(test_memory_stays, enter, leave),
        cmocka_unit_test_setup_teardown(test_batch_refusals, enter, leave),
        cmocka_unit_test_setup_teardown(test_long_sentences, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
