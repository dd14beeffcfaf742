/* attend demo beer: one sentence through a recurrent network with attention, and where it looks. */
#include <string.h>

#include "demo/demo.h"

enum { STEPS = 5, SYMBOLS = 11 };

static const char *const words[SYMBOLS] = {"ich", "mochte", "ein", "bier", "P", "S", "i", "want", "a", "beer", "E"};
static const int32_t source[STEPS] = {0, 1, 2, 3, 4};  /* ich mochte ein bier P */
static const int32_t input[STEPS] = {5, 6, 7, 8, 9};   /* S i want a beer */
static const int32_t target[STEPS] = {6, 7, 8, 9, 10}; /* i want a beer E */
static const int32_t nothing[STEPS] = {4, 4, 4, 4, 4}; /* P P P P P */

static void print_words(const int32_t *ids)
{
    for (int i = 0; i < STEPS; i++)
        printf("%s%s", i ? " " : "", words[ids[i]]);
}

static bool show(at_listing *listing, at_error *error)
{
    int32_t output[STEPS];
    float weights[STEPS * STEPS];
    const char *names[2][STEPS];
    bool attends = at_listing_attends(listing);
    if (!at_listing_read(listing, source, nothing, output, attends ? weights : NULL, error))
        return false;
    say("\nTranslated with the decoder fed P P P P P, so that all it knows comes from the source:\n");
    printf("%*s", DEMO_INDENT, "");
    print_words(source);
    printf(" -> ");
    print_words(output);
    printf("\n");
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
        "demo "
        "dates shows them where they are needed.");
    return true;
}

static bool run(const cli_common *common, at_error *error)
{
    const demo_options *options = (const demo_options *)common;
    at_listing_task task = {SYMBOLS, 1, STEPS, STEPS, source, input, target};
    print_heading("Beer: a sentence and its attention");
    say("\nThe decoder looks back at every state of the encoder, e_tj = s_tᵀ W h_j, and writes its word from its own "
        "state and what it saw, [s_t; c_t]. One sentence, eleven words as one-hot vectors, 2000 times: what is read, "
        "what the decoder is fed, what it has to write.\n");
    for (int i = 0; i < 3; i++) {
        printf("%*s", DEMO_INDENT, "");
        print_words((const int32_t *const[]){source, input, target}[i]);
        printf("\n");
    }
    printf("\nThe model is %s.\n\n", demo_setting(options, "model", "rnn-attention"));
    at_listing *listing = demo_listing(options, &task, "rnn-attention", error);
    bool done = listing && demo_listing_train(listing, 5, 400, "21 seconds", error) && show(listing, error);
    at_listing_free(listing);
    return done;
}

const cli_demo demo_beer = {"beer", "ich mochte ein bier -> i want a beer: a recurrent network with attention", run};
