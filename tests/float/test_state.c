/* Training states: those with numbers that no run writes are refused (a state from before checksums is checked number by
 * number), and a run with other kernels than those of the state says so. */
#include <math.h>
#include <string.h>

#include "kernels/rows.h"
#include "store/model_file.h"
#include "training_of.h"

static at_training *again(const char *output)
{
    return training_of(output, DATA, VALID, "updates", "50", "valid-every", "5", "average", "2", "resume", "true",
                       NULL);
}

static int enter(void **state)
{
    (void)state;
    at_error error = {0};
    at_train_result result;
    if (!enter_training())
        return -1;
    at_training *training = training_of("m", DATA, VALID, "updates", "15", "valid-every", "5", "average", "2", NULL);
    const bool done = at_training_run(training, NULL, NULL, NULL, &result, &error);
    at_training_free(training);
    return done ? 0 : -1;
}

/* Resumes from bad.state. */
static void resumes_not(const char *message)
{
    at_error error = {0};
    at_train_result result;
    at_training *training = again("bad");
    assert_false(at_training_run(training, NULL, NULL, NULL, &result, &error));
    at_training_free(training);
    assert_string_equal(error.text, message);
    assert_int_equal(error.code, AT_FORMAT);
}

/* Resumes from the state of "m" with other bytes for the number with that index, and without its checksum. */
static void refused(const char *name, int index, const void *number, const char *message)
{
    at_error writing = {0};
    at_tensors *file = at_tensors_read("m.state", &writing);
    memcpy((char *)at_tensors_get(file, name)->data + 8 * index, number, 8); /* 64 bits all of them */
    at_tensors_set_meta(file, "attend.checksum", NULL, &writing);
    assert_true(at_tensors_write(file, "bad.state", &writing));
    at_tensors_free(file);
    resumes_not(message);
}

static void whole_number(const char *name, int index, int64_t number, const char *message)
{
    refused(name, index, &number, message);
}

/* The order is that of at_progress. */
static void counts_out_of_range(void **state)
{
    (void)state;
    static const char *const what[] = {"epoch",
                                       "number of batches",
                                       "number of sentences",
                                       "number of skipped updates",
                                       "number of validations without a better score",
                                       "update of the best score",
                                       "update of the last validation"};
    static const char *const range[] = {"1 to 9007199254740992",
                                        "0 to 9007199254740992",
                                        "0 to 9007199254740992",
                                        "0 to 9",
                                        "0 to 9007199254740992",
                                        "0 to 15",
                                        "0 to 15"};
    char message[300];
    for (int i = 0; i < 7; i++) {
        const int64_t wrong[] = {INT64_MAX, INT64_MIN, -1};
        for (int k = 0; k < 3; k++) {
            snprintf(message, sizeof message, "'bad.state' is damaged: its %s is %lld, and must be from %s", what[i],
                     (long long)wrong[k], range[i]);
            whole_number("training.place", i, wrong[k], message);
        }
    }
    whole_number("training.place", 0, 0,
                 "'bad.state' is damaged: its epoch is 0, and must be from 1 to 9007199254740992");
    whole_number("training.place", 1, 21,
                 "cannot resume from 'bad.state': epoch 1 has 20 batches, so there is no batch 21");
    whole_number("training.place", 3, 10,
                 "'bad.state' is damaged: its number of skipped updates is 10, and must be from 0 to 9");
    whole_number("training.place", 6, 16,
                 "'bad.state' is damaged: its update of the last validation is 16, and must be from 0 to 15");
    whole_number("training.steps", 0, INT64_MAX,
                 "'bad.state' is damaged: its number of updates is 9223372036854775807, and must be from 0 to "
                 "9007199254740992");
    whole_number("training.steps", 0, -1, "the training state lacks the number of updates, 'training.steps'");
    whole_number("training.validated_at", 0, 16, /* 10 and 15 are right */
                 "'training.validated_at' of the training state are not updates in order, up to 15");
    whole_number("training.validated_at", 1, 16,
                 "'training.validated_at' of the training state are not updates in order, up to 15");
}

static void numbers_out_of_range(void **state)
{
    (void)state;
    static const double nan_ = NAN, infinity_ = INFINITY, minus = -1;
    refused("training.numbers", 0, &nan_, "'bad.state' is damaged: its best score, that of update 15, is not a number");
    refused("training.numbers", 1, &infinity_, "'bad.state' is damaged: its sums of losses and tokens hold inf");
    refused("training.numbers", 3, &nan_, "'bad.state' is damaged: its sums of losses and tokens hold nan");
    refused("training.numbers", 4, &nan_, "'bad.state' is damaged: its sums of losses and tokens hold nan");
    refused("training.numbers", 5, &minus, "'bad.state' is damaged: its numbers of tokens are 0 and -1");
}

/* The state of a run that was killed before its first save says what it is a state of, and little more. */
static void beginning_without_a_run(void **state)
{
    (void)state;
    at_error error = {0};
    int64_t none = 0;
    const at_array steps = {.dtype = AT_I64, .data = &none};
    at_tensors *file = at_tensors_new();
    assert_true(at_file_mark(file, "training state", &error) && at_tensors_put(file, "training.steps", &steps, &error) &&
                at_tensors_write(file, "bad.state", &error));
    at_tensors_free(file);
    resumes_not("'bad.state' does not say what it is a state of; train from the start with `overwrite`");
}

/* Models may have fewer bits, but what is being trained may not. The memory of such an array is half as large. */
static void parameters_in_fewer_bits(void **state)
{
    (void)state;
    at_error error = {0};
    at_tensors *file = at_tensors_read("m.state", &error);
    at_array narrow = *at_tensors_get(file, "target.E");
    narrow.dtype = AT_F16;
    assert_true(at_tensors_put(file, "target.E", &narrow, &error));
    at_tensors_set_meta(file, "attend.checksum", NULL, &error);
    assert_true(at_tensors_write(file, "bad.state", &error));
    at_tensors_free(file);
    resumes_not("the parameter 'target.E' of 'bad.state' is float16, and must be float32");
}

/* ---- Kernels -------------------------------------------------------------------------------------------------- */

static void keep_note(void *context, const at_train_news *news)
{
    if (news->what == AT_NEWS_NOTE)
        snprintf(context, 400, "%s", news->text);
}

/* Resumes "other" with these kernels up to an update; the last note. */
static const char *resumed_with(const char *kernels, const char *updates)
{
    static char note[400];
    at_error error = {0};
    at_train_result result;
    assert_true(at_kernels_choose(kernels));
    note[0] = 0;
    at_training *training = training_of("other", DATA, "updates", updates, "resume", "true", NULL);
    if (!at_training_run(training, keep_note, note, NULL, &result, &error))
        fail_msg("%s", error.text);
    at_training_free(training);
    at_kernels_choose(NULL);
    return note;
}

static void other_kernels_are_named(void **state)
{
    (void)state;
    if (!at_kernels_choose(AT_FAST_KERNELS) || strcmp(AT_FAST_KERNELS, "plain") == 0)
        skip(); /* this processor has one set only */
    assert_string_equal(resumed_with("plain", "3"),
                        "'other.state' does not exist yet, so training starts from the beginning");
    assert_string_equal(resumed_with("plain", "6"), "");
    assert_string_equal(
        resumed_with(AT_FAST_KERNELS, "9"),
        "'other.state' was written with the kernels 'plain', and this run uses '" AT_FAST_KERNELS
        "': it continues, but not with the bits of an uninterrupted run; ATTEND_ISA=plain selects those "
        "kernels, where the processor has them");
    assert_string_equal(resumed_with(AT_FAST_KERNELS, "12"), "");
    /* A state from before kernels were named. */
    at_error error = {0};
    at_tensors *file = at_tensors_read("other.state", &error);
    assert_string_equal(at_tensors_meta(file, "kernels"), AT_FAST_KERNELS);
    at_tensors_set_meta(file, "kernels", NULL, &error);
    at_tensors_set_meta(file, "attend.checksum", NULL, &error);
    assert_true(at_tensors_write(file, "other.state", &error));
    at_tensors_free(file);
    assert_string_equal(resumed_with("plain", "15"), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts_out_of_range), cmocka_unit_test(numbers_out_of_range),
                                       cmocka_unit_test(beginning_without_a_run),
        cmocka_unit_test(parameters_in_fewer_bits),
                                       cmocka_unit_test(other_kernels_are_named)};
    return cmocka_run_group_tests(tests, enter, leave_training);
}
