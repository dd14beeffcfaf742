/* attend demo dates: dates as people write them, to ISO 8601, letter by letter.
 *
 * The dates are drawn from a seed, and days kept for the test are never trained on. Training, loading the model and
 * translating go through the library, with files, as a user would do it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "demo/demo.h"
#include "tasks.h"

enum { TRAIN = 10000, TEST = 1000, TEXT = DATE_TEXT, PATH = 300 };

/* ---- Training ------------------------------------------------------------------------------------------------- */

static bool write_training(const char *path, uint64_t *random, at_error *error)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return fail(error, AT_FILE, "cannot write '%s', the file of dates to train on", path);
    char text[TEXT], iso[TEXT];
    for (int i = 0; i < TRAIN; i++) {
        task_date(random, false, text, iso);
        fprintf(file, "%s\t%s\n", text, iso);
    }
    bool written = !ferror(file);
    if (fclose(file) != 0 || !written)
        return fail(error, AT_FILE, "cannot write all of '%s', the file of dates to train on", path);
    return true;
}

static void listen(void *context, const at_train_news *news)
{
    const double *start = context;
    if (news->what != AT_NEWS_UPDATE)
        return;
    printf("%*supdate %4lld   loss %.4f   %5.1f s\n", DEMO_INDENT, "", (long long)news->update, news->cost,
           seconds_now() - *start);
    fflush(stdout);
}

static bool set_training(void *training, const char *name, const char *value, at_error *error)
{
    return at_training_set(training, name, value, error);
}

static bool train(const demo_options *options, const char *data, const char *output, at_error *error)
{
    /* name, value, the models that use it */
    static const char *const sizes[][3] = {{"embedding", "32", " bahdanau luong rnn-encdec "},
                                           {"attention", "64", " bahdanau luong rnn-attention "},
                                           {"maxout", "64", " bahdanau rnn-encdec "}};
    char seed[32], model[40];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)options->common.seed);
    const char *const settings[][2] = {
        {"tsv", data},      {"output", output},      {"source-vocab", "char"},   {"target-vocab", "char"},
        {"hidden", "64"},   {"batch-size", "50"},    {"learning-rate", "0.004"}, {"schedule", "cosine"},
        {"updates", "800"}, {"report-every", "100"}, {"save-every", "1000000"},  {"seed", seed}};
    at_training *training = at_training_new(error);
    bool good = training;
    for (size_t i = 0; good && i < sizeof settings / sizeof *settings; i++)
        good = at_training_set(training, settings[i][0], settings[i][1], error);
    snprintf(model, sizeof model, " %s ", demo_setting(options, "model", "bahdanau"));
    for (size_t i = 0; good && i < sizeof sizes / sizeof *sizes; i++)
        good = !strstr(sizes[i][2], model) || at_training_set(training, sizes[i][0], sizes[i][1], error);
    double start = seconds_now();
    at_train_result result = {0};
    good = good && demo_hand_over(options, set_training, training, error) &&
           at_training_run(training, listen, &start, NULL, &result, error);
    if (good)
        printf("\n%.1f seconds of training, %lld parameters.\n", result.seconds, (long long)result.parameters);
    at_training_free(training);
    return good;
}

/* ---- Trying --------------------------------------------------------------------------------------------------- */

typedef struct trial {
    char text[TEST][TEXT], iso[TEST][TEXT];
    at_line line[TEST];
    int right;
    int shown; /* of the wrong ones */
    bool attends;
    at_error *error;
} trial;

static bool count_right(void *context, int64_t line, const at_result *result)
{
    enum { EXAMPLES = 6 };
    trial *t = context;
    bool right = strcmp(result->best[0].text, t->iso[line]) == 0;
    t->right += right;
    t->attends = result->best[0].links;
    if (line < EXAMPLES || (!right && t->shown < 3)) {
        t->shown += line >= EXAMPLES;
        printf("%*s%s -> %s", DEMO_INDENT, "", t->text[line], result->best[0].text);
        if (right)
            printf("\n");
        else
            printf("   (wrong: %s)\n", t->iso[line]);
    }
    return true;
}

static bool draw_weights(void *context, int64_t line, const at_result *result)
{
    trial *t = context;
    const at_hypothesis *best = &result->best[0];
    (void)line;
    return show_weights(best->weights, best->count, best->source_units, best->names, result->source_names, t->error);
}

static bool try_out(const char *model, uint64_t *random, trial *t, at_error *error)
{
    const at_line example = {"3 may 1979", 10};
    for (int i = 0; i < TEST; i++) {
        task_date(random, true, t->text[i], t->iso[i]);
        t->line[i] = (at_line){t->text[i], strlen(t->text[i])};
    }
    t->error = error;
    at_search_settings search = {0}, look = {.wants_weights = true};
    at_translator *translator = at_translator_load(model, error);
    say("\nDays it has never seen, in any form:\n");
    bool good = translator && at_translate(translator, &search, t->line, TEST, count_right, t, error);
    if (good)
        printf("\n%d of %d such dates are right to the last figure: %.1f%%.\n", t->right, TEST,
               100.0 * t->right / TEST);
    if (good && t->attends) {
        say("\nWhere each figure of the answer (down) looks in the date (across). The answer begins with the year, and "
            "the date ends with it:\n");
        good = at_translate(translator, &look, &example, 1, draw_weights, t, error);
    }
    at_translator_free(translator);
    return good;
}

static bool run(const cli_common *common, at_error *error)
{
    static const char *const endings[] = {"",       ".last",           ".last.previous", ".previous",
                                          ".state", ".state.previous", ".log.jsonl"};
    const demo_options *options = (const demo_options *)common;
    const char *folder = getenv("TMPDIR");
    folder = folder && *folder && strlen(folder) < 200 ? folder : "/tmp";
    char directory[PATH - 60], data[PATH], model[PATH], file[PATH + 20];
    uint64_t random = task_mix(options->common.seed);
    print_heading("Dates: from any form to one");
    say("\n\"3rd of May 1979\", \"tue, 5 aug 1986\", \"10/11/2001\": a bidirectional network reads the letters, and "
        "for "
        "every letter of 1979-05-03 the decoder looks for what it needs. 10,000 dates in twelve forms, drawn from a "
        "seed; the test's days are not among them.\n");
    printf("The model is %s.\n\n", demo_setting(options, "model", "bahdanau"));
    fflush(stdout);
    snprintf(directory, sizeof directory, "%s/attend-demo-XXXXXX", folder);
    if (!mkdtemp(directory))
        return fail(error, AT_FILE, "cannot create a folder for the model in '%s'; TMPDIR may name another one",
                    folder);
    snprintf(data, sizeof data, "%s/dates.tsv", directory);
    snprintf(model, sizeof model, "%s/dates.safetensors", directory);
    trial *t = calloc(1, sizeof *t);
    bool good = t ? write_training(data, &random, error) && train(options, data, model, error) &&
                        try_out(model, &random, t, error)
                  : fail(error, AT_MEMORY, "out of memory for the demo");
    free(t);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(file, sizeof file, "%s%s", model, endings[i]);
        unlink(file);
    }
    unlink(data);
    rmdir(directory);
    return good;
}

const cli_demo demo_dates = {"dates", "3rd of May 1979 -> 1979-05-03: where a network looks, letter by letter", run};
