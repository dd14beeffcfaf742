/* The defaults of each model: one list per model, what is given wins, a resumed run keeps those of its state, and a run
 * that learns nothing is told. */
#include "models/kinds.h"
#include "same_files.h"
#include "train/train_internal.h"
#include "training_of.h"

#include <string.h>

/* ---- The lists ------------------------------------------------------------------------------------------------ */

static void has_default(const char *model, const char *name, const char *value)
{
    char text[64] = "?";
    if (!at_training_default(model, name, text, sizeof text) || strcmp(text, value) != 0)
        fail_msg("`%s` of %s is '%s' and not '%s' by default", name, model, text, value);
}

static void defaults_are_of_the_model(void **state)
{
    (void)state;
    char text[64];
    has_default("transformer", "norm", "pre");
    has_default("transformer-lm", "norm", "pre");
    has_default("transformer", "schedule", "inverse-sqrt");
    has_default("transformer", "heads", "4");
    has_default("bahdanau", "heads", "1");
    has_default("bahdanau", "schedule", "constant");
    has_default("bahdanau", "warmup", "");
    has_default("luong", "cell", "lstm");
    has_default("rnn-plain", "dropout", "0.5");
    assert_false(at_training_default("rnn-plain", "heads", text, sizeof text));
    assert_false(at_training_default("rnn-plain", "reinforce", text, sizeof text));
    assert_false(at_training_default("rnn-encdec", "guided-weight", text, sizeof text));
    assert_false(at_training_default("transformer-lm", "source", text, sizeof text));
    assert_false(at_training_default("transformer-lm", "joint-vocab", text, sizeof text));
    assert_false(at_training_default("bahdanau", "layers", text, sizeof text));
    assert_false(at_training_default("no-such", "heads", text, sizeof text));
    assert_false(at_training_default("bahdanau", "no-such", text, sizeof text));
}

/* A name that is misspelt in a list would be ignored. */
static void every_name_in_a_list_is_a_setting(void **state)
{
    (void)state;
    for (int k = 0; at_model_kind_at(k); k++) {
        char list[400], *rest = list, *word;
        snprintf(list, sizeof list, "%s", at_model_kind_at(k)->defaults);
        while ((word = strsep(&rest, " "))) {
            const char *name = strsep(&word, "=");
            const int index = at_setting_find(at_training_setting, name);
            at_train_settings into = {0};
            at_error error = {0};
            char text[64];
            if (index < 0 || !at_training_default(at_model_kind_at(k)->name, name, text, sizeof text))
                fail_msg("%s has a default of `%s`, which it does not use", at_model_kind_at(k)->name, name);
            const at_setting *row = at_training_setting(index);
            assert_true(row->type != AT_SETTING_TEXT); /* which would point into the list */
            if (!at_setting_parse(row, NULL, word, at_training_fields(&into, index), &error))
                fail_msg("%s: %s", at_model_kind_at(k)->name, error.text);
        }
    }
}

/* ---- What is given wins --------------------------------------------------------------------------------------- */

#define TINY "model transformer layers 1 hidden 8 ffn 8 heads 2 source train target train output model "

static void set_words(at_training *training, const char *words)
{
    at_error error = {0};
    char copy[400], *rest = copy, *name;
    snprintf(copy, sizeof copy, "%s", words);
    while ((name = strsep(&rest, " ")) && *name)
        if (!at_training_set(training, name, strsep(&rest, " "), &error))
            fail_msg("%s", error.text);
}

enum { MESSAGE = sizeof(((at_error *)0)->text) };

/* Runs with these settings; false with the error's message in `said`. */
static bool run(const char *words, const char *more, char said[MESSAGE])
{
    at_error error = {0};
    at_train_result result;
    at_training *training = at_training_new(&error);
    set_words(training, words);
    set_words(training, more);
    const bool done = at_training_run(training, NULL, NULL, NULL, &result, &error);
    at_training_free(training);
    snprintf(said, MESSAGE, "%s", error.text);
    return done;
}

/* The state of a run of one update has these lines. */
static void stores(const char *more, const char *const *lines)
{
    char said[MESSAGE];
    at_error error = {0};
    if (!run(TINY "updates 1 overwrite true", more, said))
        fail_msg("%s: %s", more, said);
    at_tensors *file = at_tensors_read("model.state", &error);
    const char *text = at_tensors_meta(file, "run");
    for (; *lines; lines++)
        if (!strstr(text, *lines))
            fail_msg("with '%s' the state lacks '%s':\n%s", more, *lines, text);
    at_tensors_free(file);
}
#define STORES(more, ...) stores(more, (const char *const[]){__VA_ARGS__, NULL})

static void what_is_given_wins(void **state)
{
    (void)state;
    STORES("", "--norm pre\n", "--learning-rate 0.002", " --schedule inverse-sqrt --warmup 200\n",
           "--label-smoothing 0.1", "--dropout 0.1\n");
    STORES("norm post label-smoothing 0 dropout 0", "--norm post\n", "--label-smoothing 0\n", "--dropout 0\n");
    STORES("warmup 7", "--learning-rate 0.002", "--schedule inverse-sqrt --warmup 7\n");
    STORES("learning-rate 0.5", "--learning-rate 0.5 --schedule inverse-sqrt --warmup 200\n");
    /* learning rate and warm-up are those of the model's own schedule and optimiser */
    STORES("schedule constant", "--learning-rate 0.001", "--schedule constant --warmup 0\n");
    STORES("schedule noam", "--learning-rate 1 --schedule noam --warmup 4000\n");
    STORES("schedule inverse-sqrt", "--learning-rate 0.002", "--schedule inverse-sqrt --warmup 200\n");
    STORES("optimiser sgd", "--learning-rate 0.1", "--schedule constant --warmup 0\n");
    STORES("optimiser sgd schedule inverse-sqrt warmup 3", "--schedule inverse-sqrt --warmup 3\n");
}

/* ---- A resumed run keeps its settings ------------------------------------------------------------------------- */

/* The defaults before each model had its own. */
#define OLD "norm post schedule constant learning-rate 0.001 warmup 0 label-smoothing 0 batch-tokens 30 "

static void a_resumed_run_keeps_its_settings(void **state)
{
    (void)state;
    char said[MESSAGE];
    assert_true(run(TINY OLD "updates 4 overwrite true", "", said));
    assert_int_equal(rename("model", "whole"), 0);
    assert_true(run(TINY OLD "updates 2 overwrite true", "", said));
    if (!run(TINY "updates 4 resume true", "", said))
        fail_msg("%s", said);
    same_files("whole", "model");
    /* not even the model needs to be named */
    if (!run("source train target train output model updates 5 resume true", "", said))
        fail_msg("%s", said);
    /* what is given is not ignored */
    assert_false(run(TINY "updates 6 resume true", "norm pre", said));
    assert_non_null(strstr(said, "`norm` post and not with `norm` pre"));
    assert_false(run(TINY "updates 6 resume true", "batch-size 20", said));
    assert_non_null(strstr(said, "cannot resume"));
}

/* ---- A run that learns nothing -------------------------------------------------------------------------------- */

typedef struct notes {
    int count;
    char last[400];
} notes;

static void listen(void *context, const at_train_news *news)
{
    notes *n = context;
    if (news->what != AT_NEWS_NOTE)
        return;
    n->count++;
    snprintf(n->last, sizeof n->last, "%s", news->text);
}

static notes notes_of(const char *words)
{
    notes n = {0};
    at_error error = {0};
    at_train_result result;
    at_training *training = training_of("watched", DATA, "overwrite", "true", NULL);
    set_words(training, words);
    if (!at_training_run(training, listen, &n, NULL, &result, &error))
        fail_msg("%s", error.text);
    at_training_free(training);
    return n;
}

static void a_run_that_learns_nothing_is_told(void **state)
{
    (void)state;
    assert_int_equal(notes_of("updates 160").count, 0); /* it learns */
    assert_int_equal(notes_of("updates 149 learning-rate 1e-9").count, 0);
    assert_int_equal(notes_of("updates 160 warmup 120 learning-rate 1e-9").count, 0);
    const notes n = notes_of("updates 260 learning-rate 1e-9");
    assert_int_equal(n.count, 1);
    assert_non_null(strstr(n.last, "the model has not learned more than the frequency of the target units"));
    assert_non_null(strstr(n.last, "updates 101 to 150"));
    assert_non_null(strstr(n.last, "a lower `learning-rate` or more `warmup` may help"));
    assert_int_equal(notes_of("updates 160 learning-rate 1e-9 label-smoothing 0.2").count, 1);
}

static int enter(void **state)
{
    (void)state;
    return enter_training() ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_of_the_model),
        cmocka_unit_test(every_name_in_a_list_is_a_setting),
        cmocka_unit_test(what_is_given_wins),
        cmocka_unit_test(a_resumed_run_keeps_its_settings),
        cmocka_unit_test(a_run_that_learns_nothing_is_told),
    };
    return cmocka_run_group_tests(tests, enter, leave_training);
}
