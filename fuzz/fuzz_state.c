/* Any bytes as the state of a training: an error message, or a run that continues from it for an update or two, ends, and
 * leaves a state that a further run accepts. */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

#include "io/parse.h"

/* The two runs of fuzz/make_seeds.sh that the states among the seeds come from. */
typedef struct setting {
    const char *name, *value;
} setting;
static const setting runs[][20] = {
    {{"model", "luong"},
     {"hidden", "2"},
     {"embedding", "2"},
     {"average", "2"},
     {"valid-every", "1"},
     {"label-smoothing", "0.1"},
     {NULL, NULL}},
    {{"model", "transformer"},
     {"layers", "1"},
     {"heads", "1"},
     {"hidden", "2"},
     {"ffn", "2"},
     {"ema", "0.9"},
     {"accumulate", "2"},
     {"schedule", "cosine"},
     {"warmup", "1"},
     {NULL, NULL}},
};
static const setting all_runs[] = {
    {"batch-size", "1"}, {"max-length", "4"}, {"updates", "2"}, {"resume", "true"}, {NULL, NULL}};

static char output[100], state[120];

static void set(at_training *training, const setting *settings, at_error *error)
{
    for (; settings->name; settings++)
        at_training_set(training, settings->name, settings->value, error);
}

static volatile int stop;
static int updates;

static void count(void *context, const at_train_news *news)
{
    (void)context;
    updates += news->what == AT_NEWS_TICK || news->what == AT_NEWS_SKIPPED;
    stop = updates > 20;
}

/* The settings of a run are the same for all inputs, so they are made once. */
static at_training *make_training(int which)
{
    static const at_line source[] = {{"a b", 3}, {"b", 1}}, target[] = {{"b", 1}, {"a", 1}};
    at_error error = {0};
    at_training *training = at_training_new(&error);
    set(training, all_runs, &error);
    set(training, runs[which], &error);
    at_training_set(training, "output", output, &error);
    at_training_data(training, AT_TRAIN, source, target, 2, &error);
    if (which == 0)
        at_training_data(training, AT_VALID, source, target, 1, &error);
    EXPECT(error.code == AT_OK);
    return training;
}

static bool run(int which, at_error *error)
{
    static at_training *training[2];
    at_train_result result;
    if (!training[which])
        training[which] = make_training(which);
    updates = stop = 0;
    const bool done = at_training_run(training[which], count, NULL, &stop, &result, error);
    EXPECT(!stop); /* no state asks for more than the two updates of the run */
    return done;
}

/* Most inputs are no file of tensors. A run reads that before anything else of its state, and ends in the same way for all
 * of them, so that only the first and one in sixteen of the others gets a run, which takes ten times as long. */
static bool is_worth_a_run(const uint8_t *bytes, size_t size)
{
    static unsigned refused;
    at_error error = {0};
    at_tensors *file = at_tensors_parse(bytes, size, "the state", &error);
    expect_message(file, &error);
    const bool is_read = file;
    at_tensors_free(file);
    return is_read || refused++ % 16 == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    at_error error = {0}, again = {0};
    if (!is_worth_a_run(bytes, size))
        return 0;
    at_threads_set(1);
    snprintf(output, sizeof output, "%s/m", own_folder()); /* a run that is allowed to continue saves and syncs */
    snprintf(state, sizeof state, "%s.state", output);
    write_bytes(state, bytes, size);
    const int which = memmem(bytes, size, "transformer", 11) != NULL;
    const bool done = run(which, &error);
    expect_message(done, &error);
    if (done)
        expect_message(run(which, &again), &again);
    EXPECT(!done || again.code == AT_OK);
    empty_folder();
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed)
{
    return mutate_tensors(bytes, size, most, seed);
}
