/* Several training corpora: one after the other, with weights, exact for any number of threads and after a resume. */
#include "training_of.h"

#include <string.h>

#include "same_files.h"

enum { ONE = 30, TWO = 40 };

static int enter(void **state)
{
    (void)state;
    if (!enter_training())
        return -1;
    write_lines("one", ONE, 0, 3);
    write_lines("two", TWO, 0, 4);
    return system("cat one two >both && cp one 'o,ne' && paste one one >one.tsv && paste two two >two.tsv");
}

static void run(at_training *training)
{
    at_error error = {0};
    at_train_result result;
    if (!at_training_run(training, NULL, NULL, NULL, &result, &error))
        fail_msg("%s", error.text);
    at_training_free(training);
}

/* The same parameters; the rest of the files names the data. */
static void same_parameters(const char *one, const char *other)
{
    at_error error = {0};
    at_translator *a = at_translator_load(one, &error), *b = at_translator_load(other, &error);
    assert_string_equal(error.text, "");
    assert_int_equal(at_params_count(a->model->params), at_params_count(b->model->params));
    assert_memory_equal(at_params_values(a->model->params), at_params_values(b->model->params),
                        (size_t)at_params_count(a->model->params) * sizeof(at_real));
    at_translator_free(a);
    at_translator_free(b);
}

/* Without weights, or with weights of 1, corpora are lines one after the other. */
static void corpora_are_joined(void **state)
{
    (void)state;
    run(training_of("joined", "source", "both", "target", "both", "updates", "8", NULL));
    run(training_of("listed", "source", "one,two", "target", "one,two", "updates", "8", NULL));
    run(training_of("weighed", "tsv", "one.tsv,two.tsv", "corpus-weights", "1,1", "updates", "8", NULL));
    run(training_of("comma", "source", "o,ne", "target", "one", "updates", "8", NULL));
    same_parameters("joined", "listed");
    same_parameters("joined", "weighed");
}

static at_corpus *corpus_of(at_lines **lines, at_error *error)
{
    const at_corpus_files files = {.source = "one,two", .target = "one,two"};
    const at_corpus_limits limits = {0};
    at_corpus_report report;
    at_vocabulary *words = at_vocabulary_new("word", error);
    *lines = at_lines_read(&files, error);
    assert_non_null(*lines);
    assert_true(at_lines_count_units(*lines, 0, words, error) && at_vocabulary_fix(words, error));
    at_corpus *corpus = at_corpus_new(*lines, words, words, NULL, &limits, &report, error);
    at_vocabulary_free(words);
    assert_int_equal(at_corpus_count(corpus), ONE + TWO);
    assert_int_equal(at_corpus_up_to(corpus, ONE), ONE);
    return corpus;
}

/* How often each line occurs in the rest of an epoch. */
static int64_t count_lines(at_batches *batches, int64_t epoch, int64_t from, int times[ONE + TWO])
{
    at_error error = {0};
    at_batch batch;
    int64_t rows = 0;
    memset(times, 0, (ONE + TWO) * sizeof *times);
    assert_true(at_batches_seek(batches, epoch, from, &error));
    while (at_batches_next(batches, &batch)) {
        for (int64_t i = 0; i < batch.rows; i++)
            times[batch.lines[i] - 1]++;
        rows += batch.rows;
    }
    return rows;
}

/* Weights 0.5 and 2.25: 15 of the first, each of the second twice, and 10 of them a third time. */
static void weights_are_times_in_an_epoch(void **state)
{
    (void)state;
    at_error error = {0};
    at_lines *lines;
    at_corpus *corpus = corpus_of(&lines, &error);
    const at_corpus_part parts[] = {{ONE, 0.5}, {ONE + TWO, 2.25}};
    at_batches *batches = at_batches_new_weighted(corpus, parts, 2, 7, 0, 11, &error);
    assert_non_null(batches);
    int before[ONE + TWO] = {0}, times[ONE + TWO];
    for (int64_t epoch = 1; epoch < 30; epoch++) {
        assert_int_equal(count_lines(batches, epoch, 0, times), 15 + 90);
        int chosen = 0, thrice = 0;
        for (int i = 0; i < ONE; i++) {
            assert_true(times[i] == 0 || times[i] == 1);
            chosen += times[i];
        }
        for (int i = ONE; i < ONE + TWO; i++) {
            assert_true(times[i] == 2 || times[i] == 3);
            thrice += times[i] == 3;
        }
        assert_int_equal(chosen, 15);
        assert_int_equal(thrice, 10);
        assert_memory_not_equal(times, before, sizeof times); /* chosen anew */
        memcpy(before, times, sizeof times);
    }
    /* the choice depends on seed and epoch alone */
    assert_int_equal(count_lines(batches, 5, 0, before), 105);
    count_lines(batches, 9, 3, times);
    assert_int_equal(count_lines(batches, 5, 0, times), 105);
    assert_memory_equal(times, before, sizeof times);
    at_batches_free(batches);
    at_corpus_free(corpus);
    at_lines_free(lines);
}

#define CORPORA                                                                                                        \
    "source", "one,two", "target", "one,two", "corpus-weights", "0.5,2.25", "valid-source", "valid", "valid-target",   \
        "valid", "freeze", "encoder.*", "save-every", "5"

static void resumes_exactly(void **state)
{
    (void)state;
    static const char *const ends[] = {"3", "9", "16"};
    run(training_of("whole", CORPORA, "updates", "16", NULL));
    for (int i = 0; i < 3; i++) {
        at_threads_set(1 + i);
        run(training_of("parts", CORPORA, "updates", ends[i], "resume", "true", NULL));
    }
    at_threads_set(1);
    same_files("whole", "parts");
    same_files("whole.last", "parts.last");
    same_files("whole.state", "parts.state");
}

static void refused(const char *message, at_training *training)
{
    at_error error = {0};
    at_train_result result;
    assert_false(at_training_run(training, NULL, NULL, NULL, &result, &error));
    assert_string_equal(error.text, message);
    at_training_free(training);
}

static char note[400];

static void keep_note(void *context, const at_train_news *news)
{
    (void)context;
    if (news->what == AT_NEWS_NOTE && strstr(news->text, "empty side"))
        snprintf(note, sizeof note, "%s", news->text);
}

static void lines_are_named_with_their_files(void **state)
{
    (void)state;
    at_error error = {0};
    at_train_result result;
    assert_int_equal(system("(head -3 two; echo; tail -n +5 two) >hole"), 0);
    at_training *training = training_of("x", "source", "one,hole", "target", "one,two", "updates", "1", NULL);
    assert_true(at_training_run(training, keep_note, NULL, NULL, &result, &error));
    at_training_free(training);
    assert_string_equal(note, "1 of the 70 training pairs have an empty side and are skipped, the first in line 4 of "
                              "'two'");
}

static void refusals(void **state)
{
    (void)state;
    at_error error = {0};
    refused("there are 2 source files and 1 target files; each source file has its target file",
            training_of("y", "source", "one,two", "target", "both", "updates", "1", NULL));
    refused("'one,,two' names 3 files, and one of the names is empty",
            training_of("y", "source", "one,,two", "target", "one,two", "updates", "1", NULL));
    refused(
        "`corpus-weights` has 3 weights, and there are 2 corpora",
        training_of("y", "source", "one,two", "target", "one,two", "corpus-weights", "1,2,3", "updates", "1", NULL));
    refused("`corpus-weights` has 2 weights, and there is 1 corpus",
            training_of("y", DATA, "corpus-weights", "1,2", "updates", "1", NULL));
    refused("`output` would overwrite 'two', which `source` reads; choose another file",
            training_of("two", "source", "one,two", "target", "one,two", "updates", "1", NULL));
    at_training *training = at_training_new(&error);
    static const char *const wrong[] = {"1,0", "1,,2", "x", "1,", "-1", "nan"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        error = (at_error){0};
        assert_false(at_training_set(training, "corpus-weights", wrong[i], &error));
        assert_non_null(
            strstr(error.text, "`corpus-weights` takes numbers above 0 with commas between, as in 1,3, not "));
    }
    at_training_free(training);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(corpora_are_joined),
                                       cmocka_unit_test(weights_are_times_in_an_epoch),
                                       cmocka_unit_test(resumes_exactly),
                                       cmocka_unit_test(lines_are_named_with_their_files), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, enter, leave_training);
}
