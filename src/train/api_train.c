/* The public interface of training: settings by name, then a run. */
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

/* Refuses lines that could not come from a file. */
static bool check_line(at_training_part part, const char *side, const at_line *lines, int64_t i, at_error *error)
{
    const char *name = part == AT_VALID ? "validation" : "training";
    const long long number = i + 1;
    if (lines[i].size > 0 && !lines[i].text)
        return at_fail(error, AT_USAGE, "%s %lld of the %s lines has no text", side, number, name);
    if (lines[i].size > INT32_MAX)
        return at_fail(error, AT_USAGE, "%s %lld of the %s lines is longer than 2 GiB", side, number, name);
    if (lines[i].size > 0 && memchr(lines[i].text, '\n', lines[i].size))
        return at_fail(error, AT_USAGE, "%s %lld of the %s lines contains a newline", side, number, name);
    return true;
}

bool at_training_data(at_training *training, at_training_part part, const at_line *sources, const at_line *targets,
                      int64_t count, at_error *error)
{
    const char *name = part == AT_VALID ? "validation" : "training";
    const bool removes = !sources && !targets && count == 0;
    if (error->code != AT_OK)
        return false;
    if (!targets && !removes)
        return at_fail(error, AT_USAGE, "the %s lines have no targets", name);
    if (count < 1 && !removes)
        return at_fail(error, AT_USAGE, "there are %lld %s lines, and at least 1 is needed", (long long)count, name);
    for (int64_t i = 0; i < count; i++)
        if ((sources && !check_line(part, "source", sources, i, error)) ||
            !check_line(part, "target", targets, i, error))
            return false;
    training->settings.lines[part == AT_VALID] = (at_line_pairs){sources, targets, count};
    return true;
}

bool at_training_run(at_training *training, at_train_listener *listener, void *context, const volatile int *stop,
                     at_train_result *result, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    at_train_settings settings = training->settings;
    at_stored stored;
    const bool done = at_stored_take(&settings, &training->given, &stored, error) &&
                      at_train_settings_complete(&settings, &training->given, &stored.row, error) &&
                      at_train(&settings, listener, context, stop, result, error);
    at_stored_free(&stored);
    return done;
}
