/* A trained model is not lost by mistake: what a run may replace, when, and what it leaves alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "same_files.h"
#include "training_of.h"

static int enter(void **state)
{
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    return enter_training() ? 0 : -1;
}

/* ---- Runs ----------------------------------------------------------------------------------------------------- */

typedef struct listener {
    volatile int stop;
    int64_t stop_at; /* the update; 0: never */
    char note[300];
} listener;

static void listen(void *context, const at_train_news *news)
{
    listener *l = context;
    if (news->what == AT_NEWS_TICK && l->stop_at && news->update >= l->stop_at)
        l->stop = 1;
    if (news->what == AT_NEWS_NOTE)
        snprintf(l->note, sizeof l->note, "%s", news->text);
}

static at_train_result run(at_training *training, listener *l)
{
    at_error error = {0};
    at_train_result result;
    if (!at_training_run(training, listen, l, &l->stop, &result, &error))
        fail_msg("%s", error.text);
    at_training_free(training);
    return result;
}

static at_train_result run_plainly(at_training *training)
{
    listener l = {0};
    return run(training, &l);
}

static void fails(at_training *training, int code, const char *message)
{
    at_error error = {0};
    at_train_result result;
    assert_false(at_training_run(training, NULL, NULL, NULL, &result, &error));
    assert_string_equal(error.text, message);
    assert_int_equal(error.code, code);
    at_training_free(training);
}

/* ---- Files ---------------------------------------------------------------------------------------------------- */

static const char *const endings[] = {"", ".last", ".state", ".log.jsonl", ".previous", ".state.previous"};
enum { ENDINGS = sizeof endings / sizeof *endings };

static bool exists(const char *name, const char *ending)
{
    char path[100];
    snprintf(path, sizeof path, "%s%s", name, ending);
    return access(path, F_OK) == 0;
}

/* All files of an output, and a copy of them. */
static void copy_all(const char *name, const char *copy)
{
    char command[200];
    for (int i = 0; i < ENDINGS; i++) {
        snprintf(command, sizeof command, "cp %s%s %s%s", name, endings[i], copy, endings[i]);
        if (exists(name, endings[i]))
            assert_int_equal(system(command), 0);
    }
}

static void same_all(const char *name, const char *copy)
{
    char one[100], other[100];
    for (int i = 0; i < ENDINGS; i++) {
        snprintf(one, sizeof one, "%s%s", name, endings[i]);
        snprintf(other, sizeof other, "%s%s", copy, endings[i]);
        assert_int_equal(exists(name, endings[i]), exists(copy, endings[i]));
        if (exists(name, endings[i]))
            same_files(one, other);
    }
}

static int lines_of(const char *path)
{
    FILE *file = fopen(path, "r");
    int lines = 0;
    for (int c; (c = fgetc(file)) != EOF;)
        lines += c == '\n';
    fclose(file);
    return lines;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

/* ---- Tests ---------------------------------------------------------------------------------------------------- */

static void a_model_is_not_replaced_unasked(void **state)
{
    (void)state;
    run_plainly(training_of("old", DATA, VALID, "valid-every", "5", "updates", "12", NULL));
    copy_all("old", "copy");
    fails(
        training_of("old", DATA, NULL), AT_FILE,
        "'old' exists, from a run of 12 updates: `resume` continues the run, `overwrite` starts again and replaces it "
        "at the first save; or choose another `output`");
    same_all("old", "copy");
    fails(training_of("old", DATA, "resume", "true", "overwrite", "true", NULL), AT_USAGE,
          "`resume` continues a run and `overwrite` starts again; give one of them");
    same_all("old", "copy");

    /* The state alone, the model alone: then the updates are those of its last validation. */
    assert_int_equal(rename("old", "kept"), 0);
    fails(training_of("old", DATA, NULL), AT_FILE,
          "'old.state' exists, from a run of 12 updates: `resume` continues the run, `overwrite` starts again and "
          "replaces it at the first save; or choose another `output`");
    assert_int_equal(rename("kept", "old"), 0);
    assert_int_equal(unlink("old.state"), 0);
    fails(training_of("old", DATA, NULL), AT_FILE,
          "'old' exists, from a run of 12 updates: `overwrite` starts again and replaces it at the first save; or "
          "choose another `output`");
    fails(
        training_of("old", DATA, "resume", "true", NULL), AT_FILE,
        "'old' exists, but without 'old.state' there is nothing to `resume`: `overwrite` starts again and replaces it "
        "at the first save; or choose another `output`");
    same_files("old", "copy");
    same_files("old.log.jsonl", "copy.log.jsonl");

    /* Any other file; an empty one has nothing to lose. */
    write_text("notes", "do not lose this\n");
    fails(training_of("notes", DATA, NULL), AT_FILE,
          "'notes' exists: `overwrite` starts again and replaces it at the first save; or choose another `output`");
    write_text("empty", "");
    run_plainly(training_of("empty", DATA, "updates", "1", NULL));
}

/* Stopped or diverged before its first save, a run leaves every file of the one before alone, its log included. */
static void old_files_stay_until_the_first_save(void **state)
{
    (void)state;
    run_plainly(training_of("first", DATA, VALID, "updates", "30", "report-every", "3", NULL));
    copy_all("first", "same");
    for (int64_t stop = 1; stop <= 7; stop += 6) { /* at the first update, and after two reports */
        listener l = {.stop_at = stop};
        at_train_result r =
            run(training_of("first", DATA, VALID, "epochs", "2", "report-every", "3", "overwrite", "true", NULL), &l);
        assert_true(r.interrupted);
        assert_int_equal(r.updates, stop);
        assert_int_equal(r.saved, -1);
        same_all("first", "same");
    }
    listener at_once = {.stop = 1};
    at_train_result r = run(training_of("first", DATA, "overwrite", "true", NULL), &at_once);
    assert_int_equal(r.saved, -1);
    same_all("first", "same");
    fails(training_of("first", DATA, "optimiser", "sgd", "learning-rate", "1e30", "clip-norm", "0", "report-every", "1",
                      "overwrite", "true", NULL),
          AT_FAILED,
          "the gradients of 10 updates in a row after update 1 were not finite, so training stops; no model was "
          "written; a smaller `learning-rate` or `clip-norm` may help");
    same_all("first", "same");

    /* An interrupt after the first save saves as ever. */
    listener late = {.stop_at = 23};
    r = run(training_of("first", DATA, VALID, "epochs", "2", "report-every", "3", "overwrite", "true", NULL), &late);
    assert_int_equal(r.saved, 23);
}

static void overwritten_is_fresh(void **state)
{
    (void)state;
    run_plainly(training_of("fresh", DATA, VALID, "epochs", "2", "dropout", "0.1", "seed", "3", NULL));
    run_plainly(training_of("again", DATA, VALID, "updates", "7", "report-every", "1", NULL));
    assert_int_equal(lines_of("again.log.jsonl"), 10); /* start, 7 reports, a validation, end */
    at_train_result r = run_plainly(
        training_of("again", DATA, VALID, "epochs", "2", "dropout", "0.1", "seed", "3", "overwrite", "true", NULL));
    assert_int_equal(r.saved, 40);
    same_files("again", "fresh");
    same_files("again.last", "fresh.last");
    same_files("again.state", "fresh.state");
    assert_int_equal(lines_of("again.log.jsonl"), lines_of("fresh.log.jsonl"));
}

/* Interrupted before the first update there is nothing to save, and no file is left. */
static void nothing_is_saved_of_nothing(void **state)
{
    (void)state;
    listener at_once = {.stop = 1};
    at_train_result r = run(training_of("never", DATA, NULL), &at_once);
    assert_true(r.interrupted && r.saved == -1);
    for (int i = 0; i < ENDINGS; i++)
        assert_false(exists("never", endings[i]));
    /* A resumed run is as saved as it was. */
    run_plainly(training_of("known", DATA, "updates", "2", NULL));
    at_once.stop = 1;
    r = run(training_of("known", DATA, "resume", "true", NULL), &at_once);
    assert_int_equal(r.saved, 2);
}

/* A run that dies between its first model and its first state: the model is its own, so resuming starts from the
 * beginning, and the state of the run that was there before is not taken for its own. */
static void dies_in_its_first_save(void **state)
{
    (void)state;
    struct rlimit before;
    struct stat model, full;
    run_plainly(training_of("safe", DATA, VALID, "epochs", "2", NULL));
    assert_true(stat("safe", &model) == 0 && stat("safe.state", &full) == 0 && full.st_size > 2 * model.st_size);
    run_plainly(training_of("died", DATA, VALID, "updates", "3", NULL));
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){(rlim_t)model.st_size + 1000, before.rlim_max});
    at_error error = {0};
    at_train_result result;
    at_training *training = training_of("died", DATA, VALID, "epochs", "2", "overwrite", "true", NULL);
    const bool done = at_training_run(training, NULL, NULL, NULL, &result, &error);
    setrlimit(RLIMIT_FSIZE, &before);
    at_training_free(training);
    assert_false(done);
    assert_string_equal(error.text, "cannot write 'died.state': File too large");
    fails(training_of("died", DATA, VALID, "epochs", "2", "hidden", "25", "resume", "true", NULL), AT_FAILED,
          "cannot resume from 'died.state', which was written with `hidden` 24 and not with `hidden` 25; train as "
          "before, "
          "or from the start with `overwrite`");
    listener l = {0};
    run(training_of("died", DATA, VALID, "epochs", "2", "resume", "true", NULL), &l);
    assert_string_equal(l.note,
                        "'died.state' is of a run without a complete save, so training starts from the beginning");
    same_files("died", "safe");
    same_files("died.last", "safe.last");
    same_files("died.state", "safe.state");
    assert_int_equal(lines_of("died.log.jsonl"), lines_of("safe.log.jsonl"));
}

static void previous_files_are_optional(void **state)
{
    (void)state;
    run_plainly(training_of("lean", DATA, VALID, "epochs", "3", NULL));
    assert_false(exists("lean", ".previous") || exists("lean", ".state.previous"));
    run_plainly(training_of("lean", DATA, "updates", "3", "keep-previous", "true", "overwrite", "true", NULL));
    assert_int_equal(lines_of("lean.log.jsonl"), 3); /* start, a report, end */
    /* The first save keeps what was there, model and state of one run. */
    run_plainly(training_of("plain", DATA, VALID, "epochs", "3", NULL));
    same_files("lean.previous", "plain");
    same_files("lean.state.previous", "plain.state");
    run_plainly(training_of("lean", DATA, "updates", "5", "keep-previous", "true", "resume", "true", NULL));
    run_plainly(training_of("short", DATA, "updates", "3", NULL));
    same_files("lean.previous", "short");
    same_files("lean.state.previous", "short.state");
    run_plainly(training_of("lean", DATA, "updates", "6", "resume", "true", NULL));
    assert_false(exists("lean", ".previous") || exists("lean", ".state.previous"));
    /* A run that ends between validations without a best model before has none to keep. */
    run_plainly(training_of("early", DATA, VALID, "updates", "3", NULL));
    assert_false(exists("early", ".previous"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_not_replaced_unasked),
        cmocka_unit_test(old_files_stay_until_the_first_save),
        cmocka_unit_test(overwritten_is_fresh),
        cmocka_unit_test(nothing_is_saved_of_nothing),
        cmocka_unit_test(dies_in_its_first_save),
        cmocka_unit_test(previous_files_are_optional),
    };
    return cmocka_run_group_tests(tests, enter, leave_training);
}
