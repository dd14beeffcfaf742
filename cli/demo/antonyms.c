/* attend demo antonyms: the plain encoder-decoder on six pairs of words, letter by letter. */
#include <string.h>

#include "demo/demo.h"

enum { STEPS = 5, TEXT = STEPS + 2, SHOWN = AT_TEXTBOOK_WORDS + 1 };

typedef struct state {
    const demo_options *options;
    const at_textbook *task;
    at_textbook_pairs pairs;
    at_listing *listing;
    const char *word[SHOWN]; /* to translate */
    int words;
} state;

static bool begin(void *context, const demo_options *options, at_error *error)
{
    state *s = context;
    s->options = options;
    s->task = at_textbook_find("antonyms");
    for (; s->words < AT_TEXTBOOK_WORDS && s->task->words[s->words]; s->words++)
        s->word[s->words] = s->task->words[s->words];
    const char *own = options->input;
    if (own && (!*own || strlen(own) > STEPS || own[strspn(own, "abcdefghijklmnopqrstuvwxyz")]))
        return fail(error, AT_USAGE, "'%s' is not a word of 1 to %d letters from a to z, which this demo takes", own,
                    STEPS);
    if (own)
        s->word[s->words++] = own;
    at_textbook_read(s->task, &s->pairs);
    s->listing = demo_listing(&demo_antonyms, options, &s->pairs.task, error);
    return s->listing;
}

static void end(void *context)
{
    at_listing_free(((state *)context)->listing);
}

/* As in the listing, its own model is fed S and then only P. */
static bool is_of_listing(const state *s)
{
    return demo_model_is_default(&demo_antonyms, s->options);
}

/* A text up to its first E; padding is left out. */
static void write_plain(const at_textbook *task, const int32_t *ids, int64_t count, char text[TEXT])
{
    int used = 0;
    for (int64_t i = 0; i < count; i++) {
        const char letter = *at_textbook_symbol(task, ids[i]).text;
        if (letter == 'E')
            break;
        if (letter != 'P')
            text[used++] = letter;
    }
    text[used] = 0;
}

static bool translate(const state *s, const char *word, char text[TEXT], float *weights, at_error *error)
{
    int32_t source[AT_TEXTBOOK_LENGTH], input[AT_TEXTBOOK_LENGTH], output[AT_TEXTBOOK_LENGTH];
    at_textbook_ids(s->task, word, STEPS, source);
    at_textbook_ids(s->task, s->task->fed, 0, input);
    if (!(is_of_listing(s) ? at_listing_read(s->listing, source, input, output, weights, error)
                           : demo_listing_decode(s->listing, &s->pairs.task, source, *input, output, weights, error)))
        return false;
    write_plain(s->task, output, STEPS + 1, text);
    return true;
}

static bool task(void *context, at_error *error)
{
    const state *s = context;
    const at_listing_task *all = &s->pairs.task;
    (void)error;
    say("An encoder reads a word letter by letter; its last state is all that the decoder gets, which writes the "
        "other word letter by letter. Six pairs, 29 letters as one-hot vectors (S begins, E ends, P fills up to five), "
        "all of them in one batch:\n");
    for (int64_t i = 0; i < all->pairs; i++) {
        char source[TEXT], target[TEXT];
        write_plain(s->task, all->source + i * all->source_length, all->source_length, source);
        write_plain(s->task, all->target + i * all->target_length, all->target_length, target);
        show_line("%s - %s", source, target);
    }
    say("\nThe plain model (rnn-plain) in formulas, x and y one-hot:\n");
    show_line("h_j = tanh(W x_j + U h_{j−1} + b)           the encoder, h_0 = 0");
    show_line("s_0 = h_5,  s_t = tanh(W' y_{t−1} + U' s_{t−1} + b')    the decoder");
    show_line("p(y_t) = softmax(W_o s_t + b_o)");
    return true;
}

static bool learn(void *context, at_error *error)
{
    const state *s = context;
    const bool listing = is_of_listing(s);
    const int epochs = listing ? 1000 : 100;
    sayf("The model is %s; %d times over all six pairs, with Adam at 0.001.\n",
         demo_model_chosen(&demo_antonyms, s->options)->name, 5 * epochs);
    return demo_listing_train(s->listing, 5, epochs, listing ? "77 seconds" : NULL, error);
}

static bool words(void *context, at_error *error)
{
    const state *s = context;
    char text[TEXT];
    say(is_of_listing(s) ? "The decoder is fed S P P P P P, so that all it knows comes from the source; \"mans\" was "
                           "never seen.\n"
                         : "The decoder is fed S, and then each letter it has written; \"mans\" was never seen.\n");
    for (int i = 0; i < s->words; i++) {
        if (!translate(s, s->word[i], text, NULL, error))
            return false;
        show_line("%s -> %s", s->word[i], text);
    }
    return true;
}

static bool attention(void *context, at_error *error)
{
    const state *s = context;
    float weights[(STEPS + 1) * STEPS];
    char text[TEXT], letter[2][TEXT][2];
    const char *names[2][TEXT], *word = s->options->input ? s->options->input : "black";
    if (!at_listing_attends(s->listing)) {
        say("There is no attention in this model, and so nothing to draw: one vector, s_0, carries the whole word. Try "
            "--model rnn-attention, bahdanau, luong or transformer.");
        return true;
    }
    if (!translate(s, word, text, weights, error))
        return false;
    int rows = (int)strlen(text), length = (int)strlen(word);
    for (int i = 0; i <= STEPS; i++) {
        snprintf(letter[0][i], 2, "%c", i < length ? word[i] : 'P');
        snprintf(letter[1][i], 2, "%c", i < rows ? text[i] : 'E');
        names[0][i] = letter[0][i];
        names[1][i] = letter[1][i];
    }
    sayf("Where each letter of %s (down) looks in %s (across):\n", text, word);
    return show_weights(weights, rows < STEPS ? rows + 1 : STEPS + 1, STEPS, names[1], names[0], error);
}

#define SMALL "hidden=64 embedding=32 attention=32 "
static const demo_model models[] = {{"rnn-plain", "hidden=128", ""},
                                    {"rnn-encdec", "hidden=64 embedding=32 maxout=32", ""},
                                    {"rnn-attention", "hidden=128", ""},
                                    {"bahdanau", SMALL "maxout=32", ""},
                                    {"luong", SMALL, ""},
                                    {"transformer", "hidden=64 ffn=128 layers=1 heads=4 dropout=0 norm=pre", ""},
                                    {0}};

const cli_demo demo_antonyms = {
    .name = "antonyms",
    .line = "man -> women: a plain encoder-decoder learns six pairs of words",
    .title = "Antonyms: one word in, another word out",
    .input = "a word of at most five letters to translate",
    .example = "queen",
    .models = models,
    .size = sizeof(state),
    .begin = begin,
    .end = end,
    .pages = {{"The task and the model", task},
              {"Learning", learn},
              {"Translating", words},
              {"Where it looks", attention}},
};
