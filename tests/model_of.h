/* Models from a line of settings. */
#ifndef MODEL_OF_H
#define MODEL_OF_H

#include <stdio.h>
#include <string.h>

#include "models/model.h"

/* An untrained model: its name, NAME=VALUE with blanks between, and more of them (may be empty). */
static at_model *model_of(const char *text, const char *more, int64_t source_words, int64_t target_words, uint64_t seed)
{
    at_error error = {0};
    at_model_settings settings = {.source_size = source_words, .target_size = target_words};
    at_given given = {0};
    char words[400], *rest = words, *word;
    snprintf(words, sizeof words, "model=%s %s", text, more);
    while ((word = strsep(&rest, " "))) {
        char *equals = strchr(word, '=');
        if (!*word) /* more was empty */
            continue;
        if (!equals)
            fail_msg("%s %s: '%s' is no NAME=VALUE", text, more, word);
        *equals = '\0';
        at_model_set(&settings, &given, word, equals + 1, &error);
    }
    at_model_settings_complete(&settings, &given, &error);
    at_model *model = at_model_new(&settings, seed, &error);
    if (!model)
        fail_msg("%s %s: %s", text, more, error.text);
    return model;
}

#endif
