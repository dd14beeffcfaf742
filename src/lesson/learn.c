/* "learn": small models that are trained while the page shows their progress.
 *
 * A run is what its task, model and seed say, so that a request needs no session: it names the run and how far it shall
 * have come, and makes at most AT_LESSON_CHUNK updates towards that. Whoever asks for the same run goes on with it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lesson/ask_internal.h"

enum { STEPS = 5, MOST_LENGTH = AT_TEXTBOOK_LENGTH, REPORTS = AT_LESSON_UPDATES / AT_LESSON_CHUNK };

/* ---- The models ------------------------------------------------------------------------------------------------- */

/* The models and what of them is set; the first two are those of the notes, fed nothing but the beginning when they are
 * used. The others are fed what they have written. */
#define SMALL "hidden=64 embedding=32 attention=32"
static const struct {
    const char *name, *settings;
    bool of_notes;
} models[] = {{"rnn-plain", "hidden=128", true},
              {"rnn-attention", "hidden=128", true},
              {"rnn-encdec", "hidden=64 embedding=32 maxout=32", false},
              {"bahdanau", SMALL " maxout=32", false},
              {"luong", SMALL, false},
              {"transformer", "hidden=64 ffn=128 layers=1 heads=4 dropout=0 norm=pre", false}};
enum { MODELS = sizeof models / sizeof *models };

static at_listing *listing_of(const at_textbook *task, int model, uint64_t seed, at_error *error)
{
    at_textbook_pairs all = {0};
    at_textbook_read(task, &all);
    at_listing *listing = at_listing_new(&all.task, seed, error);
    char settings[100], *rest = settings, *word;
    strcpy(settings, models[model].settings);
    bool good = listing && at_listing_set(listing, "model", models[model].name, error);
    while (good && (word = strsep(&rest, " "))) {
        char *value = strchr(word, '=');
        *value++ = 0;
        good = at_listing_set(listing, word, value, error);
    }
    if (good)
        return listing;
    at_listing_free(listing);
    return NULL;
}

/* ---- The runs --------------------------------------------------------------------------------------------------- */

typedef struct run {
    int task, model;
    uint64_t seed;
    at_listing *listing; /* NULL: none */
    int64_t update;
    float loss[REPORTS + 1]; /* after every AT_LESSON_CHUNK updates, from the first on */
    uint64_t asked;          /* when, by the clock of the runs */
} run;

struct at_runs {
    pthread_mutex_t lock;
    uint64_t clock;
    run run[AT_LESSON_RUNS];
};

at_runs *at_runs_new(at_error *error)
{
    at_runs *runs = calloc(1, sizeof *runs);
    if (!runs)
        at_no_memory(error, "the lesson");
    else
        pthread_mutex_init(&runs->lock, NULL);
    return runs;
}

void at_runs_free(at_runs *runs)
{
    if (!runs)
        return;
    for (int i = 0; i < AT_LESSON_RUNS; i++)
        at_listing_free(runs->run[i].listing);
    pthread_mutex_destroy(&runs->lock);
    free(runs);
}

/* The run, or a new one in the place of the one that was not asked for the longest. */
static run *find(at_runs *runs, int task, int model, uint64_t seed, at_error *error)
{
    run *oldest = runs->run, *found = NULL;
    for (run *r = runs->run; r < runs->run + AT_LESSON_RUNS; r++) {
        if (r->listing && r->task == task && r->model == model && r->seed == seed)
            found = r;
        if (r->asked < oldest->asked)
            oldest = r;
    }
    if (!found) {
        found = oldest;
        at_listing_free(found->listing);
        *found = (run){.task = task, .model = model, .seed = seed};
        found->listing = listing_of(at_textbook_at(task), model, seed, error);
    }
    found->asked = ++runs->clock;
    return found->listing ? found : NULL;
}

/* At most to the next report, and reports are at fixed updates, so that what is kept does not depend on who asked when.
 * The first update is a report, too: the loss that a model begins with. */
static bool train(run *r, int64_t update, at_error *error)
{
    double loss = 0;
    if (update == 0 && r->update == 0) /* makes the model, which answers before it has learnt anything */
        return at_listing_train(r->listing, 0, &loss, error);
    if (r->update >= update)
        return true;
    if (r->update == 0) {
        if (!at_listing_train(r->listing, 1, &loss, error))
            return false;
        r->loss[0] = (float)loss;
        r->update = 1;
    }
    const int64_t report = r->update / AT_LESSON_CHUNK + 1;
    if (!at_listing_train(r->listing, report * AT_LESSON_CHUNK - r->update, &loss, error))
        return false;
    r->loss[report] = (float)loss;
    r->update = report * AT_LESSON_CHUNK;
    return true;
}

/* ---- What it says ----------------------------------------------------------------------------------------------- */

static bool read_output(const run *r, const int32_t *source, int32_t *output, float *weights, at_error *error)
{
    const at_textbook *task = at_textbook_at(r->task);
    int32_t input[MOST_LENGTH];
    const int64_t T = at_textbook_ids(task, task->fed, 0, input);
    if (models[r->model].of_notes)
        return at_listing_read(r->listing, source, input, output, weights, error);
    at_textbook_ids(task, "S", 1, input);
    for (int64_t t = 0; t < T; t++) { /* no output depends on the inputs after it */
        if (!at_listing_read(r->listing, source, input, output, weights, error))
            return false;
        if (t + 1 < T)
            input[t + 1] = output[t];
    }
    return true;
}

static void put_symbol(at_ask *ask, const at_textbook *task, int32_t id, const char *before)
{
    const at_line symbol = at_textbook_symbol(task, id);
    at_buffer_print(&ask->text, "%s\"%.*s\"", before, (int)symbol.size, symbol.text);
}

static void put_symbols(at_ask *ask, const at_textbook *task, const char *name, const int32_t *ids, int64_t count)
{
    at_put_name(ask, name);
    at_buffer_print(&ask->text, "[");
    for (int64_t i = 0; i < count; i++)
        put_symbol(ask, task, ids[i], i ? "," : "");
    at_buffer_print(&ask->text, "]");
}

/* {"source": symbols, "output": symbols, "weights": where each one looks, if the model has attention} */
static bool put_reading(at_ask *ask, const run *r, const char *word, const char *before)
{
    const at_textbook *task = at_textbook_at(r->task);
    int32_t source[MOST_LENGTH], output[MOST_LENGTH];
    float weights[MOST_LENGTH * MOST_LENGTH];
    const bool attends = at_listing_attends(r->listing);
    const int64_t S = at_textbook_ids(task, word, STEPS, source), T = at_textbook_ids(task, task->fed, 0, output);
    if (!read_output(r, source, output, attends ? weights : NULL, ask->error))
        return false;
    at_buffer_print(&ask->text, "%s{", before);
    put_symbols(ask, task, "source", source, S);
    put_symbols(ask, task, "output", output, T);
    if (attends)
        at_put_matrix(ask, "weights", weights, T, S);
    at_buffer_print(&ask->text, "}");
    return true;
}

static bool word_fits(const at_ask *ask, const at_textbook *task, const char *word)
{
    if (!word)
        return ask->error->code == AT_OK;
    if (!task->letters)
        return at_fail(ask->error, AT_USAGE, "the task %s has one sentence, and takes no `word`", task->name);
    return (*word && strlen(word) <= STEPS && !word[strspn(word, task->symbols + 3)]) ||
           at_fail(ask->error, AT_USAGE, "`word` must be 1 to %d letters from a to z", STEPS);
}

static bool answer(at_ask *ask, const run *r, const char *word)
{
    const at_textbook *task = at_textbook_at(r->task);
    at_put_number(ask, "update", (double)r->update);
    at_put_number(ask, "most", AT_LESSON_UPDATES);
    at_put_number(ask, "every", AT_LESSON_CHUNK);
    at_put_row(ask, "losses", r->loss, r->update > 0 ? r->update / AT_LESSON_CHUNK + 1 : 0);
    at_put_name(ask, "says");
    at_buffer_print(&ask->text, "[");
    for (int i = 0; i < AT_TEXTBOOK_WORDS && task->words[i]; i++)
        if (!put_reading(ask, r, task->words[i], i ? "," : ""))
            return false;
    if (word && !put_reading(ask, r, word, ","))
        return false;
    at_buffer_print(&ask->text, "]");
    return ask->error->code == AT_OK;
}

bool at_answer_learn(at_ask *ask)
{
    const char *task_names[AT_TEXTBOOKS + 1] = {NULL}, *model_names[MODELS + 1] = {NULL};
    for (int i = 0; i < AT_TEXTBOOKS; i++)
        task_names[i] = at_textbook_at(i)->name;
    for (int i = 0; i < MODELS; i++)
        model_names[i] = models[i].name;
    if (!at_ask_only(ask, ask->request, "ask task model seed update word"))
        return false;
    const int task = at_ask_choice(ask, ask->request, "task", task_names),
              model = at_ask_choice(ask, ask->request, "model", model_names);
    const uint64_t seed = (uint64_t)at_ask_count(ask, ask->request, "seed", 1, 0, INT32_MAX);
    const int64_t update = at_ask_count(ask, ask->request, "update", 0, 0, AT_LESSON_UPDATES);
    const char *word = at_ask_text(ask, ask->request, "word", NULL);
    if (task < 0 || model < 0 || !word_fits(ask, at_textbook_at(task), word))
        return false;
    at_runs *runs = at_lesson_runs(ask->lesson);
    pthread_mutex_lock(&runs->lock);
    run *r = find(runs, task, model, seed, ask->error);
    const bool good = r && train(r, update, ask->error) && answer(ask, r, word);
    if (r && !good) { /* it may be half trained */
        at_listing_free(r->listing);
        *r = (run){0};
    }
    pthread_mutex_unlock(&runs->lock);
    return good;
}
