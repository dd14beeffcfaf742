/* attend demo dates: dates as people write them, to ISO 8601, letter by letter.
 *
 * The dates are drawn from a seed, and days kept for the test are never trained on. */
#include <string.h>

#include "demo/demo.h"
#include "tasks.h"

enum { TRAIN = 10000, TEST = 1000 };
_Static_assert((int)DATE_TEXT <= (int)DEMO_LINE, "a date must fit into a line of the demo");

typedef struct state {
    const demo_options *options;
    demo_pairs train, test;
    demo_trained trained;
    at_line example;
    int right, shown; /* of the test: right ones, wrong ones shown */
    bool attends;
    at_error *error;
} state;

static bool begin(void *context, const demo_options *options, at_error *error)
{
    enum { LONGEST = 36 }; /* of the dates that it learns, and so wide a map fits into a line */
    state *s = context;
    const char *own = options->input;
    s->options = options;
    s->example = own ? (at_line){own, strlen(own)} : (at_line){"3 may 1979", 10};
    if (own && (!*own || strlen(own) > LONGEST))
        return fail(error, AT_USAGE,
                    "the date has %zu characters; this demo takes one of 1 to %d, such as \"3 may 1979\"", strlen(own),
                    LONGEST);
    if (!demo_pairs_make(&s->train, TRAIN, error) || !demo_pairs_make(&s->test, TEST, error))
        return false;
    uint64_t random = task_mix(options->common.seed);
    for (int i = 0; i < TRAIN; i++)
        task_date(&random, false, s->train.text[i][0], s->train.text[i][1]);
    for (int i = 0; i < TEST; i++)
        task_date(&random, true, s->test.text[i][0], s->test.text[i][1]);
    return true;
}

static void end(void *context)
{
    state *s = context;
    demo_pairs_free(&s->train);
    demo_pairs_free(&s->test);
    demo_trained_free(&s->trained);
}

static bool task(void *context, at_error *error)
{
    const state *s = context;
    (void)error;
    say("One network reads the letters of a date, and for every letter of 1979-05-03 another one looks for what it "
        "needs. 10,000 dates in twelve forms, drawn from a seed; the days of the test are not among them. Some of "
        "them:\n");
    for (int i = 0; i < 6; i++)
        show_line("%s -> %s", s->train.text[i][0], s->train.text[i][1]);
    return true;
}

static bool learn(void *context, at_error *error)
{
    state *s = context;
    sayf("The model is %s. Each update takes 50 dates.\n", demo_model_chosen(&demo_dates, s->options)->name);
    fflush(stdout);
    return demo_train(&demo_dates, s->options, &s->train,
                      "source-vocab=char target-vocab=char batch-size=50 learning-rate=0.004 schedule=cosine "
                      "report-every=100",
                      &s->trained, error);
}

static bool count_right(void *context, int64_t line, const at_result *result)
{
    enum { EXAMPLES = 6 };
    state *s = context;
    const char *date = s->test.text[line][0], *iso = s->test.text[line][1];
    const bool right = strcmp(result->best[0].text, iso) == 0;
    s->right += right;
    s->attends = result->best[0].links;
    if (line < EXAMPLES || (!right && s->shown < 3)) {
        s->shown += line >= EXAMPLES;
        if (right)
            show_line("%s -> %s", date, iso);
        else
            show_line("%s -> %.12s   (wrong: %s)", date, result->best[0].text, iso);
    }
    return true;
}

static bool test(void *context, at_error *error)
{
    state *s = context;
    at_line lines[TEST];
    for (int i = 0; i < TEST; i++)
        lines[i] = (at_line){s->test.text[i][0], strlen(s->test.text[i][0])};
    say("Days it has never seen, in any form:\n");
    const at_search_settings search = {.wants_links = true};
    if (!at_translate(s->trained.translator, &search, lines, TEST, count_right, s, error))
        return false;
    printf("\n%d of %d such dates are right to the last figure: %.1f%%.\n", s->right, TEST, 100.0 * s->right / TEST);
    return true;
}

static bool draw_weights(void *context, int64_t line, const at_result *result)
{
    state *s = context;
    const at_hypothesis *best = &result->best[0];
    (void)line;
    show_line("%.*s -> %.20s\n", (int)s->example.size, s->example.text, best->text);
    if (!best->weights)
        return true;
    return show_weights(best->weights, best->count, best->source_units, best->names, result->source_names, s->error);
}

static bool look(void *context, at_error *error)
{
    state *s = context;
    s->error = error;
    say(s->attends
            ? "Where each figure of the answer (down) looks in the date (across); the mean of all heads if there "
              "are several. The answer begins with the year, and the date ends with it:\n"
            : "There is no attention in this model, and so nothing to draw.\n");
    const at_search_settings search = {.wants_weights = s->attends};
    return at_translate(s->trained.translator, &search, &s->example, 1, draw_weights, s, error);
}

static const demo_model models[] = {
    {"bahdanau", "hidden=64 embedding=32 attention=64 maxout=64", "updates=800"},
    {"luong", "hidden=64 embedding=32 attention=64", "updates=1200"},
    {"transformer", "hidden=64 ffn=128 layers=1 heads=4 dropout=0 norm=pre position=shaw:16",
     "updates=800 warmup=100 label-smoothing=0"},
    {"rnn-attention", "hidden=64 attention=64 cell=gru dropout=0", "updates=1600"},
    {"rnn-encdec", "hidden=128 embedding=32 maxout=64", "updates=1600"},
    {"rnn-plain", "hidden=128 cell=gru dropout=0", "updates=2400"},
    {0}};

const cli_demo demo_dates = {
    .name = "dates",
    .line = "3rd of May 1979 -> 1979-05-03: where a network looks",
    .title = "Dates: from any form to one",
    .input = "a date to read",
    .example = "\"3rd of May 1979\"",
    .models = models,
    .size = sizeof(state),
    .begin = begin,
    .end = end,
    .pages = {{"The task", task}, {"Learning", learn}, {"Days never seen", test}, {"Where it looks", look}},
};
