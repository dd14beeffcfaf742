/* Training from lines in memory: the same bytes as from files with the same lines. And runs at the same time do not
 * disturb each other. */
#include <pthread.h>

#include "same_files.h"
#include "training_of.h"

static at_line_list *train, *odd, *valid; /* the files of the same names */

/* The sources differ from the targets by an empty line and one with a byte that is not UTF-8. */
static int enter(void **state)
{
    (void)state;
    at_error error = {0};
    if (!enter_training())
        return -1;
    write_lines("odd", 398, 0, 5);
    FILE *file = fopen("odd", "a");
    fputs("\na \xff b\n", file);
    fclose(file);
    train = at_line_list_read("train", &error);
    odd = at_line_list_read("odd", &error);
    valid = at_line_list_read("valid", &error);
    return train && odd && valid && train->count == odd->count ? 0 : -1;
}

static int leave(void **state)
{
    at_line_list_free(train);
    at_line_list_free(odd);
    at_line_list_free(valid);
    return leave_training(state);
}

static void set_data(at_training *training, at_training_part part, const at_line_list *sources,
                     const at_line_list *targets)
{
    at_error error = {0};
    if (!at_training_data(training, part, sources ? sources->line : NULL, targets->line, targets->count, &error))
        fail_msg("%s", error.text);
}

static void *run(void *training)
{
    at_error error = {0};
    at_train_result result;
    if (!at_training_run(training, NULL, NULL, NULL, &result, &error))
        fail_msg("%s", error.text);
    at_training_free(training);
    return NULL;
}

/* Removes how a model was trained from its file, as only this names the files. */
static void forget_training(const char *path)
{
    at_error error = {0};
    at_tensors *model = at_tensors_read(path, &error);
    assert_true(model && at_tensors_meta(model, "training"));
    assert_true(at_tensors_set_meta(model, "training", NULL, &error) &&
                at_tensors_set_meta(model, "attend.checksum", NULL, &error) && at_tensors_write(model, path, &error));
    at_tensors_free(model);
}

static void same_run(const char *a, const char *b)
{
    static const char *const endings[] = {"", ".last", ".state"};
    for (int i = 0; i < 3; i++) {
        char path[2][40];
        snprintf(path[0], sizeof path[0], "%s%s", a, endings[i]);
        snprintf(path[1], sizeof path[1], "%s%s", b, endings[i]);
        for (int p = 0; p < 2 && i < 2; p++)
            forget_training(path[p]);
        same_files(path[0], path[1]);
    }
}

#define SHORT "dropout", "0.1", "epochs", "2"

static void same_bytes_as_from_files(void **state)
{
    (void)state;
    run(training_of("files", "source", "odd", "target", "train", VALID, SHORT, NULL));
    at_training *pairs = training_of("lines", SHORT, NULL);
    set_data(pairs, AT_TRAIN, odd, train);
    set_data(pairs, AT_VALID, valid, valid);
    run(pairs);
    same_run("files", "lines");
}

static at_training *language_model(const char *output)
{
    at_error error = {0};
    at_training *training = at_training_new(&error);
    static const char *const settings[][2] = {
        {"model", "transformer-lm"}, {"layers", "1"}, {"heads", "2"}, {"ffn", "16"}, {"hidden", "16"}, {"epochs", "2"}};
    for (int i = 0; i < 6; i++)
        assert_true(at_training_set(training, settings[i][0], settings[i][1], &error));
    assert_true(at_training_set(training, "output", output, &error));
    return training;
}

static void same_bytes_of_a_language_model(void **state)
{
    (void)state;
    at_error error = {0};
    at_training *files = language_model("lm-files"), *lines = language_model("lm-lines");
    assert_true(at_training_set(files, "target", "train", &error));
    assert_true(at_training_set(files, "valid-target", "valid", &error));
    set_data(lines, AT_TRAIN, NULL, train);
    set_data(lines, AT_VALID, NULL, valid);
    run(files);
    run(lines);
    same_run("lm-files", "lm-lines");
}

/* Files of one part and lines of the other may be mixed, and lines can be taken back. */
static void parts_are_independent(void **state)
{
    (void)state;
    at_error error = {0};
    at_train_result result;
    at_training *mixed = training_of("mixed", DATA, SHORT, "valid-metric", "accuracy", NULL);
    set_data(mixed, AT_VALID, valid, valid);
    assert_true(at_training_run(mixed, NULL, NULL, NULL, &result, &error));
    assert_true(result.best_score >= 0);
    assert_true(at_training_data(mixed, AT_VALID, NULL, NULL, 0, &error));
    assert_false(at_training_run(mixed, NULL, NULL, NULL, &result, &error)); /* valid-metric without such data */
    assert_int_equal(error.code, AT_USAGE);
    at_training_free(mixed);
}

static void data_refused(const at_line *sources, const at_line *targets, int64_t count, const char *message)
{
    at_error error = {0};
    at_training *training = training_of("never", NULL);
    assert_false(at_training_data(training, AT_TRAIN, sources, targets, count, &error));
    assert_string_equal(error.text, message);
    assert_int_equal(error.code, AT_USAGE);
    at_training_free(training);
}

static void run_refused(at_training *training, const char *message)
{
    at_error error = {0};
    at_train_result result;
    assert_false(at_training_run(training, NULL, NULL, NULL, &result, &error));
    assert_string_equal(error.text, message);
    assert_int_equal(error.code, AT_USAGE);
    at_training_free(training);
}

static void refusals(void **state)
{
    (void)state;
    const at_line good[2] = {{"a", 1}, {"b", 1}}, two[2] = {{"a", 1}, {"b\nc", 3}}, none[2] = {{"a", 1}, {NULL, 1}};
    data_refused(good, two, 2, "target 2 of the training lines contains a newline");
    data_refused(none, good, 2, "source 2 of the training lines has no text");
    data_refused(good, good, 0, "there are 0 training lines, and at least 1 is needed");
    data_refused(good, NULL, 2, "the training lines have no targets");

    at_training *both = training_of("never", "tsv", "train", NULL);
    set_data(both, AT_TRAIN, train, train);
    run_refused(both, "the training lines are given in memory, so `tsv` cannot name a file of them");
    at_training *targets = training_of("never", NULL);
    set_data(targets, AT_TRAIN, NULL, train);
    run_refused(targets, "the model needs sources, and the training lines have none");
    at_training *sources = language_model("never");
    set_data(sources, AT_TRAIN, train, train);
    run_refused(sources, "model 'transformer-lm' is a language model, and the training lines have sources");
    at_training *missing = training_of("never", NULL);
    set_data(missing, AT_VALID, valid, valid);
    run_refused(missing, "training needs `source` FILE and `target` FILE, or `tsv` FILE");
    assert_int_equal(access("never.log.jsonl", F_OK), -1);
}

/* Different at_training objects in several threads write the same bytes as one after the other. */
static void at_the_same_time(void **state)
{
    (void)state;
    enum { RUNS = 3 };
    static const char *const scores[RUNS] = {"additive", "scaled", "general"};
    static const char *const apart[RUNS] = {"apart1", "apart2", "apart3"};
    static const char *const together[RUNS] = {"together1", "together2", "together3"};
    pthread_t thread[RUNS];
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < RUNS; i++) {
            at_training *training = training_of((pass ? together : apart)[i], "score", scores[i], SHORT, NULL);
            set_data(training, AT_TRAIN, odd, train);
            set_data(training, AT_VALID, valid, valid);
            if (pass)
                assert_int_equal(pthread_create(&thread[i], NULL, run, training), 0);
            else
                run(training);
        }
    for (int i = 0; i < RUNS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < RUNS; i++)
        same_run(apart[i], together[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bytes_as_from_files), cmocka_unit_test(same_bytes_of_a_language_model),
        cmocka_unit_test(parts_are_independent),    cmocka_unit_test(refusals),
        cmocka_unit_test(at_the_same_time),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
