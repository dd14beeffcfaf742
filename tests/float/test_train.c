/* Training from files to files: it learns, it can be stopped and resumed anywhere with the same bits, and failures
 * lose nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "same_files.h"
#include "train/train.h"
#include "training_of.h"

/* ---- Counting allocations --------------------------------------------------------------------- */

static long allocations;
#ifndef __SANITIZE_ADDRESS__ /* which has its own allocator */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
void *malloc(size_t size)
{
    __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size)
{
    __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_calloc(count, size);
}
void *realloc(void *old, size_t size)
{
    __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_realloc(old, size);
}
#endif

/* ---- Files ---------------------------------------------------------------------------------------------------- */

static int enter(void **state)
{
    (void)state;
    if (!enter_training())
        return -1;
    write_lines("more", 1500, 0, 3);
    write_lines("even", 64, 4, 4);
    signal(SIGXFSZ, SIG_IGN);
    return 0;
}

enum { LINE = 8000 }; /* characters of a line of a log */

/* ---- Runs ----------------------------------------------------------------------------------------------------- */

/* What listeners do at chosen updates. */
typedef struct listener {
    volatile int stop;
    int64_t stop_at; /* the update */
    int64_t skipped, validations, notes;
    int64_t full_at;    /* from this update on files may not grow */
    at_training *rival; /* runs at the first update */
    at_error rival_said;
    long before, steady; /* allocations before the last update; updates in a row without any */
} listener;

static void listen(void *context, const at_train_news *news)
{
    listener *e = context;
    e->skipped += news->what == AT_NEWS_SKIPPED;
    e->validations += news->what == AT_NEWS_VALID;
    e->notes += news->what == AT_NEWS_NOTE;
    if (news->what != AT_NEWS_TICK)
        return;
    if (e->stop_at && news->update >= e->stop_at)
        e->stop = 1;
    if (e->full_at == news->update && e->full_at)
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, RLIM_INFINITY});
    if (e->rival && news->update == 1) {
        at_train_result result;
        assert_false(at_training_run(e->rival, NULL, NULL, NULL, &result, &e->rival_said));
    }
    e->steady = allocations == e->before ? e->steady + 1 : 0;
    e->before = allocations;
}

static at_train_result run(at_training *training, listener *e)
{
    at_error error = {0};
    at_train_result result;
    if (!at_training_run(training, listen, e, &e->stop, &result, &error))
        fail_msg("%s", error.text);
    at_training_free(training);
    return result;
}

static void fails(at_training *training, listener *e, const char *message)
{
    at_error error = {0};
    at_train_result result;
    assert_false(at_training_run(training, listen, e, &e->stop, &result, &error));
    assert_string_equal(error.text, message);
    at_training_free(training);
}

static void learns_to_copy(void **state)
{
    (void)state;
    listener e = {0};
    FILE *old = fopen("copy.log.jsonl", "w"); /* of an earlier run: this one replaces the log */
    fputs("{}\n", old);
    fclose(old);
    at_train_result r = run(training_of("copy", "source", "more", "target", "more", VALID, "hidden", "40", "epochs",
                                        "12", "valid-metric", "accuracy", NULL),
                            &e);
    if (!(r.best_score >= 99))
        fail_msg("%g%% of the lines are copied", r.best_score);
    assert_int_equal(e.validations, 12);
    assert_int_equal(r.updates, 12 * 75);
    assert_int_equal(r.epochs, 12);
    /* The log holds one JSON object a line: start and end, a report at each multiple of 100, a validation an epoch. */
    FILE *log = fopen("copy.log.jsonl", "r");
    char line[LINE];
    int lines = 0;
    for (; fgets(line, sizeof line, log); lines++) {
        json_t *object = json_loads(line, 0, NULL);
        assert_true(json_is_object(object) && json_object_get(object, "update"));
        json_decref(object);
    }
    fclose(log);
    assert_int_equal(lines, 2 + 9 + 12);
    at_error error = {0};
    at_translator *t = at_translator_load("copy", &error);
    assert_non_null(t);
    json_t *history = json_loads(t->history, 0, NULL);
    assert_true(json_is_array(history) && json_array_size(history) >= 1 && json_array_size(history) <= 12);
    json_decref(history);
    at_translator_free(t);
}

static void cut_out(char *line, const char *from, const char *to)
{
    char *begin = strstr(line, from), *end = begin ? strstr(begin, to) : NULL;
    if (end)
        memmove(begin, end, strlen(end) + 1);
}

/* A line of a log without its times, and without what may differ between runs to the same bits: what a start says about
 * this run alone, and the lines of resumptions; false at the end. */
static bool next_report(FILE *log, char line[LINE])
{
    do {
        if (!fgets(line, LINE, log))
            return false;
    } while (strncmp(line, "{\"event\":\"resume\"", 17) == 0);
    cut_out(line, "\"seconds\":", strstr(line, "\"gradient_norm\":") ? "\"gradient_norm\":" : "\"time\":");
    cut_out(line, "\"time\":", "}");
    cut_out(line, "\"run\":", "\"parameters\":");
    return true;
}

static void same_logs(const char *one, const char *other)
{
    FILE *a = fopen(one, "r"), *b = fopen(other, "r");
    char line[LINE], of_other[LINE];
    while (next_report(a, line)) {
        assert_true(next_report(b, of_other));
        assert_string_equal(line, of_other);
    }
    assert_false(next_report(b, of_other));
    fclose(a);
    fclose(b);
}

/* Everything that a state must contain is in use: dropout, random numbers, moments, an average, early stopping,
 * accumulation, sums. */
#define ALL                                                                                                            \
    DATA, VALID, "dropout", "0.2", "accumulate", "2", "label-smoothing", "0.1", "valid-every", "7", "early-stopping",  \
        "50", "schedule", "inverse-sqrt", "warmup", "5", "updates", "26", "report-every", "4"

static void resumed_is_uninterrupted(void **state)
{
    (void)state;
    static const char *const normalisers[] = {"softmax", "hard"}, *const r_drop[] = {"2", "0"},
                             *const averages[][2] = {{"ema", "0.98"}, {"average", "3"}};
    for (int kind = 0; kind < 2; kind++) {
        listener whole = {0};
        at_threads_set(1);
        at_train_result r = run(training_of("whole", ALL, "normaliser", normalisers[kind], averages[kind][0],
                                            averages[kind][1], "r-drop", r_drop[kind], "overwrite", "true", NULL),
                                &whole);
        assert_int_equal(r.updates, 26);
        at_threads_set(2);
        /* Stopped after each of these updates, the last of an epoch (10) and one that validates (14) among them. */
        static const int64_t stops[] = {1, 3, 10, 11, 14, 20, 25};
        unlink("parts");
        unlink("parts.state");
        for (int i = 0; i <= 7; i++) {
            listener part = {.stop_at = i < 7 ? stops[i] : 0};
            r = run(training_of("parts", ALL, "normaliser", normalisers[kind], averages[kind][0], averages[kind][1],
                                "r-drop", r_drop[kind], "resume", "true", NULL),
                    &part);
            assert_int_equal(r.updates, i < 7 ? stops[i] : 26);
            assert_int_equal(r.interrupted, i < 7);
            assert_int_equal(part.notes, i == 0); /* the note that there is no state yet */
        }
        same_files("whole", "parts");
        same_files("whole.last", "parts.last");
        same_files("whole.state", "parts.state");
        same_logs("whole.log.jsonl", "parts.log.jsonl");
    }
    at_threads_set(0);
}

/* Killed without a chance to save: only the state of some updates ago is left. Here the states of a run are copied
 * and resumed from, as after a kill. */
static void killed_is_uninterrupted(void **state)
{
    (void)state;
    listener e = {0};
    run(training_of("alive", DATA, VALID, "dropout", "0.2", "epochs", "3", "save-every", "9", NULL), &e);
    listener early = {.stop_at = 31};
    run(training_of("dead", DATA, VALID, "dropout", "0.2", "epochs", "3", "save-every", "9", "keep-previous", "true",
                    NULL),
        &early);
    assert_int_equal(rename("dead.state.previous", "dead.state"), 0); /* of update 27, with the models of 31 */
    at_train_result r = run(
        training_of("dead", DATA, VALID, "dropout", "0.2", "epochs", "3", "save-every", "9", "resume", "true", NULL),
        &e);
    assert_int_equal(r.updates, 60);
    same_files("alive", "dead");
    same_files("alive.last", "dead.last");
    same_files("alive.state", "dead.state");
    same_logs("alive.log.jsonl", "dead.log.jsonl");
}

/* A state of an older version, which has no sums since the last report and does not count the lines of the log. */
static void old_states_resume(void **state)
{
    (void)state;
    at_error error = {0};
    listener e = {0};
    run(training_of("new", DATA, VALID, "dropout", "0.2", "updates", "30", "report-every", "9", NULL), &e);
    run(training_of("old", DATA, VALID, "dropout", "0.2", "updates", "23", "report-every", "9", NULL), &e);
    at_tensors *file = at_tensors_read("old.state", &error);
    at_array place = *at_tensors_get(file, "training.place"), numbers = *at_tensors_get(file, "training.numbers");
    place.dim[0] = 9;
    numbers.dim[0] = 4;
    assert_true(at_tensors_put(file, "training.place", &place, &error) &&
                at_tensors_put(file, "training.numbers", &numbers, &error) &&
                at_tensors_set_meta(file, "attend.checksum", NULL, &error) &&
                at_tensors_write(file, "old.state", &error));
    at_tensors_free(file);
    run(training_of("old", DATA, VALID, "dropout", "0.2", "updates", "30", "report-every", "9", "resume", "true", NULL),
        &e);
    same_files("new", "old");
    same_files("new.last", "old.last");
    /* Its log is continued: nothing is known about what to cut. */
    FILE *log = fopen("old.log.jsonl", "r");
    char line[LINE];
    int64_t updates[20] = {0};
    int lines = 0;
    for (; next_report(log, line) && lines < 20; lines++)
        sscanf(line, "{\"event\":\"%*[a-z]\",\"epoch\":%*d,\"update\":%ld", &updates[lines]);
    fclose(log);
    /* start, two reports, two validations around a report, end; report, report, validation, end */
    static const int64_t expected[] = {0, 9, 18, 20, 23, 23, 23, 27, 30, 30, 30};
    assert_int_equal(lines, 11);
    assert_memory_equal(updates, expected, sizeof expected);
}

/* Reaching a limit and raising it equals a run with the higher limit. */
static void limits_can_be_raised(void **state)
{
    (void)state;
    listener e = {0};
    run(training_of("far", DATA, "epochs", "2", NULL), &e);
    run(training_of("near", DATA, "updates", "13", NULL), &e);
    run(training_of("near", DATA, "epochs", "2", "resume", "true", NULL), &e);
    same_files("far", "near");
    assert_int_equal(access("far.last", F_OK), -1); /* without validation the output is the last */
}

static void other_settings_are_refused(void **state)
{
    (void)state;
    listener e = {0};
    fails(training_of("near", DATA, "epochs", "2", "hidden", "25", "resume", "true", NULL), &e,
          "cannot resume from 'near.state', which was written with `hidden` 24 and not with `hidden` 25; train as "
          "before, "
          "or from the start with `overwrite`");
}

static int temporaries(void)
{
    int count = 0;
    DIR *here = opendir(".");
    for (struct dirent *entry; (entry = readdir(here));)
        count += strncmp(entry->d_name, ".attend-", 8) == 0;
    closedir(here);
    return count;
}

/* A run killed while it saves leaves half-written files; the next one of the same output removes them, and no others.
 */
static void half_written_files_are_removed(void **state)
{
    (void)state;
    at_error error = {0};
    listener e = {0};
    const char *const paths[] = {"torn", "torn.last", "torn.state", "torn.previous.new", "torns", "torn.log"};
    pid_t killed = fork(); /* a process that ends without committing what it writes */
    if (killed == 0) {
        int opened = 0;
        while (opened < 6 && at_writer_open(paths[opened], &error))
            opened++;
        _exit(opened);
    }
    int status = 0;
    assert_int_equal(waitpid(killed, &status, 0), killed);
    assert_int_equal(WEXITSTATUS(status), 6);
    assert_int_equal(symlink("train", "torn.state.previous.new"), 0);
    assert_int_equal(temporaries(), 6);
    run(training_of("torn", DATA, "updates", "2", NULL), &e);
    assert_int_equal(temporaries(), 2);
    assert_true(access("torn.state.previous.new", F_OK) != 0 && access("train", F_OK) == 0);
    for (int i = 4; i < 6; i++) /* the next writer of each of the others */
        at_writer_cancel(at_writer_open(paths[i], &error));
    assert_int_equal(temporaries(), 0);
}

/* A refusal after locking leaves no new log behind. */
static void refused_resumption_leaves_no_log(void **state)
{
    (void)state;
    listener e = {0};
    run(training_of("alone", DATA, "updates", "2", NULL), &e);
    assert_int_equal(unlink("alone.log.jsonl"), 0);
    fails(training_of("alone", DATA, "updates", "3", "hidden", "25", "resume", "true", NULL), &e,
          "cannot resume from 'alone.state', which was written with `hidden` 24 and not with `hidden` 25; train as "
          "before, "
          "or from the start with `overwrite`");
    assert_true(access("alone.log.jsonl", F_OK) != 0);
    run(training_of("alone", DATA, "updates", "3", "resume", "true", NULL), &e);
    fails(training_of("alone", DATA, "updates", "3", "hidden", "25", "resume", "true", NULL), &e,
          "cannot resume from 'alone.state', which was written with `hidden` 24 and not with `hidden` 25; train as "
          "before, "
          "or from the start with `overwrite`");
    assert_true(access("alone.log.jsonl", F_OK) == 0);
}

typedef struct forced {
    double log_prob, tokens;
} forced;

static bool add_up(void *context, int64_t line, const at_result *result)
{
    (void)line;
    forced *sum = context;
    sum->log_prob += result->best[0].score;
    sum->tokens += (double)result->best[0].count + 1;
    return true;
}

/* The score of a validation is that of the model in the file, here an average, as computed by forced decoding. */
static void score_is_of_the_saved(const char *average, const char *value)
{
    listener e = {0};
    at_error error = {0};
    at_train_result r =
        run(training_of("mean", DATA, VALID, "epochs", "3", average, value, "overwrite", "true", NULL), &e);
    assert_int_equal(r.best_update, 60);
    at_translator *t = at_translator_load("mean", &error);
    at_line_list *list = at_line_list_read("valid", &error);
    assert_true(t && list);
    assert_int_equal(list->count, 60);
    forced sum = {0};
    assert_true(at_align(t, &(at_search_settings){0}, list->line, list->line, 60, add_up, &sum, &error));
    double loss = -sum.log_prob / sum.tokens;
    if (!(fabs(loss - r.best_score) < 1e-4 * loss))
        fail_msg("the loss was said to be %g and is %g", r.best_score, loss);
    at_line_list_free(list);
    at_translator_free(t);
}

static void score_is_of_the_saved_model(void **state)
{
    (void)state;
    score_is_of_the_saved("ema", "0.97");
    score_is_of_the_saved("average", "2");
}

static bool keep_line(void *context, int64_t line, const at_result *result)
{
    at_line *into = context;
    into[line] = (at_line){strdup(result->best[0].text), result->best[0].size};
    return true;
}

typedef struct course {
    double least, most;
} course;

static void follow(void *context, const at_train_news *news)
{
    course *c = context;
    if (news->what == AT_NEWS_VALID) {
        c->least = fmin(c->least, news->score);
        c->most = fmax(c->most, news->score);
    }
}

/* By decoding: the best score is the largest or the smallest, by the direction of the metric, and it is what attend
 * score computes for the translations of the saved model. */
static void decoded_scores(void **state)
{
    (void)state;
    static const char *const metrics[] = {"bleu", "chrf", "chrf++", "accuracy", "ter", "wer", "cer"};
    for (int m = 0; m < 7; m++) {
        course c = {INFINITY, -INFINITY};
        at_error error = {0};
        at_train_result r;
        at_training *training =
            training_of("decoded", DATA, VALID, "epochs", "3", "valid-metric", metrics[m], "overwrite", "true", NULL);
        if (!at_training_run(training, follow, &c, NULL, &r, &error))
            fail_msg("%s", error.text);
        at_training_free(training);
        assert_true(c.least < INFINITY && r.best_score == (m < 4 ? c.most : c.least));
        at_translator *t = at_translator_load("decoded", &error);
        at_line_list *list = at_line_list_read("valid", &error);
        assert_true(t && list);
        at_line written[60];
        double score;
        assert_true(at_translate(t, &(at_search_settings){0}, list->line, 60, keep_line, written, &error));
        assert_true(at_score_lines(metrics[m], written, list->line, 60, &score, &error));
        if (score != r.best_score)
            fail_msg("%s was said to be %g and is %g", metrics[m], r.best_score, score);
        for (int i = 0; i < 60; i++)
            free((char *)written[i].text);
        at_line_list_free(list);
        at_translator_free(t);
    }
}

/* Whether the file is a model that loads, whose parameters are finite therefore. */
static bool loads(const char *path)
{
    at_error error = {0};
    at_translator *t = at_translator_load(path, &error);
    at_translator_free(t);
    return t;
}

/* Ten gradients in a row that are not finite, or an update that makes parameters that are not, end the run. The model
 * of the last save stays, and the message names it; without one, none is written. */
#define MAY_HELP "; a smaller `learning-rate` or `clip-norm` may help"
static void nothing_finite(void **state)
{
    (void)state;
    listener e = {0};
    fails(training_of("wild", DATA, "optimiser", "sgd", "learning-rate", "1e30", "clip-norm", "0", NULL), &e,
          "the gradients of 10 updates in a row after update 1 were not finite, so training stops; no model was "
          "written" MAY_HELP);
    assert_int_equal(e.skipped, 10);
    fails(training_of("wild", DATA, "learning-rate", "1e38", "updates", "1", NULL), &e,
          "update 1 makes parameters that are not finite, so training stops; no model was written" MAY_HELP);
    assert_int_equal(access("wild", F_OK), -1);
    assert_int_equal(access("wild.state", F_OK), -1);
    fails(training_of("grown", DATA, "optimiser", "sgd", "learning-rate", "1e30", "clip-norm", "0", "save-every", "1",
                      NULL),
          &e,
          "the gradients of 10 updates in a row after update 1 were not finite, so training stops; 'grown' holds the "
          "last model saved, that of update 1" MAY_HELP);
    assert_true(loads("grown"));
    /* With validation it is the last model, as the best may be an earlier one. */
    fails(training_of("later", DATA, VALID, "learning-rate", "1e38", "warmup", "100", "save-every", "1", NULL), &e,
          "the gradients of 10 updates in a row after update 1 were not finite, so training stops; 'later.last' holds "
          "the last model saved, that of update 1" MAY_HELP);
    assert_true(loads("later") && loads("later.last"));
}

static void two_trainers(void **state)
{
    (void)state;
    listener e = {.rival = training_of("shared", DATA, "updates", "3", "overwrite", "true", NULL)};
    run(training_of("shared", DATA, "updates", "3", NULL), &e);
    assert_string_equal(e.rival_said.text,
                        "another training run is writing 'shared'; choose another output or wait for it");
    e.rival_said = (at_error){0};
    at_training *rival = e.rival;
    e.rival = NULL;
    run(rival, &e); /* the first run has released the lock */
}

static void full_disk(void **state)
{
    (void)state;
    listener e = {0}, full = {.full_at = 12};
    run(training_of("roomy", DATA, VALID, "updates", "30", "save-every", "5", NULL), &e);
    struct rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    at_training *training = training_of("tight", DATA, VALID, "updates", "30", "save-every", "5", NULL);
    at_error error = {0};
    at_train_result result;
    bool done = at_training_run(training, listen, &full, &full.stop, &result, &error);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_false(done);
    assert_string_equal(error.text, "cannot write 'tight.last': File too large");
    at_training_free(training);
    /* Nothing was lost: the state of update 10 can be resumed, once there is disk space again. */
    run(training_of("tight", DATA, VALID, "updates", "30", "save-every", "5", "resume", "true", NULL), &e);
    same_files("roomy", "tight");
    same_files("roomy.last", "tight.last");
    same_files("roomy.state", "tight.state");
}

/* Accumulating two batches equals one large batch: with 64 lines of one length, 2 x 32 equals 1 x 64. */
static void accumulation_is_one_batch(void **state)
{
    (void)state;
    listener e = {0};
    at_error error = {0};
    run(training_of("once", "source", "even", "target", "even", "updates", "1", "optimiser", "sgd", "learning-rate",
                    "1", "batch-size", "64", NULL),
        &e);
    run(training_of("twice", "source", "even", "target", "even", "updates", "1", "optimiser", "sgd", "learning-rate",
                    "1", "batch-size", "32", "accumulate", "2", NULL),
        &e);
    at_translator *a = at_translator_load("once", &error), *b = at_translator_load("twice", &error);
    assert_true(a && b);
    for (int64_t i = 0; i < at_params_count(a->model->params); i++)
        assert_true(fabs(at_params_values(a->model->params)[i] - at_params_values(b->model->params)[i]) < 1e-6);
    at_translator_free(a);
    at_translator_free(b);
}

/* With a learning rate too small to change a line, no validation is better than the first. */
static void stops_early(void **state)
{
    (void)state;
    for (int again = 0; again < 2; again++) { /* a resumed run knows that it has stopped */
        listener e = {0};
        at_train_result r =
            run(training_of("tired", DATA, VALID, "learning-rate", "1e-12", "valid-metric", "accuracy", "valid-every",
                            "2", "early-stopping", "3", "resume", again ? "true" : "false", NULL),
                &e);
        assert_true(r.stopped_early);
        assert_int_equal(r.updates, 8);
        assert_int_equal(r.best_update, 2);
        assert_int_equal(e.validations, again ? 0 : 4);
    }
}

/* Once the arena has seen the largest batch, an update allocates nothing. */
static void steady_updates_allocate_nothing(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        listener e = {0};
        at_threads_set(threads);
        run(training_of("steady", DATA, "dropout", "0.1", "accumulate", "2", "updates", "38", "batch-size", "10",
                        "clip-norm", "0.5", "ema", "0.9", "overwrite", "true", NULL),
            &e);
#ifndef __SANITIZE_ADDRESS__
        if (e.steady < 15)
            fail_msg("only the last %ld updates allocate nothing", e.steady);
#endif
    }
    at_threads_set(0);
    FILE *links = fopen("links", "w");
    for (int i = 0; i < 400; i++)
        fputs("0-0 1-1\n", links);
    fclose(links);
    listener e = {0}; /* guided attention uses the plain path, which must not allocate either */
    run(training_of("steady", DATA, "guided-alignment", "links", "updates", "38", "batch-size", "10", "overwrite",
                    "true", NULL),
        &e);
#ifndef __SANITIZE_ADDRESS__
    if (e.steady < 15)
        fail_msg("only the last %ld guided updates allocate nothing", e.steady);
#endif
}

static void refused(const char *name, const char *value, const char *message)
{
    at_error error = {0};
    at_training *training = at_training_new(&error);
    assert_false(at_training_set(training, name, value, &error));
    assert_string_equal(error.text, message);
    assert_int_equal(error.code, AT_USAGE);
    at_training_free(training);
}

static void refusals(void **state)
{
    (void)state;
    refused("lerning-rate", "1", "no setting 'lerning-rate'; did you mean 'learning-rate'?");
    refused("learning-rate", "fast", "`learning-rate` takes a number above 0, not 'fast'");
    refused("batch-size", "0", "`batch-size` takes a whole number, 1 or more, not '0'");
    refused("optimiser", "adams", "`optimiser` takes adam, adamw, adadelta or sgd, not 'adams'");
    refused("columns", "0", "`columns` takes two numbers from 1, such as 1,2, or one for a language model, not '0'");
    refused("minutes", "0", "`minutes` takes a number above 0, not '0'");
    refused("source-vocab", "wrod", "no vocabulary 'wrod'; did you mean 'word'?");
    refused("cell", "gre", "`cell` takes rnn, gru or lstm, not 'gre'");
    refused("hidden", "x", "`hidden` takes a whole number from 1 to 1048576, not 'x'");
    listener e = {0};
    fails(training_of("no", NULL), &e, "training needs `source` FILE and `target` FILE, or `tsv` FILE");
    fails(training_of("no", "source", "train", NULL), &e, "`source` needs `target` beside it");
    fails(training_of("no", DATA, "tsv", "train", NULL), &e,
          "`tsv` holds both sides; `source` and `target` must not be given");
    fails(training_of("no", DATA, "early-stopping", "3", NULL), &e,
          "`early-stopping` needs `valid-source` and `valid-target`, or `valid-tsv`");
    fails(training_of("no", DATA, "average", "3", NULL), &e,
          "`average` needs `valid-source` and `valid-target`, or `valid-tsv`");
    fails(training_of("no", DATA, VALID, "average", "3", "ema", "0.9", NULL), &e,
          "`average` and `ema` are two means of the parameters; give one of them");
    refused("average", "1001", "`average` takes a whole number from 1 to 1000, not '1001'");
    fails(training_of("no", DATA, "batch-tokens", "30", NULL), &e,
          "`batch-size` and `batch-tokens` both measure a batch; give one of them");
    refused("valid-metric", "accurracy", "no validation metric 'accurracy'; did you mean 'accuracy'?");
    refused("valid-metric", "meteor",
            "no validation metric 'meteor'; there are loss, perplexity, token-accuracy, accuracy, bleu, cer, chrf, "
            "chrf++, ter and wer");
    refused("valid-metric", "aer", "no validation metric 'aer'; did you mean 'cer', 'ter' or 'wer'?");
    fails(training_of("no", DATA, "heads", "3", NULL), &e,
          "`heads` is 3 and must divide 16, the size of what attention compares");
    fails(training_of("train", DATA, NULL), &e,
          "`output` would overwrite 'train', which `source` reads; choose another file");
    fails(training_of("no", DATA, "entropy", "1", NULL), &e,
          "`entropy` is for `normaliser` hard with `hard-training` reinforce only");
    fails(training_of("no", DATA, "schedule", "cosine", NULL), &e,
          "the schedule 'cosine' needs `updates`, which must be more than the 0 of `warmup`");
    fails(training_of("no", "source", "missing", "target", "train", NULL), &e,
          "cannot read 'missing': No such file or directory");
    fails(training_of("nowhere/no", DATA, NULL), &e, "cannot write 'nowhere/no': No such file or directory");
    assert_int_equal(mkdir("there", 0777), 0);
    fails(training_of("there", DATA, NULL), &e, "cannot write 'there': it is a directory, not a file");
    assert_int_equal(access("no", F_OK), -1);
    assert_int_equal(access("no.log.jsonl", F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learns_to_copy),
        cmocka_unit_test(resumed_is_uninterrupted),
        cmocka_unit_test(killed_is_uninterrupted),
        cmocka_unit_test(old_states_resume),
        cmocka_unit_test(limits_can_be_raised),
        cmocka_unit_test(other_settings_are_refused),
        cmocka_unit_test(half_written_files_are_removed),
        cmocka_unit_test(refused_resumption_leaves_no_log),
        cmocka_unit_test(score_is_of_the_saved_model),
        cmocka_unit_test(decoded_scores),
        cmocka_unit_test(nothing_finite),
        cmocka_unit_test(two_trainers),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(accumulation_is_one_batch),
        cmocka_unit_test(stops_early),
        cmocka_unit_test(steady_updates_allocate_nothing),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, enter, leave_training);
}
