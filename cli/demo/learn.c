/* What the demos that train a model share: their settings, and the listings' training. */
#include <string.h>
#include <time.h>

#include "demo/demo.h"

#define SETTING(number, name_, argument_, axis_, help_)                                                                \
    {                                                                                                                  \
        .type = AT_SETTING_TEXT, .name = name_, .argument = argument_, .axis = axis_, .help = help_,                   \
        .offset = offsetof(demo_options, setting) + (number) * sizeof(const char *)                                    \
    }

const at_setting demo_settings[DEMO_SETTINGS + 2] = {
    {.type = AT_SETTING_HEADING, .help = "To try another model on the same task (not for self-attention)"},
    SETTING(0, "model", "NAME", NULL, "rnn-plain, rnn-encdec, rnn-attention, bahdanau or luong"),
    SETTING(1, "cell", "NAME", NULL, "the recurrent cell: rnn, gru or lstm"),
    SETTING(2, "reset", "WHEN", NULL, "a gru resets the state before or after the product"),
    SETTING(3, "layers", "N", NULL, "recurrent layers on each side"),
    SETTING(4, "hidden", "N", NULL, "size of a recurrent state"),
    SETTING(5, "dropout", "SHARE", NULL, "share of the units dropped in training"),
    SETTING(6, "score", "NAME", "score", "how a query meets a key"),
    SETTING(7, "normaliser", "NAME", "normaliser", "how scores become weights"),
    SETTING(8, "window", "NAME", "window", "which source positions a step sees"),
    SETTING(9, "position", "NAME", "position", "relative positions inside attention"),
    SETTING(10, "heads", "N", NULL, "attention heads"),
};

bool demo_hand_over(const demo_options *options, demo_setter *set, void *target, at_error *error)
{
    for (int i = 0; i < DEMO_SETTINGS; i++)
        if (options->setting[i] && !set(target, demo_settings[i + 1].name, options->setting[i], error)) {
            error->code = AT_USAGE;
            return false;
        }
    return true;
}

const char *demo_setting(const demo_options *options, const char *name, const char *fallback)
{
    for (int i = 0; i < DEMO_SETTINGS; i++)
        if (strcmp(demo_settings[i + 1].name, name) == 0 && options->setting[i])
            return options->setting[i];
    return fallback;
}

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool set_listing(void *listing, const char *name, const char *value, at_error *error)
{
    return at_listing_set(listing, name, value, error);
}

at_listing *demo_listing(const demo_options *options, const at_listing_task *task, const char *model, at_error *error)
{
    at_listing *listing = at_listing_new(task, options->common.seed, error);
    if (listing && at_listing_set(listing, "model", model, error) && at_listing_set(listing, "hidden", "128", error) &&
        demo_hand_over(options, set_listing, listing, error))
        return listing;
    at_listing_free(listing);
    return NULL;
}

bool demo_listing_train(at_listing *listing, int steps, int epochs, const char *tensorflow, at_error *error)
{
    double start = seconds_now(), loss = 0;
    for (int i = 1; i <= steps; i++) {
        if (!at_listing_train(listing, epochs, &loss, error))
            return false;
        printf("%*sepoch %4d   loss %.6f\n", DEMO_INDENT, "", i * epochs, loss);
        fflush(stdout);
    }
    printf("\n%.2f seconds; the listing took %s in TensorFlow 1.12.\n", seconds_now() - start, tensorflow);
    return true;
}
