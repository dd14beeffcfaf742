/* Means of parameters, over validations and over files; and the validation at the end of a run, which may replace
 * the best model without becoming part of the state. */
#include <math.h>
#include <string.h>

#include "same_files.h"
#include "training_of.h"

static int enter(void **state)
{
    (void)state;
    if (!enter_training())
        return -1;
    write_lines("valid.more", 400, 0, 9); /* another order of the words */
    return 0;
}

typedef struct events {
    int64_t validations, notes;
    char note[300];
} events;

static void listen(void *context, const at_train_news *news)
{
    events *h = context;
    h->validations += news->what == AT_NEWS_VALID;
    h->notes += news->what == AT_NEWS_NOTE;
    if (news->what == AT_NEWS_NOTE)
        snprintf(h->note, sizeof h->note, "%s", news->text);
}

static at_train_result run(at_training *training, events *h)
{
    at_error error = {0};
    at_train_result result;
    if (!at_training_run(training, listen, h, NULL, &result, &error))
        fail_msg("%s", error.text);
    at_training_free(training);
    return result;
}

static at_translator *load(const char *path)
{
    at_error error = {0};
    at_translator *t = at_translator_load(path, &error);
    if (!t)
        fail_msg("%s", error.text);
    return t;
}

/* The parameters of `mean` are those of the others added up in their order and divided, to the bit. */
static void is_mean(const char *mean, const char *const *paths, int count)
{
    at_translator *m = load(mean), *t[4];
    for (int i = 0; i < count; i++)
        t[i] = load(paths[i]);
    for (int64_t p = 0; p < at_params_count(m->model->params); p++) {
        double sum = 0;
        for (int i = 0; i < count; i++)
            sum += (double)at_params_values(t[i]->model->params)[p];
        if (at_params_values(m->model->params)[p] != (at_real)(sum / count))
            fail_msg("number %lld of '%s' is not the mean", (long long)p, mean);
    }
    at_translator_free(m);
    for (int i = 0; i < count; i++)
        at_translator_free(t[i]);
}

/* Averaging changes what is saved but not the updates, so runs without it provide the expected means. */
static void mean_of_validations(void **state)
{
    (void)state;
    events h = {0};
    static const char *const ends[] = {"5", "10", "12", "15", "20"};
    for (int i = 0; i < 5; i++) {
        char plain[20], mean[20];
        snprintf(plain, sizeof plain, "plain%s", ends[i]);
        snprintf(mean, sizeof mean, "mean%s", ends[i]);
        run(training_of(plain, DATA, VALID, "dropout", "0.1", "valid-every", "5", "updates", ends[i], NULL), &h);
        run(training_of(mean, DATA, VALID, "dropout", "0.1", "valid-every", "5", "updates", ends[i], "average", "3",
                        NULL),
            &h);
    }
    is_mean("mean5.last", (const char *[]){"plain5.last"}, 1);
    is_mean("mean10.last", (const char *[]){"plain5.last", "plain10.last"}, 2);
    /* 12 is between two validations: it replaces the next one. */
    is_mean("mean12.last", (const char *[]){"plain5.last", "plain10.last", "plain12.last"}, 3);
    is_mean("mean15.last", (const char *[]){"plain5.last", "plain10.last", "plain15.last"}, 3);
    is_mean("mean20.last", (const char *[]){"plain10.last", "plain15.last", "plain20.last"}, 3);
    is_mean("mean20", (const char *[]){"plain10.last", "plain15.last", "plain20.last"}, 3); /* the best is the last */
}

static void refuses(const char *const *paths, int count, const char *message)
{
    at_error error = {0};
    assert_false(at_models_average(paths, count, "none", &error));
    assert_string_equal(error.text, message);
    assert_int_equal(access("none", F_OK), -1);
}

static void mean_of_files(void **state)
{
    (void)state;
    events h = {0};
    at_error error = {0};
    const char *const paths[] = {"plain10.last", "plain15.last", "plain20.last"};
    assert_true(at_models_average(paths, 3, "of_files", &error));
    is_mean("of_files", paths, 3);
    is_mean("of_files", (const char *[]){"mean20"}, 1); /* the same mean */
    at_translator *t = load("of_files");
    assert_null(t->history);
    at_translator_free(t);
    assert_true(at_models_average(paths, 1, "of_files", &error));
    is_mean("of_files", paths, 1);

    run(training_of("wide", DATA, "updates", "1", "hidden", "25", NULL), &h);
    refuses((const char *[]){"plain5", "wide"}, 2,
            "'wide' has `hidden` 25 and 'plain5' has `hidden` 24: they have no mean");
    run(training_of("other", DATA, "updates", "1", "dropout", "0.2", NULL), &h);
    refuses((const char *[]){"plain5", "plain10", "other"}, 3,
            "'other' has `dropout` 0.2 and 'plain5' has `dropout` 0.1: they have no mean");
    run(training_of("short", DATA, "updates", "1", "dropout", "0.1", "max-length", "9", NULL), &h);
    refuses((const char *[]){"plain5", "short"}, 2,
            "'short' has `max-length` 9 and 'plain5' has `max-length` 200: they have no mean");
    run(training_of("words", "source", "train", "target", "valid.more", "updates", "1", "dropout", "0.1", NULL), &h);
    refuses((const char *[]){"plain5", "words"}, 2,
            "'words' and 'plain5' have different target vocabularies, so their parameters stand for different words: "
            "they have no mean");
    refuses((const char *[]){"plain5", "plain5.state"}, 2, "'plain5.state' is a training state, not a model");
    refuses((const char *[]){"missing", "plain5"}, 2, "cannot read 'missing': No such file or directory");
    refuses(NULL, 0, "there is no model to average");
}

/* ---- The end of a run ----------------------------------------------------------------------------------------- */

static void end_is_validated(void **state)
{
    (void)state;
    events h = {0};
    at_train_result r = run(training_of("end", DATA, VALID, "valid-every", "5", "updates", "8", NULL), &h);
    assert_int_equal(h.validations, 2);
    assert_int_equal(r.best_update, 8);
    at_translator *t = load("end");
    assert_non_null(strstr(t->history, "\"update\":5,"));
    assert_non_null(strstr(t->history, "\"update\":8,"));
    at_translator_free(t);
    is_mean("end", (const char *[]){"end.last"}, 1);
    h = (events){0}; /* a validation at the last update is not repeated */
    run(training_of("end", DATA, VALID, "valid-every", "5", "updates", "10", "overwrite", "true", NULL), &h);
    assert_int_equal(h.validations, 2);
}

/* With this large learning rate scores go up and down. Wherever a run ends, resuming it equals an uninterrupted run,
 * its best model included, even if the model at the end was the best of all. */
#define ROUGH DATA, VALID, "valid-every", "4", "learning-rate", "0.1", "clip-norm", "0"

static void ended_is_uninterrupted(void **state)
{
    (void)state;
    events h = {0};
    int went_back = 0;
    run(training_of("far", ROUGH, "updates", "24", NULL), &h);
    static const char *const ends[] = {"3", "6", "9", "14", "15", "19", "22"};
    for (int i = 0; i < 7; i++) {
        run(training_of("near", ROUGH, "updates", ends[i], "overwrite", "true", NULL), &h);
        h = (events){0};
        run(training_of("near", ROUGH, "updates", "24", "resume", "true", NULL), &h);
        went_back += strstr(h.note, "'near' is again the best model of the state, that of update ") != NULL;
        same_files("far", "near");
        same_files("far.last", "near.last");
        same_files("far.state", "near.state");
    }
    assert_true(went_back > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_of_validations),
        cmocka_unit_test(mean_of_files),
        cmocka_unit_test(end_is_validated),
        cmocka_unit_test(ended_is_uninterrupted),
    };
    return cmocka_run_group_tests(tests, enter, leave_training);
}
