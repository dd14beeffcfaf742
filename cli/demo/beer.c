/* attend demo beer: one sentence through a recurrent network with attention, and where it looks. */
#include <string.h>

#include "demo/demo.h"

enum { STEPS = 5, SYMBOLS = 11, PAD = 4, START = 5 };

static const char *const words[SYMBOLS] = {"ich", "mochte", "ein", "bier", "P", "S", "i", "want", "a", "beer", "E"};
static const int32_t source[STEPS] = {0, 1, 2, 3, PAD};  /* ich mochte ein bier P */
static const int32_t input[STEPS] = {START, 6, 7, 8, 9}; /* S i want a beer */
static const int32_t target[STEPS] = {6, 7, 8, 9, 10};   /* i want a beer E */
static const int32_t nothing[STEPS] = {PAD, PAD, PAD, PAD, PAD};
static const at_listing_task pair = {SYMBOLS, 1, STEPS, STEPS, source, input, target};

typedef struct state {
    const demo_options *options;
    at_listing *listing;
} state;

static bool begin(void *context, const demo_options *options, at_error *error)
{
    state *s = context;
    s->options = options;
    s->listing = demo_listing(&demo_beer, options, &pair, error);
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

static void print_words(const int32_t *ids)
{
    for (int i = 0; i < STEPS; i++)
        printf("%s%s", i ? " " : "", words[ids[i]]);
}

static bool task(void *context, at_error *error)
{
    static const struct {
        const int32_t *ids;
        const char *what;
    } lines[] = {{source, "what is read"}, {input, "what the decoder is fed"}, {target, "what it has to write"}};
    (void)context, (void)error;
    say("The decoder looks back at every state of the encoder and writes its word from its own state and from what it "
        "saw. One sentence, eleven words as one-hot vectors:\n");
    for (int i = 0; i < 3; i++) {
        printf("%*s", DEMO_INDENT, "");
        print_padded(stdout, lines[i].what, 25);
        print_words(lines[i].ids);
        putchar('\n');
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
    int32_t output[STEPS];
    float weights[STEPS * STEPS];
    const char *names[2][STEPS];
    const bool attends = at_listing_attends(s->listing);
    float *wanted = attends ? weights : NULL;
    if (!(is_of_listing(s) ? at_listing_read(s->listing, source, nothing, output, wanted, error)
                           : demo_listing_decode(s->listing, &pair, source, START, output, wanted, error)))
        return false;
    say(is_of_listing(s) ? "The decoder is fed P P P P P, so that all it knows comes from the source:\n"
                         : "The decoder is fed S, and then each word it has written:\n");
    printf("%*s", DEMO_INDENT, "");
    print_words(source);
    printf(" -> ");
    print_words(output);
    putchar('\n');
    if (!attends) {
        say("\nThere is no attention in this model, and so nothing to draw.");
        return true;
    }
    for (int i = 0; i < STEPS; i++) {
        names[0][i] = words[source[i]];
        names[1][i] = words[output[i]];
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
