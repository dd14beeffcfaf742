/* attend average: the mean of trained models. */
#include <limits.h>

#include "commands.h"

typedef struct average_options {
    cli_common common;
    const char *output;
} average_options;

static int run(void *options, int word_count, char **words)
{
    const average_options *o = options;
    at_error error = {0};
    if (word_count < 2)
        fail(&error, AT_USAGE, "attend average needs two model files or more");
    else if (!o->output)
        fail(&error, AT_USAGE, "attend average needs -o FILE, the model to write");
    else
        at_models_average((const char *const *)words, word_count, o->output, &error);
    return report(&error);
}

static const at_setting table[] = {
    {AT_SETTING_HEADING, .help = "Averaging"},
    {AT_SETTING_TEXT, "output", "FILE", offsetof(average_options, output), .help = "the model to write", .letter = 'o'},
    {0},
};

const cli_command command_average = {
    .name = "average",
    .words = "MODEL MODEL...",
    .most_words = INT_MAX,
    .line = "average the parameters of trained models",
    .text = "Writes a model whose parameters are the mean of those of the models. They must have the same settings and "
            "vocabularies. The mean is useful only if they come from one training run, such as FILE and FILE.last, or "
            "copies of FILE.last made during training. attend train --average N does the same during training.",
    .examples = "  attend average de-en.safetensors de-en.safetensors.last -o mean.safetensors",
    .options = table,
    .size = sizeof(average_options),
    .run = run,
};
