/* attend info: what a model file holds, and whether it is intact. */
#include <limits.h>
#include <string.h>

#include "commands.h"
#include "line_output.h"

typedef struct info_options {
    cli_common common;
    const char *model;
    bool verify, json;
} info_options;

/* The lines of the description, each broken at the width of the terminal below its value. */
static void print_lines(char *text)
{
    enum { VALUES = 17 };
    const int width = terminal_width();
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) && rest;)
        print_wrapped(stdout, line, VALUES, width > 0 ? width : INT_MAX, 0);
}

static void show(const char *path, bool json, at_error *error)
{
    at_translator *translator = at_translator_load(path, error);
    char *text = translator ? (json ? at_translator_info_json : at_translator_info)(translator, error) : NULL;
    if (text && json)
        puts(text);
    else if (text)
        print_lines(text);
    at_text_free(text);
    at_translator_free(translator);
}

static void verify(const char *path, at_error *error)
{
    bool has_checksum;
    if (at_model_verify(path, &has_checksum, error))
        printf("%s: %s\n", path, has_checksum ? "ok" : "no checksum");
}

static int run(void *options, int word_count, char **words)
{
    info_options *o = options;
    at_error error = {0};
    if (!model_word("info", &o->model, &word_count, &words, &error))
        return report(&error);
    if (!o->model)
        fail(&error, AT_USAGE, "attend info needs a model file: attend info MODEL");
    else if (o->verify)
        verify(o->model, &error);
    else
        show(o->model, o->json, &error);
    return report(&error);
}

static const at_setting table[] = {
    {AT_SETTING_HEADING, .help = "What to show"},
    {AT_SETTING_TEXT, "model", "FILE", offsetof(info_options, model), .help = "the same as MODEL", .letter = 'm'},
    {AT_SETTING_SWITCH, "verify", NULL, offsetof(info_options, verify),
     .help = "compare the file, a model or a training state, with its checksum: prints \"FILE: ok\" or \"FILE: no "
             "checksum\"; a damaged file is an error"},
    {AT_SETTING_SWITCH, "json", .offset = offsetof(info_options, json),
     .help = "everything as one JSON object; \"training\" has the settings and the data that train the model again"},
    {0},
};

const cli_command command_info = {
    .name = "info",
    .words = "MODEL",
    .most_words = 1,
    .line = "show what a model file holds: settings, sizes, history",
    .text = "Shows a trained model's settings, the sizes of its vocabularies and parameters, and the history of its "
            "training: files, pairs, updates and scores. Every command compares a model with its checksum when it "
            "loads it; --verify does only that, for "
            "training states, too.",
    .examples = "  attend info de-en.safetensors\n"
                "  attend info --json de-en.safetensors\n"
                "  attend info --verify de-en.safetensors.state",
    .options = table,
    .size = sizeof(info_options),
    .run = run,
};
