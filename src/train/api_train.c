/* The public face of training: settings by name, then a run. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "train/train_internal.h"

struct at_training {
    at_train_settings settings;
    at_given given;               /* by the index of at_training_setting, like the next */
    char *text[AT_MOST_SETTINGS]; /* copies of the values that the settings point to; NULL: none */
};

/* Parses a copy of the text, which the field may point to from then on. */
static bool assign(at_training *training, int index, const char *text, at_error *error)
{
    char *copy = strdup(text);
    if (!copy)
        return at_no_memory(error, "the value of `%s`", at_training_setting(index)->name);
    if (!at_setting_parse(at_training_setting(index), NULL, copy, at_training_fields(&training->settings, index),
                          error)) {
        free(copy);
        return false;
    }
    free(training->text[index]);
    training->text[index] = copy;
    return true;
}

bool at_training_set(at_training *training, const char *name, const char *value, at_error *error)
{
    const int index = error->code == AT_OK ? at_setting_expect(at_training_setting, name, error) : -1;
    return index >= 0 && (training->given.row[index] = assign(training, index, value, error));
}

/* The model's defaults depend on its kind, so they are filled in when all settings are known. */
static bool set_defaults(at_training *training, at_error *error)
{
    for (int i = 0; at_training_setting(i); i++) {
        const char *fallback = at_training_setting(i)->fallback;
        const bool of_model = at_training_fields(&training->settings, i) != &training->settings;
        if (fallback && !of_model && !assign(training, i, fallback, error))
            return false;
    }
    return true;
}

at_training *at_training_new(at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    at_training *training = calloc(1, sizeof *training);
    if (!training)
        at_no_memory(error, "the settings of training");
    else if (set_defaults(training, error))
        return training;
    at_training_free(training);
    return NULL;
}

void at_training_free(at_training *training)
{
    if (!training)
        return;
    for (int i = 0; i < AT_MOST_SETTINGS; i++)
        free(training->text[i]);
    free(training);
}

bool at_training_run(at_training *training, at_train_listener *listener, void *context, const volatile int *stop,
                     at_train_result *result, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    at_train_settings settings = training->settings;
    return at_train_settings_complete(&settings, &training->given, error) &&
           at_train(&settings, listener, context, stop, result, error);
}
