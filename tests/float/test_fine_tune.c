/* Fine-tuning: a run starts from the bits of a model, frozen parameters keep theirs, and it resumes exactly; numbered
 * checkpoints. */
#include "training_of.h"

#include <string.h>
#include <sys/stat.h>

#include "models/kinds.h"
#include "same_files.h"

static int enter(void **state)
{
    (void)state;
    return enter_training() ? 0 : -1;
}

static void run(at_training *training)
{
    at_error error = {0};
    at_train_result result;
    if (!at_training_run(training, NULL, NULL, NULL, &result, &error))
        fail_msg("%s", error.text);
    at_training_free(training);
}

static at_translator *load(const char *path)
{
    at_error error = {0};
    at_translator *translator = at_translator_load(path, &error);
    assert_string_equal(error.text, "");
    return translator;
}

/* Whether parameter `index` has the same bits in both. */
static bool same_bits(const at_translator *a, const at_translator *b, int index)
{
    const size_t size = (size_t)at_shape_count(at_params_shape(a->model->params, index)) * sizeof(at_real);
    return memcmp(at_params_value(a->model->params, index), at_params_value(b->model->params, index), size) == 0;
}

/* ---- Starting from a model ------------------------------------------------------------------------------------ */

static void make_base(void)
{
    if (access("base", F_OK) != 0)
        run(training_of("base", DATA, "updates", "9", NULL));
}

/* Every optimiser and both averages: the encoder keeps its bits, the rest is trained; with any number of threads. */
static void frozen_bits_stay(void **state)
{
    (void)state;
    static const char *const cases[][3] = {{"adam", "ema", "0.9"},
                                           {"adamw", "ema", "0.5"},
                                           {"adamw", "average", "3"},
                                           {"adadelta", "ema", "0.9"},
                                           {"sgd", "average", "3"}};
    make_base();
    at_translator *base = load("base");
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (int threads = 1; threads <= 3; threads += 2) {
            at_threads_set(threads);
            run(training_of(threads == 1 ? "fine" : "fine3", DATA, VALID, "init", "base", "freeze",
                            "encoder.*,target.E,output", "optimiser", cases[c][0], cases[c][1], cases[c][2],
                            "valid-every", "2", "updates", "7", "overwrite", "true", NULL));
        }
        at_threads_set(1);
        same_files("fine", "fine3");
        same_files("fine.state", "fine3.state");
        at_translator *fine = load("fine.last");
        at_params *params = fine->model->params;
        for (int i = 0; i < at_params_number(params); i++) {
            const char *name = at_params_name(params, i);
            const bool frozen =
                strncmp(name, "encoder.", 8) == 0 || strcmp(name, "target.E") == 0 || strncmp(name, "output.", 7) == 0;
            if (same_bits(base, fine, i) != frozen)
                fail_msg("%s with %s: %s", cases[c][0], cases[c][1], name);
        }
        at_translator_free(fine);
    }
    at_translator_free(base);
}

/* An array with a picture of 6 x 6 pixels for every line of the file `train`. */
static void write_pictures(const char *path)
{
    at_error error = {0};
    at_line_list *lines = at_line_list_read("train", &error);
    assert_non_null(lines);
    at_array *array = at_array_new(AT_U8, 3, (const int64_t[]){lines->count, 6, 6}, &error);
    assert_non_null(array);
    for (int64_t i = 0; i < at_array_count(array); i++)
        ((unsigned char *)array->data)[i] = (unsigned char)(i * 37 % 251);
    assert_true(at_npy_write(path, array, &error));
    at_array_free(array);
    at_line_list_free(lines);
}

/* The words of the model, and small sizes that every model can have. */
static at_training *small(const at_model_kind *kind, const char *output)
{
    at_error error = {0};
    at_training *training = at_training_new(&error);
    static const char *const sizes[][2] = {{"hidden", "8"}, {"embedding", "8"}, {"attention", "8"}, {"maxout", "8"},
                                           {"ffn", "8"},    {"heads", "2"},     {"dropout", "0"},   {"layers", "1"}};
    at_training_set(training, "model", kind->name, &error);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (at_model_uses(kind, sizes[i][0]))
            at_training_set(training, sizes[i][0], sizes[i][1], &error);
    if (kind->has_pictures)
        write_pictures("pictures.npy");
    if (kind->has_source)
        at_training_set(training, "source", kind->has_pictures ? "pictures.npy" : "train", &error);
    at_training_set(training, "target", "train", &error);
    at_training_set(training, "output", output, &error);
    at_training_set(training, "optimiser", "sgd", &error);
    at_training_set(training, "clip-norm", "0", &error);
    at_training_set(training, "schedule", "constant", &error);
    at_training_set(training, "learning-rate", "0.1", &error);
    at_training_set(training, "updates", "1", &error);
    at_training_set(training, "overwrite", "true", &error);
    assert_string_equal(error.text, "");
    return training;
}

/* Every parameter of every model, frozen with a third of the others: it stays, and the gradients of the rest are those
 * of a run without frozen parameters, bit for bit. */
static void every_parameter_can_be_frozen(void **state)
{
    (void)state;
    for (int k = 0; at_model_kind_at(k); k++) {
        const at_model_kind *kind = at_model_kind_at(k);
        at_error error = {0};
        run(small(kind, "start"));
        at_training *free_run = small(kind, "free");
        assert_true(at_training_set(free_run, "init", "start", &error));
        run(free_run);
        at_translator *start = load("start"), *unfrozen = load("free");
        for (int third = 0; third < 3; third++) {
            char names[4000] = "";
            for (int i = third; i < at_params_number(start->model->params); i += 3)
                snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", names[0] ? "," : "",
                         at_params_name(start->model->params, i));
            at_training *training = small(kind, "part");
            assert_true(at_training_set(training, "init", "start", &error));
            assert_true(at_training_set(training, "freeze", names, &error));
            run(training);
            at_translator *part = load("part");
            for (int i = 0; i < at_params_number(start->model->params); i++)
                if (!same_bits(part, i % 3 == third ? start : unfrozen, i))
                    fail_msg("%s, %s, frozen %d", kind->name, at_params_name(start->model->params, i), i % 3 == third);
            at_translator_free(part);
        }
        at_translator_free(start);
        at_translator_free(unfrozen);
    }
}

/* In parts of 3, 4 and 5 updates, without the model it started from after the first. */
static void resumes_exactly(void **state)
{
    (void)state;
    static const char *const ends[] = {"3", "7", "12"};
    make_base();
    run(training_of("whole", DATA, VALID, "init", "base", "freeze", "decoder", "updates", "12", "save-every", "2",
                    "keep", "2", "dropout", "0.2", NULL));
    for (int i = 0; i < 3; i++) {
        run(training_of("parts", DATA, VALID, "init", "base", "freeze", "decoder", "updates", ends[i], "save-every",
                        "2", "keep", "2", "dropout", "0.2", "resume", "true", NULL));
        if (i == 0)
            assert_int_equal(rename("base", "moved"), 0);
    }
    assert_int_equal(rename("moved", "base"), 0);
    same_files("whole", "parts");
    same_files("whole.last", "parts.last");
    same_files("whole.state", "parts.state");
    same_files("whole.000010", "parts.000010");
    same_files("whole.000012", "parts.000012");
}

/* ---- Numbered checkpoints ------------------------------------------------------------------------------------- */

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static void write_file(const char *path)
{
    FILE *file = fopen(path, "w");
    fputs("mine", file);
    fclose(file);
}

static void the_last_are_kept(void **state)
{
    (void)state;
    at_error error = {0};
    run(training_of("kept", DATA, "updates", "9", "save-every", "2", "keep", "3", NULL));
    assert_false(exists("kept.000002"));
    assert_true(exists("kept.000004") && exists("kept.000006") && exists("kept.000008"));
    assert_false(exists("kept.000009")); /* the end of a run is no regular save */
    const char *const foreign[] = {"kept.000002", "kept.0006", "kept.000005", "kept.000004x", "kept.9999999"};
    for (int i = 0; i < 5; i++)
        write_file(foreign[i]);
    run(training_of("kept", DATA, "updates", "15", "save-every", "2", "keep", "2", "resume", "true", NULL));
    assert_false(exists("kept.000004") || exists("kept.000006") || exists("kept.000008") || exists("kept.000010"));
    assert_true(exists("kept.000012") && exists("kept.000014"));
    for (int i = 0; i < 5; i++)
        if (!exists(foreign[i]))
            fail_msg("%s was removed", foreign[i]);
    const char *const both[] = {"kept.000012", "kept.000014"};
    assert_true(at_models_average(both, 2, "mean", &error));
    /* without `keep` they stay, and the state goes on listing them */
    run(training_of("kept", DATA, "updates", "16", "save-every", "2", "resume", "true", NULL));
    assert_true(exists("kept.000012") && exists("kept.000014") && !exists("kept.000016"));
    run(training_of("kept", DATA, "updates", "18", "save-every", "2", "keep", "2", "resume", "true", NULL));
    assert_true(!exists("kept.000012") && exists("kept.000014") && exists("kept.000018"));
}

static void those_of_others_are_not_replaced(void **state)
{
    (void)state;
    at_error error = {0};
    at_train_result result;
    write_file("fresh.000004");
    at_training *training = training_of("fresh", DATA, "updates", "4", "save-every", "2", "keep", "1", NULL);
    assert_false(at_training_run(training, NULL, NULL, NULL, &result, &error));
    assert_string_equal(error.text, "'fresh.000004' exists, a checkpoint of another run: `overwrite` lets `keep` "
                                    "replace such files; or choose another `output`");
    at_training_free(training);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(frozen_bits_stay), cmocka_unit_test(resumes_exactly),
                                       cmocka_unit_test(every_parameter_can_be_frozen),
                                       cmocka_unit_test(the_last_are_kept),
                                       cmocka_unit_test(those_of_others_are_not_replaced)};
    return cmocka_run_group_tests(tests, enter, leave_training);
}
