/* attend demo beer: one sentence through a recurrent network with attention, and where it looks. */
#include <string.h>

#include "demo/demo.h"

enum { STEPS = 5, WORD = 16 };

typedef struct state {
    const demo_options *options;
    const at_textbook *task;
    at_textbook_pairs pairs;
    at_listing *listing;
} state;

static bool begin(void *context, const demo_options *options, at_error *error)
{
    state *s = context;
    s->options = options;
    s->task = at_textbook_find("beer");
    at_textbook_read(s->task, &s->pairs);
    s->listing = demo_listing(&demo_beer, options, &s->pairs.task, error);
    return s->listing;
}

static void end(void *context)
{
    at_listing_free(((state *)context)->listing);
}

/* As in the listing, its own model is fed P P P P P. */
static bool is_of_listing(const state *s)
{
    return demo_model_is_default(&demo_beer, s->options);
}

/* The words of ids, each as a text. */
static void write_words(const at_textbook *task, const int32_t *ids, char words[STEPS][WORD], const char *names[STEPS])
{
    for (int i = 0; i < STEPS; i++) {
        const at_line symbol = at_textbook_symbol(task, ids[i]);
        snprintf(words[i], WORD, "%.*s", (int)symbol.size, symbol.text);
        names[i] = words[i];
    }
}

static bool task(void *context, at_error *error)
{
    static const char *const what[] = {"what is read", "what the decoder is fed", "what it has to write"};
    const state *s = context;
    (void)error;
    say("The decoder looks back at every state of the encoder and writes its word from its own state and from what it "
        "saw. One sentence, eleven words as one-hot vectors:\n");
    for (int i = 0; i < 3; i++) {
        printf("%*s", DEMO_INDENT, "");
        print_padded(stdout, what[i], 25);
        puts(s->task->pairs[0][i]);
    }
    say("\nThe model of the listing (rnn-attention) in formulas, s_0 = h_5:\n");
    show_line("h_j = tanh(W x_j + U h_{j−1} + b)              the encoder");
    show_line("s_t = tanh(W' y_{t−1} + U' s_{t−1} + b')       the decoder");
    show_line("e_tj = s_tᵀ W_a h_j                            scores (general)");
    show_line("a_tj = exp(e_tj) / Σ_k exp(e_tk)               weights");
    show_line("c_t = Σ_j a_tj h_j                             context");
    show_line("p(y_t) = softmax(W_o [s_t; c_t] + b_o)         the next word");
    return true;
}

static bool learn(void *context, at_error *error)
{
    const state *s = context;
    const bool listing = is_of_listing(s);
    const int epochs = listing ? 400 : 100;
    sayf("The model is %s; %d times over the pair, with Adam at 0.001.\n",
         demo_model_chosen(&demo_beer, s->options)->name, 5 * epochs);
    return demo_listing_train(s->listing, 5, epochs, listing ? "21 seconds" : NULL, error);
}

static bool translation(void *context, at_error *error)
{
    const state *s = context;
    const int32_t *source = s->pairs.task.source;
    int32_t output[STEPS], fed[AT_TEXTBOOK_LENGTH];
    float weights[STEPS * STEPS];
    char words[2][STEPS][WORD];
    const char *names[2][STEPS];
    const bool attends = at_listing_attends(s->listing);
    float *wanted = attends ? weights : NULL;
    at_textbook_ids(s->task, s->task->fed, 0, fed);
    if (!(is_of_listing(s)
              ? at_listing_read(s->listing, source, fed, output, wanted, error)
              : demo_listing_decode(s->listing, &s->pairs.task, source, *s->pairs.task.input, output, wanted, error)))
        return false;
    write_words(s->task, source, words[0], names[0]);
    write_words(s->task, output, words[1], names[1]);
    say(is_of_listing(s) ? "The decoder is fed P P P P P, so that all it knows comes from the source:\n"
                         : "The decoder is fed S, and then each word it has written:\n");
    printf("%*s%s ->", DEMO_INDENT, "", s->task->words[0]);
    for (int i = 0; i < STEPS; i++)
        printf(" %s", names[1][i]);
    putchar('\n');
    if (!attends) {
        say("\nThere is no attention in this model, and so nothing to draw.");
        return true;
    }
    say("\nThe weights: each word written (down) and where it looks in the source (across).\n");
    if (!show_weights(weights, STEPS, STEPS, names[1], names[0], error))
        return false;
    say("\nWith one sentence to learn, the state alone could say it all, so nothing makes the weights tidy; attend "
        "demo dates shows them where they are needed.");
    return true;
}

#define SMALL "hidden=64 embedding=32 attention=32 "
static const demo_model models[] = {{"rnn-attention", "hidden=128", ""},
                                    {"rnn-plain", "hidden=128", ""},
                                    {"rnn-encdec", "hidden=64 embedding=32 maxout=32", ""},
                                    {"bahdanau", SMALL "maxout=32", ""},
                                    {"luong", SMALL, ""},
                                    {"transformer", "hidden=64 ffn=128 layers=1 heads=4 dropout=0 norm=pre", ""},
                                    {0}};

const cli_demo demo_beer = {
    .name = "beer",
    .line = "ich mochte ein bier -> i want a beer: an RNN with attention",
    .title = "Beer: a sentence and its attention",
    .models = models,
    .size = sizeof(state),
    .begin = begin,
    .end = end,
    .pages = {{"The task and the model", task}, {"Learning", learn}, {"Where it looks", translation}},
};
