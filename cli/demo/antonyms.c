/* attend demo antonyms: the plain encoder-decoder on six pairs of words, letter by letter. */
#include <string.h>

#include "demo/demo.h"

enum { STEPS = 5, PAIRS = 6, SYMBOLS = 29, TEXT = STEPS + 2 };

static const char alphabet[SYMBOLS + 1] = "SEPabcdefghijklmnopqrstuvwxyz";
static const char *const pairs[PAIRS][2] = {{"man", "women"}, {"black", "white"}, {"king", "queen"},
                                            {"girl", "boy"},  {"up", "down"},     {"high", "low"}};

/* The ids of `count` letters, the word's and then P. */
static void write_ids(const char *word, int count, int32_t *ids)
{
    int length = (int)strlen(word);
    for (int i = 0; i < count; i++)
        ids[i] = (int32_t)(strchr(alphabet, i < length ? word[i] : 'P') - alphabet);
}

/* The output of the decoder, fed S and then only P, up to its first E; padding is left out. */
static bool translate(at_listing *listing, const char *word, char text[TEXT], float *weights, at_error *error)
{
    int32_t source[STEPS], input[STEPS + 1], output[STEPS + 1];
    write_ids(word, STEPS, source);
    write_ids("S", STEPS + 1, input);
    if (!at_listing_read(listing, source, input, output, weights, error))
        return false;
    int used = 0;
    for (int i = 0; i <= STEPS && alphabet[output[i]] != 'E'; i++)
        if (alphabet[output[i]] != 'P')
            text[used++] = alphabet[output[i]];
    text[used] = 0;
    return true;
}

static bool show_attention(at_listing *listing, const char *word, at_error *error)
{
    float weights[(STEPS + 1) * STEPS];
    char text[TEXT], letter[2][TEXT][2];
    const char *names[2][TEXT];
    if (!translate(listing, word, text, weights, error))
        return false;
    int rows = (int)strlen(text), length = (int)strlen(word);
    for (int i = 0; i <= STEPS; i++) {
        snprintf(letter[0][i], 2, "%c", i < length ? word[i] : 'P');
        snprintf(letter[1][i], 2, "%c", i < rows ? text[i] : 'E');
        names[0][i] = letter[0][i];
        names[1][i] = letter[1][i];
    }
    printf("\nWhere %s looks in %s:\n\n", text, word);
    return show_weights(weights, rows < STEPS ? rows + 1 : STEPS + 1, STEPS, names[1], names[0], error);
}

static bool show_words(at_listing *listing, at_error *error)
{
    static const char *const words[] = {"man", "mans", "king", "black", "up"};
    char text[TEXT];
    say("\nTranslated with the decoder fed S P P P P P, so that all it knows comes from the source; \"mans\" was never "
        "seen:\n");
    for (int i = 0; i < (int)(sizeof words / sizeof *words); i++) {
        if (!translate(listing, words[i], text, NULL, error))
            return false;
        printf("%*s%s -> %s\n", DEMO_INDENT, "", words[i], text);
    }
    return true;
}

static bool run(const cli_common *common, at_error *error)
{
    const demo_options *options = (const demo_options *)common;
    int32_t source[PAIRS * STEPS], input[PAIRS * (STEPS + 1)], target[PAIRS * (STEPS + 1)];
    for (int i = 0; i < PAIRS; i++) {
        char padded[TEXT], full[TEXT + 1];
        snprintf(padded, sizeof padded, "%s%.*s", pairs[i][1], STEPS - (int)strlen(pairs[i][1]), "PPPPP");
        write_ids(pairs[i][0], STEPS, source + i * STEPS);
        snprintf(full, sizeof full, "S%s", padded);
        write_ids(full, STEPS + 1, input + i * (STEPS + 1));
        snprintf(full, sizeof full, "%sE", padded);
        write_ids(full, STEPS + 1, target + i * (STEPS + 1));
    }
    at_listing_task task = {SYMBOLS, PAIRS, STEPS, STEPS + 1, source, input, target};
    const char *model = demo_setting(options, "model", "rnn-plain");
    print_heading("Antonyms: one word in, another word out");
    say("\nAn encoder reads a word letter by letter; its last state is all that the decoder gets, which writes the "
        "other word letter by letter. Six pairs, 29 letters as one-hot vectors (S begins, E ends, P fills up to five), "
        "all of them in one batch, 5000 times:\n");
    for (int i = 0; i < PAIRS; i++)
        printf("%*s%s - %s\n", DEMO_INDENT, "", pairs[i][0], pairs[i][1]);
    printf("\nThe model is %s.\n\n", model);
    at_listing *listing = demo_listing(options, &task, "rnn-plain", error);
    bool done = listing && demo_listing_train(listing, 5, 1000, "77 seconds", error) && show_words(listing, error) &&
                (!at_listing_attends(listing) || show_attention(listing, "black", error));
    if (done && !at_listing_attends(listing))
        say("\nThere is no attention in this model, and so nothing to draw. Try --model rnn-attention, bahdanau or "
            "luong.");
    at_listing_free(listing);
    return done;
}

const cli_demo demo_antonyms = {"antonyms", "man -> women: a plain encoder-decoder learns six pairs of words", run};
