/* attend info: what a model file holds. */
#include "commands.h"

static int run(void *options, int word_count, char **words)
{
    (void)options;
    at_error error = {0};
    at_translator *translator = NULL;
    if (word_count == 0)
        fail(&error, AT_USAGE, "attend info needs a model file");
    else
        translator = at_translator_load(words[0], &error);
    char *text = translator ? at_translator_info(translator, &error) : NULL;
    if (text)
        fputs(text, stdout);
    at_text_free(text);
    at_translator_free(translator);
    return report(&error);
}

const cli_command command_info = {
    .name = "info",
    .words = "MODEL",
    .most_words = 1,
    .line = "show what a model file holds: settings, sizes, history",
    .text = "Shows a trained model's settings, the sizes of its vocabularies and parameters, and the history of its "
            "training.",
    .examples = "  attend info de-en.safetensors",
    .size = sizeof(cli_common),
    .run = run,
};
