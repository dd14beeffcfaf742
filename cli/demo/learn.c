/* What the demos that train a model share: the choice of the model, the listings, and training on pairs of lines. */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "demo/demo.h"

#define SETTING(number, name_, argument_, axis_, help_, ...)                                                           \
    {                                                                                                                  \
        .type = AT_SETTING_TEXT, .name = name_, .argument = argument_, .axis = axis_, .help = help_,                   \
        .offset = offsetof(demo_options, setting) + (number) * sizeof(const char *), __VA_ARGS__                       \
    }

/* The first rows are of all demos; the others, from FIRST_SETTING on, are handed to the model. */
enum { FIRST_SETTING = 3 };
const at_setting demo_settings[FIRST_SETTING + DEMO_SETTINGS + 1] = {
    {.type = AT_SETTING_HEADING, .help = "Of every demo"},
    {.type = AT_SETTING_SWITCH,
     .name = "all",
     .offset = offsetof(demo_options, all),
     .help = "show all pages without a pause"},
    {.type = AT_SETTING_HEADING,
     .help = "To try another model on the same task (antonyms, beer, dates), or other sizes (scenes, transformer)"},
    SETTING(0, "model", "NAME", NULL, "rnn-plain, rnn-encdec, rnn-attention, bahdanau, luong or transformer"),
    SETTING(1, "cell", "NAME", NULL, "the recurrent cell: rnn, gru or lstm"),
    SETTING(2, "reset", "WHEN", NULL, "a gru resets the state before or after the product"),
    SETTING(3, "layers", "N", NULL, "layers on each side"),
    SETTING(4, "hidden", "N", NULL, "size of a recurrent state, or of a transformer's layers"),
    SETTING(5, "dropout", "SHARE", NULL, "share of the units dropped in training"),
    SETTING(6, "score", "NAME", "score", "how a query meets a key"),
    SETTING(7, "normaliser", "NAME", "normaliser", "how scores become weights"),
    SETTING(8, "window", "NAME", "window", "which source positions a step sees"),
    SETTING(9, "position", "NAME", "position",
            "positions inside attention; in a transformer also sinusoidal or learned",
            .also = {"sinusoidal", "learned"}),
    SETTING(10, "heads", "N", NULL, "attention heads"),
    SETTING(11, "gate", "true|false", NULL, "scale the context by a gate of the state"),
    SETTING(12, "hard-training", "NAME", NULL, "normaliser hard: reinforce or exact"),
    SETTING(13, "coverage", "N", NULL, "filters over the sum of past weights, for the score additive"),
    SETTING(14, "doubly-stochastic", "FACTOR", NULL, "scenes: ask for as much attention on every cell as on every other"),
};

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- The model ------------------------------------------------------------------------------------------------ */

static const char *given(const demo_options *options, const char *name)
{
    for (int i = 0; i < DEMO_SETTINGS; i++)
        if (strcmp(demo_settings[FIRST_SETTING + i].name, name) == 0)
            return options->setting[i];
    return NULL;
}

const demo_model *demo_model_chosen(const cli_demo *demo, const demo_options *options)
{
    const char *name = given(options, "model");
    for (const demo_model *model = demo->models; name && model && model->name; model++)
        if (strcmp(model->name, name) == 0)
            return model;
    return demo->models;
}

bool demo_model_is_default(const cli_demo *demo, const demo_options *options)
{
    return demo_model_chosen(demo, options) == demo->models;
}

typedef bool setter(void *target, const char *name, const char *value, at_error *error);

static bool set_listing(void *listing, const char *name, const char *value, at_error *error)
{
    return at_listing_set(listing, name, value, error);
}

static bool set_training(void *training, const char *name, const char *value, at_error *error)
{
    return at_training_set(training, name, value, error);
}

/* Sets each of "hidden=64 embedding=32". */
static bool set_all(const char *settings, setter *set, void *target, at_error *error)
{
    for (const char *at = settings; at && *at;) {
        char name[40], value[200];
        const size_t equals = strcspn(at, "="), length = strcspn(at, " ");
        snprintf(name, sizeof name, "%.*s", (int)equals, at);
        snprintf(value, sizeof value, "%.*s", (int)(length - equals - 1), at + equals + 1);
        if (!set(target, name, value, error))
            return false;
        at += length;
        at += strspn(at, " ");
    }
    return true;
}

/* The model, what suits it, and over that what was given. */
static bool set_model(const cli_demo *demo, const demo_options *options, setter *set, void *target, at_error *error)
{
    const demo_model *model = demo_model_chosen(demo, options);
    if (!set(target, "model", model->name, error) || !set_all(model->settings, set, target, error))
        return false;
    for (int i = 0; i < DEMO_SETTINGS; i++)
        if (options->setting[i] && !set(target, demo_settings[FIRST_SETTING + i].name, options->setting[i], error)) {
            error->code = AT_USAGE;
            return false;
        }
    return true;
}

/* Whether there is such a model, whatever the demo can do with it. */
static bool is_model(const char *name)
{
    for (int i = 0; at_model_entry(i); i++)
        if (strcmp(at_model_entry(i)->name, name) == 0)
            return true;
    return false;
}

static bool name_fits(const cli_demo *demo, const char *name, at_error *error)
{
    enum { MOST = 20 };
    const char *names[MOST];
    char list[300] = "";
    int count = 0, used = 0;
    for (const demo_model *model = demo->models; model->name && count < MOST; model++) {
        if (strcmp(model->name, name) == 0)
            return true;
        names[count++] = model->name;
        used += snprintf(list + used, sizeof list - (size_t)used, "%s%s", count > 1 ? ", " : "", model->name);
    }
    if (!is_model(name))
        return at_unknown("model", name, names, count, error);
    if (count == 1)
        return fail(error, AT_USAGE, "demo '%s' shows model '%s' and no other, so --model cannot be '%s'", demo->name,
                    names[0], name);
    return fail(error, AT_USAGE, "demo '%s' turns a source into a target, which model '%s' cannot do; it works with %s",
                demo->name, name, list);
}

/* A model of pictures is made when training begins: what it does not use is known before. */
static bool pictures_fit(const cli_demo *demo, const demo_options *options, at_error *error)
{
    const char *model = demo_model_chosen(demo, options)->name;
    char text[200];
    at_training *training = at_training_new(error);
    bool fits = training && set_model(demo, options, set_training, training, error);
    for (int i = 1; fits && i < DEMO_SETTINGS; i++) { /* after the model itself */
        const char *name = demo_settings[FIRST_SETTING + i].name;
        if (options->setting[i] && !at_training_default(model, name, text, sizeof text))
            fits = fail(error, AT_USAGE, "model '%s' does not use --%s", model, name);
    }
    at_training_free(training);
    return fits;
}

bool demo_model_fits(const cli_demo *demo, const demo_options *options, at_error *error)
{
    for (int i = 0; !demo->models && i < DEMO_SETTINGS; i++)
        if (options->setting[i])
            return fail(error, AT_USAGE, "demo '%s' has no model to choose, so it does not use --%s", demo->name,
                        demo_settings[FIRST_SETTING + i].name);
    if (!demo->models)
        return true;
    const char *name = given(options, "model");
    if (name && !name_fits(demo, name, error))
        return false;
    if (demo->pictures)
        return pictures_fit(demo, options, error);
    if (given(options, "doubly-stochastic"))
        return fail(error, AT_USAGE, "--doubly-stochastic is for demo 'scenes', whose model looks at pictures");
    /* A model of nothing but its settings: the settings are checked when it is made. */
    static const int32_t symbol = 0;
    const at_listing_task nothing = {1, 1, 1, 1, &symbol, &symbol, &symbol};
    double loss;
    at_listing *listing = demo_listing(demo, options, &nothing, error);
    const bool fits = listing && at_listing_train(listing, 0, &loss, error);
    at_listing_free(listing);
    return fits;
}

/* ---- Listings ------------------------------------------------------------------------------------------------- */

at_listing *demo_listing(const cli_demo *demo, const demo_options *options, const at_listing_task *task,
                         at_error *error)
{
    at_listing *listing = at_listing_new(task, options->common.seed, error);
    if (listing && set_model(demo, options, set_listing, listing, error))
        return listing;
    at_listing_free(listing);
    return NULL;
}

bool demo_listing_train(at_listing *listing, int steps, int epochs, const char *tensorflow, at_error *error)
{
    const double start = seconds_now();
    double loss = 0;
    for (int i = 1; i <= steps; i++) {
        if (!at_listing_train(listing, epochs, &loss, error))
            return false;
        show_line("epoch %4d   loss %.6f", i * epochs, loss);
        fflush(stdout);
    }
    printf("\n%.2f seconds", seconds_now() - start);
    if (tensorflow)
        printf("; the listing took %s in TensorFlow 1.12", tensorflow);
    puts(".");
    return true;
}

bool demo_listing_decode(at_listing *listing, const at_listing_task *task, const int32_t *source, int32_t first,
                         int32_t *output, float *weights, at_error *error)
{
    int32_t *input = calloc((size_t)task->target_length, sizeof *input);
    if (!input)
        return fail(error, AT_MEMORY, "out of memory for the demo");
    input[0] = first;
    bool good = true;
    /* The symbols after the t-th are still to come, and no output up to it depends on them. */
    for (int64_t t = 0; good && t < task->target_length; t++) {
        good = at_listing_read(listing, source, input, output, weights, error);
        if (t + 1 < task->target_length)
            input[t + 1] = output[t];
    }
    free(input);
    return good;
}

/* ---- Pairs of lines ------------------------------------------------------------------------------------------- */

bool demo_pairs_make(demo_pairs *pairs, int64_t count, at_error *error)
{
    *pairs = (demo_pairs){.count = count, .text = calloc((size_t)count, sizeof *pairs->text)};
    return pairs->text || fail(error, AT_MEMORY, "out of memory for the lines of the demo");
}

void demo_pairs_free(demo_pairs *pairs)
{
    free(pairs->text);
    *pairs = (demo_pairs){0};
}

void demo_trained_free(demo_trained *trained)
{
    at_translator_free(trained->translator);
    at_tensors_free(trained->parameters);
    *trained = (demo_trained){0};
}

static volatile int stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static void listen(void *context, const at_train_news *news)
{
    const double *start = context;
    if (news->what != AT_NEWS_UPDATE)
        return;
    show_line("update %4lld   loss %.4f   %5.1f s", (long long)news->update, news->cost, seconds_now() - *start);
    fflush(stdout);
}

/* Trains, with the model in the file `output`. An interrupt ends it, so that the files can be removed. */
static bool train(at_training *training, at_error *error)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    enum { SIGNALS = sizeof signals / sizeof *signals };
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND | SA_RESTART};
    struct sigaction before[SIGNALS];
    double start = seconds_now();
    at_train_result result = {0};
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &action, &before[i]);
    bool good = at_training_run(training, listen, &start, &stop, &result, error);
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &before[i], NULL);
    if (good && result.interrupted)
        return fail(error, AT_INTERRUPTED, "interrupted; the demo's files are removed");
    if (good)
        printf("\n%.1f seconds of training, %lld parameters.\n", result.seconds, (long long)result.parameters);
    return good;
}

/* What is trained on. */
typedef struct training_lines {
    const at_line *sources, *targets;
    int64_t count;
} training_lines;

static bool train_in(const char *folder, const cli_demo *demo, const demo_options *options, const training_lines *lines,
                     const char *settings, demo_trained *trained, at_error *error)
{
    char seed[32], model[400];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)options->common.seed);
    snprintf(model, sizeof model, "%s/model", folder);
    at_training *training = at_training_new(error);
    bool good = training && at_training_set(training, "output", model, error) &&
                at_training_set(training, "seed", seed, error) &&
                at_training_set(training, "save-every", "1000000", error) &&
                at_training_data(training, AT_TRAIN, lines->sources, lines->targets, lines->count, error) &&
                set_all(settings, set_training, training, error);
    if (good && demo->models)
        good = set_all(demo_model_chosen(demo, options)->training, set_training, training, error) &&
               set_model(demo, options, set_training, training, error);
    good = good && train(training, error);
    at_training_free(training);
    trained->translator = good ? at_translator_load(model, error) : NULL;
    trained->parameters = trained->translator ? at_tensors_read(model, error) : NULL;
    return trained->parameters;
}

void demo_folder_remove(const char *folder)
{
    DIR *files = opendir(folder);
    for (struct dirent *file; files && (file = readdir(files));) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
        unlink(path);
    }
    if (files)
        closedir(files);
    rmdir(folder);
}

bool demo_folder_make(char folder[DEMO_FOLDER], at_error *error)
{
    const char *parent = getenv("TMPDIR");
    parent = parent && *parent && strlen(parent) < 200 ? parent : "/tmp";
    snprintf(folder, DEMO_FOLDER, "%s/attend-demo-XXXXXX", parent);
    return mkdtemp(folder) ||
           fail(error, AT_FILE, "cannot create a folder for the model in '%s'; TMPDIR may name another one", parent);
}

bool demo_train_lines(const cli_demo *demo, const demo_options *options, const at_line *sources, const at_line *targets,
                      int64_t count, const char *settings, demo_trained *trained, at_error *error)
{
    char folder[DEMO_FOLDER];
    if (!demo_folder_make(folder, error))
        return false;
    const training_lines lines = {sources, targets, count};
    const bool good = train_in(folder, demo, options, &lines, settings, trained, error);
    demo_folder_remove(folder);
    return good;
}

bool demo_train(const cli_demo *demo, const demo_options *options, const demo_pairs *pairs, const char *settings,
                demo_trained *trained, at_error *error)
{
    at_line *lines = calloc((size_t)(2 * pairs->count), sizeof *lines);
    if (!lines)
        return fail(error, AT_MEMORY, "out of memory for the lines of the demo");
    for (int64_t i = 0; i < 2 * pairs->count; i++) {
        const char *text = pairs->text[i % pairs->count][i / pairs->count];
        lines[i] = (at_line){text, strlen(text)};
    }
    const bool good =
        demo_train_lines(demo, options, lines, lines + pairs->count, pairs->count, settings, trained, error);
    free(lines);
    return good;
}
